"""An entry is changed where it stands, and the book is the one that reading it anew would give."""

import json
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.lorebook.book import Lorebook
from evennia_ai.engine.lorebook.entry import LoreEntry
from evennia_ai.engine.lorebook.rules import ActivationRules
from evennia_ai.engine.lorebook.scan.key_index import BookIndex, book_index_of
from evennia_ai.engine.lorebook.scan.matching import searchable
from evennia_ai.formats.lorebooks import books
from evennia_ai.formats.lorebooks.books import read_book
from evennia_ai.formats.lorebooks.editing.in_place import change_in_place
from tests.engine.lorebook.builders import DICE, a_world_entry, an_entry

WORDS = ["moon", "sea", "old gate", "海鸥", "ferry"]
SAID = "The moon over the sea, the old gate, 海鸥飞, a ferry and new words: tide, quay wall, 月."
CHANGES = st.fixed_dictionaries(
    {"keys": st.lists(st.sampled_from([*WORDS, "tide", "quay wall", "月", "/a+/"]), max_size=3)},
    optional={
        "content": st.sampled_from(["New.", "@@depth 2\nNew."]),
        "enabled": st.booleans(),
        "constant": st.booleans(),
        "scan_depth": st.sampled_from([1, 9]),
        "sources": st.sampled_from([["persona"], []]),
        "case_sensitive": st.booleans(),
    },
)


def v3_text(count: int = 5) -> str:
    entries = [an_entry(f"Lore {n}.", keys=[WORDS[n % 5], "moon"], id=n) for n in range(count)]
    book = {"spec": "lorebook_v3", "data": {"name": "Sea", "entries": entries, "extensions": {}}}
    return json.dumps(book, indent=2, ensure_ascii=False)


def world_text(count: int = 5) -> str:
    entries = {str(n): a_world_entry(f"Lore {n}.", key=[WORDS[n % 5]], uid=n) for n in range(count)}
    return json.dumps({"entries": entries, "name": "Sea"})


def read(text: str) -> Lorebook:
    return read_book(json.loads(text), label="sea")


def an_index(book: Lorebook) -> BookIndex:
    return book_index_of(book, rules=ActivationRules(), values={}, dice=DICE)


def awake(book: Lorebook) -> dict[int, set[str]]:
    """Which entries a text wakes, each with the keys that stand in it."""
    index = an_index(book)
    hits = index.table.hits(searchable(SAID))
    woken = {owner for key in hits for owner in index.owners.get(key, ())}
    return {
        at: {
            text
            for key, text in zip(
                index.entry_keys[at].primary, index.entry_keys[at].texts, strict=True
            )
            if key in hits
        }
        for at in woken
    }


def told(entry: LoreEntry) -> dict[str, object]:
    return {one.name: getattr(entry, one.name) for one in fields(entry)}


@pytest.mark.parametrize("text", [v3_text(), world_text()])
@given(changes=st.lists(st.tuples(st.integers(0, 4), CHANGES), min_size=1, max_size=5))
def test_after_changes_the_book_is_what_its_text_says(text, changes):
    book = read(text)
    an_index(book)
    for at, wanted in changes:
        change = change_in_place(book, text, at, wanted)
        assert change is not None
        book, text = change.book, change.text
    anew = read(text)
    assert [told(entry) for entry in book.entries] == [told(entry) for entry in anew.entries]
    assert book.notices == anew.notices
    assert awake(book) == awake(anew)
    index, other = an_index(book), an_index(anew)
    assert (index.asked, index.deepest, index.sources) == (
        other.asked,
        other.deepest,
        other.sources,
    )


def test_all_but_the_entry_stays_to_the_letter():
    text = v3_text()
    change = change_in_place(read(text), text, 2, {"content": "Another."})
    assert change is not None
    before, after = text.partition('"Lore 2."')[0], text.partition('"Lore 3."')
    assert change.text.startswith(before[: before.rindex("{")] + change.piece)
    assert change.text.endswith('"Lore 3."' + after[2])
    assert json.loads(change.piece)["content"] == "Another."


def test_of_ten_thousand_entries_the_changed_one_is_read_and_its_index_goes_on(monkeypatch):
    text = world_text(10_000)
    book = read(text)
    an_index(book)
    whole = []
    kept = books.read_fields
    monkeypatch.setattr(
        books, "read_fields", lambda raw, **how: whole.append(raw["uid"]) or kept(raw, **how)
    )
    change = change_in_place(book, text, 7, {"keys": ["tide"]})
    assert change is not None
    assert set(whole) == {7}
    kept_keys = an_index(change.book).entry_keys
    assert sum(a is not b for a, b in zip(kept_keys, an_index(book).entry_keys, strict=True)) == 1


@pytest.mark.parametrize(
    "text",
    [
        '{"entries": {"1": {"key": ["b"], "uid": 1}, "0": {"key": ["a"], "uid": 0}}}',
        '{"entries": [{"keys": ["a"]}], "entries": [{"keys": ["b"]}, {"keys": ["c"]}]}',
        '{"entries": {"0": {"key": ["a"], "uid": 0}, "0": {"key": ["b"], "uid": 1}}}',
        '{"lorebookVersion": 1, "entries": [{"text": "a", "keys": ["a"]}]}',
    ],
)
def test_change_in_place_is_correct_or_left_to_a_full_read_for_odd_texts(text):
    change = change_in_place(read(text), text, 0, {"content": "New."})
    assert change is None or read(change.text).entries[0].template.source == "New."


def test_err_what_an_edit_refuses_is_refused_in_place_too():
    text = v3_text()
    with pytest.raises(FormatError, match="unknown field 'moood'"):
        change_in_place(read(text), text, 0, {"moood": 3})


def test_a_change_that_concerns_the_notices_of_the_book_reads_the_whole():
    text = world_text()
    assert change_in_place(read(text), text, 0, {"content": "@@strange\nNew."}) is None


@pytest.mark.long
def test_removed_keys_do_not_accumulate_after_many_changes():
    text = v3_text()
    book = read(text)
    for number in range(2_000):
        an_index(book)
        change = change_in_place(book, text, 0, {"keys": [f"key{number}"]})
        assert change is not None
        book, text = change.book, change.text
    assert an_index(book).reader.count < 1_100
