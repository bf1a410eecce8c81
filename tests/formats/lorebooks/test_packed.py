"""Packed lorebooks: they give the same entries, indexes and activations as their files."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.lorebook.activation.passes import activate_lore
from evennia_ai.engine.lorebook.book import Lorebook, handing_on, labels_of
from evennia_ai.engine.lorebook.rules import read_rules
from evennia_ai.engine.lorebook.scan.key_index import prepare_index, stored_index
from evennia_ai.engine.lorebook.scan.window import Scan
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import said
from evennia_ai.engine.prompt.tokens import ESTIMATE
from evennia_ai.formats.lorebooks.books import read_book
from evennia_ai.formats.lorebooks.packed import PackedEntries, pack_book, unpack_book
from tests.conformance.sillytavern_cases import LORE
from tests.formats.lorebooks.test_entry_reader import attributes, written_entries

OURS, THEIRS = read_rules({"rules": "evennia_ai"}), read_rules({"rules": "sillytavern"})


def packed_and_read(data: Any, rules: Any = OURS) -> tuple[Lorebook | None, Lorebook]:
    """Return the book that was packed and unpacked, and the same book as its file is read."""
    read = read_book(data, label="harbour")
    packed = pack_book(read, data, rules=rules)
    return packed and unpack_book(packed, label="harbour", rules=rules), read


def assert_same(data: Any, rules: Any = OURS) -> None:
    """Check that a packed book and the book in the file agree in all that a turn reads."""
    packed, read = packed_and_read(data, rules)
    if packed is None:
        return
    assert repr(list(map(attributes, packed.entries))) == repr(list(map(attributes, read.entries)))
    assert (packed.notices, labels_of(packed), packed.mode) == (
        read.notices,
        labels_of(read),
        read.mode,
    )
    again = read_book(data, label="harbour")  # its index and its own results are made anew
    one, other = (stored_index(book, rules=rules) for book in (packed, again))
    assert json.dumps(one.to_json()) == json.dumps(other.to_json())
    assert handing_on(packed) == handing_on(again)
    keys = ([index.entry_keys[at] for at in range(len(read.entries))] for index in (one, other))
    assert repr(next(keys)) == repr(next(keys))  # equal patterns are different objects


def an_entry(number: int, **members: Any) -> dict[str, Any]:
    entry = {"id": number, "keys": [f"word{number}"], "content": f"Text {number}.", "enabled": True}
    return {**entry, "insertion_order": number, "extensions": {}, **members}


ODD = {
    "entries": [
        *[an_entry(number, keys=[f"word{number}", "Fährmann", "渡船"]) for number in range(30)],
        an_entry(40, content="@@depth 2\n@@additional_keys boat,oar\n@@exclude_keys fog\nA gate."),
        an_entry(41, keys=["/fer+y/i", "/two (words)/"], use_regex=True),
        an_entry(42, constant=True, content="Always {{user}}."),
        an_entry(43, content="{{setvar::tide::high}}The tide."),
        an_entry(44, secondary_keys=["low tide"], selective=True, case_sensitive=True),
        an_entry(45, keys=["a phrase of words", "  spaced  ", "", "x\ny"]),
        an_entry(46, extensions={"group": "crew", "group_weight": 30, "match_whole_words": False}),
        an_entry(47, extensions={"delay_until_recursion": 2, "sticky": 3, "scan_depth": 9}),
        an_entry(47, enabled=False),
        an_entry(48, extensions={"position": 7, "outlet_name": "news"}),
    ]
}


@pytest.mark.parametrize("rules", [OURS, THEIRS], ids=lambda rules: rules.rules)
def test_packed_book_is_the_same_with_every_kind_of_entry(rules):
    assert packed_and_read(ODD, rules)[0] is not None
    assert_same(ODD, rules)
    books = [book for case in LORE.values() for book in case.case["input"]["books"]]
    assert len(books) > 100
    for data in books:
        assert_same(data, rules)


@given(entries=st.lists(written_entries(), max_size=5), is_world=st.booleans())
def test_packed_book_is_the_same_for_any_entries(entries, is_world):
    assert_same(
        {"entries": {str(n): one for n, one in enumerate(entries)} if is_world else entries}
    )


def test_packed_book_activates_the_same_entries_and_makes_few_others():
    data = {"entries": [*ODD["entries"], *[an_entry(100 + number) for number in range(900)]]}
    packed, read = packed_and_read(data)
    heard = "The Fährmann of word3 and WORD107 met the ferry on a low tide, with a boat."
    told = []
    for book in (packed, read):
        prepare_index(book, rules=OURS)
        result = activate_lore(
            (book,),
            Scan(history=History().appended(said("user", heard))),
            rules=OURS,
            limit_tokens=10_000,
            counter=ESTIMATE,
            values={"user": "Ren"},
            dice=Dice(turn="1", conversation="quay"),
        )
        told.append(([(e.label, e.text) for e in result.entries], result.touched))
        made = isinstance(book.entries, PackedEntries) and len(book.entries._made)
        if book is packed:
            assert 0 < made < 60
    assert len(told[0][0]) > 30
    assert told[0] == told[1]


def test_book_is_not_packed_when_a_value_of_the_turn_decides_its_keys():
    assert packed_and_read({"entries": [an_entry(1, keys=["{{user}}"])]})[0] is None


def test_book_is_not_packed_when_all_entries_have_settings_of_their_own():
    entries = [an_entry(n, content=f"@@probability {n % 97 + 1}\nText.") for n in range(1_100)]
    assert packed_and_read({"entries": entries})[0] is None
