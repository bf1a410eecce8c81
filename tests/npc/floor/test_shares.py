"""Shares: whatever waits and comes, order, bounds and nobody waiting for ever."""

from collections import defaultdict
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.npc.floor.shares import PRESSING_SECONDS, PRESSING_SHARE, Shares


@dataclass(frozen=True)
class One:
    owner: str
    work: int


def shares_of(*owners, now=0.0):
    shares = Shares()
    for number, owner in enumerate(owners):
        shares.add(One(owner, number), now=now)
    return shares


def all_next(shares, now=0.0):
    out = []
    while shares:
        out.append(shares.next(now=now))
        shares.ended()
    return out


def test_owners_take_turns():
    assert [one.owner for one in all_next(shares_of(*"aaabbbccc"))] == list("abcabcabc")


def test_who_says_one_thing_goes_before_who_presses():
    assert all_next(shares_of(*"aabbc"))[0].owner == "c"


def test_speaking_while_one_is_answered_is_pressing():
    shares = shares_of("a")
    shares.next(now=0)
    shares.add(One("a", 1), now=0)
    shares.add(One("b", 2), now=0)
    shares.ended()
    assert shares.next(now=0).owner == "b"


def test_who_pressed_long_ago_is_like_anybody():
    shares = shares_of("a", "a")
    for _ in range(2):
        shares.next(now=0)
        shares.ended()
    for number, owner in enumerate("abb"):
        shares.add(One(owner, number), now=PRESSING_SECONDS)
    assert shares.next(now=PRESSING_SECONDS).owner == "a"


def test_who_still_has_two_things_waiting_presses_however_long_ago_they_were_said():
    shares = shares_of("a", "a", "b")
    assert shares.next(now=10 * PRESSING_SECONDS).owner == "b"


def test_of_some_turns_one_is_of_those_who_press():
    shares = shares_of("a", "a", *map(str, range(2 * PRESSING_SHARE)))
    owners = [shares.next(now=0).owner for _ in range(2 * PRESSING_SHARE)]
    assert owners.count("a") == 2
    assert owners.index("a") == PRESSING_SHARE - 1


def test_what_is_put_back_comes_first():
    shares = shares_of("a", "b")
    one = shares.next(now=0)
    shares.put_back(one)
    assert shares.next(now=0) == one


@given(st.lists(st.sampled_from("abcd"), max_size=30), st.lists(st.integers(0, 30), max_size=10))
def test_all_that_is_not_withdrawn_comes_once_and_in_order(owners, gone):
    shares = shares_of(*owners)
    withdrawn = [number for number in set(gone) if number < len(owners)]
    shares.forget(withdrawn)
    assert len(shares) == len(owners) - len(withdrawn)
    wanted = defaultdict(list)
    for number, owner in enumerate(owners):
        if number not in withdrawn:
            wanted[owner].append(number)
    assert len(shares) == sum(map(len, wanted.values()))
    came = defaultdict(list)
    for one in all_next(shares):
        came[one.owner].append(one.work)
    assert came == wanted


@given(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=60), st.integers(0, 59))
def test_nobody_new_waits_for_more_than_one_who_presses(owners, at):
    """Whoever says one thing goes before all who press, but for their one of some turns."""
    shares = shares_of(*owners)
    served = set()
    for _ in range(min(at, len(owners) - 1)):
        served.add(shares.next(now=0).owner)
        shares.ended()
    quiet = {owner for owner in owners if owners.count(owner) == 1} - served
    shares.add(One("new", 99), now=0)
    before = []
    while (one := shares.next(now=0)).owner != "new":
        before.append(one.owner)
    pressing = [owner for owner in before if owner not in quiet]
    assert len(pressing) <= 1 + len(quiet) // (PRESSING_SHARE - 1)
