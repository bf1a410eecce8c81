"""Shares: in which order the waiting words of several speakers are answered."""

from collections import defaultdict
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.npc.floor.scheduler import PRESSING_SECONDS, PRESSING_SHARE, Shares


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


def test_owner_with_one_waiting_turn_comes_before_owners_with_two():
    assert all_next(shares_of(*"aabbc"))[0].owner == "c"


def test_owner_counts_as_pressing_when_adding_work_during_their_own_turn():
    shares = shares_of("a")
    shares.next(now=0)
    shares.add(One("a", 1), now=0)
    shares.add(One("b", 2), now=0)
    shares.ended()
    assert shares.next(now=0).owner == "b"


def test_owner_no_longer_counts_as_pressing_after_a_while():
    shares = shares_of("a", "a")
    for _ in range(2):
        shares.next(now=0)
        shares.ended()
    for number, owner in enumerate("abb"):
        shares.add(One(owner, number), now=PRESSING_SECONDS)
    assert shares.next(now=PRESSING_SECONDS).owner == "a"


def test_owner_with_two_waiting_turns_counts_as_pressing_after_any_time():
    shares = shares_of("a", "a", "b")
    assert shares.next(now=10 * PRESSING_SECONDS).owner == "b"


def test_pressing_owner_gets_one_of_every_few_turns():
    shares = shares_of("a", "a", *map(str, range(2 * PRESSING_SHARE)))
    owners = [shares.next(now=0).owner for _ in range(2 * PRESSING_SHARE)]
    assert owners.count("a") == 2
    assert owners.index("a") == PRESSING_SHARE - 1


def test_work_that_is_put_back_comes_first():
    shares = shares_of("a", "b")
    one = shares.next(now=0)
    shares.put_back(one)
    assert shares.next(now=0) == one


@given(st.lists(st.sampled_from("abcd"), max_size=30), st.lists(st.integers(0, 30), max_size=10))
def test_work_comes_once_and_in_order_of_its_owner_unless_forgotten(owners, gone):
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
def test_new_owner_waits_only_for_the_fixed_share_of_pressing_owners(owners, at):
    """Owners with one work come first, except that one of every few turns is for pressing ones."""
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
