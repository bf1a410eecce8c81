"""Tests of the hit cache: it searches little, and finds the same as a search without a cache."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.lorebook.rules import ActivationRules
from evennia_ai.engine.lorebook.scan.hit_cache import HitCache, hit_cache_of
from evennia_ai.engine.lorebook.scan.matching import Key, KeyTable
from evennia_ai.engine.lorebook.scan.window import Scan
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import Message, event_message, said
from evennia_ai.engine.prompt.tokens import TokenCounter
from tests.engine.lorebook.builders import WORDS, a_book, a_history, an_entry, awake, texts
from tests.engine.prompt.builders import a_record

COIN, GATE = 0, 1
TABLE = KeyTable([(COIN, Key("coin", False, "word")), (GATE, Key("gate", False, "word"))])


def reached(known, history, *, first=0):
    """Return the last place of each key in the messages from `first` on."""
    known.reach(history, first=first, stop=history.stop)
    return {number: found.place for number, found in known.said.items()}


def test_place_of_a_key_is_the_newest_message_with_it():
    history = a_history("user: coin", "user: -", "user: gate and coin", "user: gate", "user: -")
    known = HitCache(TABLE, with_names=True, at=history.stop)
    assert reached(known, history) == {COIN: 2, GATE: 3}
    assert reached(known, history, first=3) == {GATE: 3}
    assert reached(known, history, first=4) == {}
    assert reached(known, history, first=1) == {COIN: 2, GATE: 3}


def test_hit_cache_reports_only_keys_whose_place_changed():
    history = a_history("user: coin", "user: gate", "user: coin", "user: -")
    known = HitCache(TABLE, with_names=True, at=history.stop)
    assert known.reach(history, first=1, stop=history.stop) == {COIN, GATE}
    assert known.reach(history, first=0, stop=history.stop) == set()
    assert known.reach(history, first=2, stop=history.stop) == {GATE}
    later = history.appended(said("user", "coin"))
    assert known.reach(later, first=2, stop=later.stop) == {COIN}
    assert known.changed == {COIN, GATE}


class CountedTable(KeyTable):
    """A key table that counts how often it is searched."""

    asked = 0

    def scan(self, *args, **kwargs):
        self.asked += 1
        return super().scan(*args, **kwargs)


def test_hit_cache_searches_only_new_messages():
    table = CountedTable([(COIN, Key("coin", False, "word")), (GATE, Key("gate", False, "word"))])
    history = a_history(*["user: coin"] * 50)
    known = hit_cache_of(history, table, of=("book",), with_names=True)
    assert reached(known, history) == {COIN: 49}
    assert table.asked == 50
    later = history.appended(said("user", "gate"))
    assert hit_cache_of(later, table, of=("book",), with_names=True) is known
    assert reached(known, later) == {COIN: 49, GATE: 50}
    assert table.asked == 51


def test_other_keys_or_name_setting_have_their_own_hit_cache():
    history = a_history("user Coin: -")
    first = hit_cache_of(history, TABLE, of=("book",), with_names=True)
    assert hit_cache_of(history, TABLE, of=("book",), with_names=False) is not first
    assert hit_cache_of(history, KeyTable([]), of=("book",), with_names=False) is not first


def test_older_history_view_finds_no_key_of_later_messages():
    old = a_history("user: -", "user: coin")
    new = old.appended(said("user", "gate"))
    book = a_book(an_entry("Coin."), an_entry("Gate.", keys=["gate"]))
    assert texts(awake(book, scan=Scan(history=new))) == ["Coin.", "Gate."]
    assert texts(awake(book, scan=Scan(history=old))) == ["Coin."]


def test_separate_history_views_find_keys_of_their_own_messages():
    old = a_history("user: -")
    book = a_book(an_entry("Coin."), an_entry("Gate.", keys=["gate"]))
    one = old.appended(said("user", "coin"))
    other = old.appended(said("user", "gate"))
    for _ in range(2):
        assert texts(awake(book, scan=Scan(history=one))) == ["Coin."]
        assert texts(awake(book, scan=Scan(history=other))) == ["Gate."]


def test_hit_cache_searches_again_when_its_messages_are_not_adjacent():
    history = a_history(*["user: coin"], *["user: -"] * 30)
    known = hit_cache_of(history, TABLE, of=("book",), with_names=True)
    assert reached(known, history, first=29) == {}
    for _ in range(30):
        history = history.appended(said("user", "gate"))
    assert reached(known, history, first=59) == {GATE: 60}
    assert reached(known, history) == {COIN: 0, GATE: 60}


def test_cached_entry_text_is_counted_again_with_another_token_counter():
    history = a_history("user: coin")
    tens = TokenCounter(name="tens", version="1", count=lambda text: 10 * len(text.split()))
    book = a_book(an_entry("one two"))
    counted = [
        awake(book, scan=Scan(history=history), counter=counter).entries[0].tokens
        for counter in (WORDS, tens, WORDS)
    ]
    assert counted == [2, 20, 2]


def test_each_revision_of_a_book_has_its_own_hit_cache():
    history = a_history("user: coin")
    old, new = (a_book(an_entry(text), revision=n) for n, text in enumerate(("Old.", "New."), 1))
    for book, text in ((old, "Old."), (new, "New."), (old, "Old.")):
        [entry] = awake(book, scan=Scan(history=history)).entries
        assert (entry.text, entry.revision) == (text, book.revision)


LINES = st.sampled_from(["coin", "gate", "the bell", "-", "coin gate", "bell coin", ""])
STEPS = st.lists(
    st.tuples(
        LINES,
        st.sampled_from(["user", "assistant"]),
        st.sampled_from([None, "Anna", "coin"]),
        st.booleans(),  # True for a bookkeeping record
        st.sampled_from([None, "coin", "Anna: gate"]),  # the event of this turn
        st.booleans(),  # True to keep this message in the history
    ),
    max_size=8,
)
BOOKS = st.lists(
    st.tuples(
        st.sampled_from([["coin"], ["gate"], ["bell", "coin"], ["/g.te/"], ["Anna"]]),
        st.sampled_from(["", "@@scan_depth 1\n", "@@scan_depth 9\n", "@@exclude_keys gate\n"]),
        st.sampled_from(["The bell.", "A gate.", "Nothing.", "{{user}}"]),
        st.fixed_dictionaries(
            {},
            optional={
                "group": st.just("g"),
                "exclude_recursion": st.booleans(),
                "probability": st.just(50),
                "cooldown": st.just(2),
            },
        ),
    ),
    max_size=5,
)


def a_message(text, role, name, is_record):
    if is_record:
        return replace(a_record(), content=text, memo={})
    return said(role, text, name=name)


@given(BOOKS, STEPS, st.integers(0, 4), st.integers(0, 3), st.sampled_from([50, 100]))
def test_activation_with_a_hit_cache_equals_one_without(entries, steps, depth, minimum, share):
    listed = [
        an_entry(head + text, keys=keys, use_regex=keys[0].startswith("/"), extensions=more)
        for keys, head, text, more in entries
    ]
    rules = ActivationRules(
        scan_depth=depth,
        min_activations=minimum,
        speaker_share_percent=share,
        budget_tokens=6,
    )
    kept, messages = History(), list[Message]()
    book = a_book(*listed)
    for text, role, name, is_record, event, goes_on in steps:
        message = a_message(text, role, name, is_record)
        view = kept.appended(message)
        if goes_on:
            kept = view
        now = [*messages, message]
        if goes_on:
            messages = now
        pends = None if event is None else event_message(event)
        warm = awake(book, scan=Scan(history=view, event=pends), rules=rules)
        fresh = [replace(one, memo={}) for one in now]
        cold = awake(a_book(*listed), scan=Scan(history=History(fresh), event=pends), rules=rules)
        assert warm.verdicts == cold.verdicts
        assert warm.entries == cold.entries
