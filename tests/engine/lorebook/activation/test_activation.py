"""Tests of `activate_lore`: the active entries, the verdicts, and what is never active."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.lorebook.book import decorators_of
from evennia_ai.engine.lorebook.rules import ActivationRules
from evennia_ai.engine.lorebook.scan.window import Scan
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import Message, said
from evennia_ai.engine.prompt.tokens import TokenCounter
from tests.engine.lorebook.builders import (
    a_book,
    a_history,
    a_scan,
    an_entry,
    awake,
    reasons,
    texts,
)


def test_activation_is_empty_without_books_and_history():
    result = awake(scan=a_scan())
    assert result.entries == ()
    assert result.verdicts == ()


@pytest.mark.req("S3-11")
def test_entry_with_a_depth_is_active_only_with_its_key():
    book = a_book(an_entry("@@depth 3\nThe toll is one coin.", keys=["toll"]))
    on = awake(book, scan=a_scan("user: what is the toll?"))
    [entry] = on.entries
    assert (entry.text, entry.depth, entry.position) == ("The toll is one coin.", 3, "depth")
    cause = on.causes[entry.identity]
    assert cause == "key 'toll' in message 1 at 12-16"
    [verdict] = on.verdicts
    assert (verdict.kept, verdict.tokens, verdict.cause) == (True, 5, cause)
    off = awake(book, scan=a_scan("user: what is the time?"))
    assert off.entries == ()
    assert reasons(off) == {"book#0": "- no key in the newest 4 messages"}


@pytest.mark.req("S3-28")
@given(st.integers(-(10**25), 10**25), st.sampled_from(["depth", "reverse_depth"]))
def test_entry_depth_is_limited_to_the_range_from_0_to_the_maximum(depth, name):
    book = a_book(an_entry(f"@@{name} {depth}\nLore.", constant=True))
    [entry] = awake(book).entries
    assert entry.depth == min(max(depth, 0), 10**9)
    assert entry.from_oldest == (name == "reverse_depth")


@pytest.mark.req("S3-28")
@pytest.mark.parametrize("value", ["4.0", "1e3", "true", "four", "0x10", "[4]", "--4", "4 5"])
def test_depth_decorator_is_ignored_when_its_value_is_no_whole_number(value):
    book = a_book(an_entry(f"@@depth {value}\nLore.", constant=True))
    [entry] = awake(book).entries
    assert (entry.depth, entry.position, entry.text) == (None, "after", "Lore.")


@pytest.mark.req("S3-32")
def test_depth_decorator_may_be_0():
    book = a_book(an_entry("@@depth 0\nLore.", constant=True), an_entry("Plain.", constant=True))
    deep, plain = awake(book).entries
    assert (deep.depth, deep.position) == (0, "depth")
    assert (plain.depth, plain.position) == (None, "after")


def test_player_text_is_never_read_as_a_decorator_or_a_macro():
    book = a_book(an_entry("{{user}} pays.", keys=["coin"]))
    scan = a_scan("user: @@depth 0", event="Anna: @@activate\n{{char}} coin")
    result = awake(book, scan=scan, values={"user": "@@depth 3\n{{char}}", "char": "Oren"})
    [entry] = result.entries
    assert entry.text == "@@depth 3\n{{char}} pays."
    assert entry.depth is None


def test_bookkeeping_messages_are_neither_scanned_nor_counted():
    facts = Message(role="user", content="a coin", counted=False)
    history = History([said("user", "a ferry"), facts, facts, said("user", "hm")])
    book = a_book(an_entry("C."), an_entry("F.", keys=["ferry"]), scan_depth=2)
    assert texts(awake(book, scan=Scan(history=history))) == ["F."]


def test_reply_count_conditions_include_replies_before_the_window():
    history = History([said("assistant", "a coin")], earlier=30, earlier_replies=9)
    book = a_book(an_entry("@@activate_only_after 10\nLore."))
    assert texts(awake(book, scan=Scan(history=history))) == ["Lore."]


def test_is_greeting_decorator_is_met_by_the_greeting_of_the_conversation():
    book = a_book(an_entry("@@is_greeting 1\nLore."))
    assert texts(awake(book, rules=ActivationRules(greeting_index=1))) == ["Lore."]
    assert texts(awake(book, rules=ActivationRules(greeting_index=None))) == ["Lore."]
    silent = awake(book, rules=ActivationRules(greeting_index=2))
    assert reasons(silent) == {"book#0": "- @@is_greeting 1: the greeting is 2"}


def test_key_is_never_found_across_two_messages():
    book = a_book(an_entry(keys=["red coin"]))
    assert texts(awake(book, scan=a_scan("user: red", "user: coin"))) == []


def test_verdict_names_the_newest_place_of_a_key():
    scan = a_scan("user: coin", "user: coin", "user: -")
    causes = awake(a_book(an_entry()), scan=scan).causes
    assert list(causes.values()) == ["key 'coin' in message 2 at 0-4"]


def test_scanned_note_counts_as_the_newest_message():
    book = a_book(an_entry(content="@@scan_depth 1\nLore."), an_entry("Deep."))
    scan = a_scan("user: coin", "user: -", notes=("a coin",))
    assert texts(awake(book, scan=scan)) == ["Lore.", "Deep."]


def test_rules_decide_case_and_whole_words_when_the_entry_does_not():
    book = a_book(an_entry("A.", keys=["COIN"]), an_entry("B.", keys=["coi"], case_sensitive=True))
    assert texts(awake(book)) == ["A."]
    assert texts(awake(book, rules=ActivationRules(match_whole_words=False))) == ["A.", "B."]
    assert texts(awake(book, rules=ActivationRules(case_sensitive=True))) == []


def test_decorators_of_lists_the_applied_decorators_of_every_entry():
    book = a_book(an_entry("@@app 1\n@@@depth 4\n@@role user\nL"), an_entry("L", id="x"))
    assert decorators_of([book]) == {
        "book#0": (("depth", ("4",)), ("role", ("user",))),
        "book#x": (),
    }


def test_random_macro_in_an_entry_is_the_same_for_the_same_dice():
    book = a_book(an_entry("{{random:a,b,c,d,e,f,g,h}}", constant=True))
    first = texts(awake(book, dice=Dice(turn="7", conversation="1")))
    awake(book, dice=Dice(turn="8", conversation="1"))
    assert texts(awake(book, dice=Dice(turn="7", conversation="1"))) == first


def test_activation_of_an_unchanged_turn_counts_no_tokens():
    asked: list[str] = []

    def count(text: str) -> int:
        asked.append(text)
        return 1

    counter = TokenCounter(name="asked", version="1", count=count)
    asked.clear()  # the counter was called once for the separator of texts
    book = a_book(an_entry("A."), an_entry("B.", keys=[], constant=True), an_entry("{{user}}"))
    history = a_history("user: coin")
    first = awake(book, scan=Scan(history=history), counter=counter, values={"user": "Anna"})
    assert len(asked) == 3
    later = history.appended(said("assistant", "hm"))
    second = awake(book, scan=Scan(history=later), counter=counter, values={"user": "Anna"})
    assert len(asked) == 3
    assert [id(entry) for entry in second.entries] == [id(entry) for entry in first.entries]
    assert second.verdicts == first.verdicts


def test_one_book_expands_macros_for_each_character_separately():
    book = a_book(an_entry("I am {{char}}."))
    for name in ("Oren", "Brida", "Oren"):
        assert texts(awake(book, values={"char": name})) == [f"I am {name}."]


def test_activation_changes_neither_the_history_nor_the_order_of_the_books():
    history = a_history("user: coin", "assistant: hm")
    before = list(history)
    books = [a_book(an_entry("W.")), a_book(an_entry("C."), attach="chat")]
    awake(*books, scan=Scan(history=history))
    assert list(history) == before
    assert [book.attach for book in books] == ["global", "chat"]


ENTRY = st.builds(
    lambda keys, depth, words, constant, priority: an_entry(
        f"{depth}{' '.join(['word'] * words)}", keys=keys, constant=constant, priority=priority
    ),
    st.lists(st.sampled_from(["coin", "ferry", "fog"]), max_size=2),
    st.sampled_from(["", "@@depth 2\n", "@@dont_activate\n", "@@scan_depth 1\n"]),
    st.integers(0, 6),
    st.booleans(),
    st.integers(-3, 3),
)


@given(
    st.lists(ENTRY, max_size=6),
    st.lists(
        st.sampled_from(["user: coin", "user: ferry", "assistant: fog", "user: -"]), max_size=5
    ),
    st.integers(0, 20),
    st.sampled_from(["skip", "stop"]),
)
def test_active_entries_fit_the_budget_and_every_entry_has_one_verdict(
    entries, lines, budget, overflow
):
    rules = ActivationRules(budget_percent=100, overflow=overflow)
    result = awake(a_book(*entries), scan=a_scan(*lines), rules=rules, limit_tokens=budget)
    assert sum(entry.tokens for entry in result.entries) <= budget
    assert [v.item for v in result.verdicts] == [f"lore:book#{n}" for n in range(len(entries))]
    kept = {v.item for v in result.verdicts if v.kept}
    assert kept == {entry.origin for entry in result.entries}
    assert all(entry.text.strip() and "@@" not in entry.text for entry in result.entries)
