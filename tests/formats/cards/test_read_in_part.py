"""Cards and books with unreadable fields can still be shown, edited and exported.

Real files have null, numbers, lists and other programs' spellings in any field. A card or a book
that was imported must always stay editable.
"""

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evennia_ai.engine.errors import FormatError
from evennia_ai.formats.cards.card import read_card
from evennia_ai.formats.cards.comparing import card_differences, changed_fields
from evennia_ai.formats.cards.components import card_components, character_book
from evennia_ai.formats.cards.exporting import FORMS, dump_card
from evennia_ai.formats.cards.loading import CardImport, load_card
from evennia_ai.formats.cards.report.import_report import report_lines
from evennia_ai.formats.cards.report.making import import_report
from evennia_ai.formats.lorebooks.books import book_of_card, read_book
from evennia_ai.formats.lorebooks.conversion import as_v3, as_world
from evennia_ai.formats.lorebooks.editing.comparing import book_differences
from evennia_ai.formats.lorebooks.editing.edits import add_entry, change_entry, remove_entry
from evennia_ai.formats.lorebooks.editing.lints import lint_book
from evennia_ai.formats.scenario import run_scenario
from tests.formats.cards.builders import card_data

QUICK = settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.too_slow])
V3_ENTRY: dict[str, Any] = {
    "id": 1,
    "keys": ["mill"],
    "secondary_keys": ["weir"],
    "content": "@@depth 2\nThe mill grinds.",
    "comment": "the mill",
    "enabled": True,
    "insertion_order": 5,
    "position": "before_char",
    "selective": True,
    "extensions": {"position": 4, "role": 1, "sticky": 2, "evennia_ai": {"clock": "turns"}},
}
WORLD_ENTRY: dict[str, Any] = {
    "uid": 2,
    "key": ["sluice"],
    "keysecondary": [],
    "content": "The sluice is shut.",
    "comment": "",
    "disable": False,
    "order": 10,
    "position": 1,
    "role": None,
    "group": "a, b",
    "characterFilter": {"isExclude": False, "names": ["Ida"], "tags": []},
    "extensions": {"depth": 2},
}
CARD = card_data(
    tags=["bees"],
    alternate_greetings=["Ho."],
    assets=[{"type": "icon", "uri": "ccdefault:", "name": "main", "ext": "png"}],
    character_book={
        "name": "bees",
        "scan_depth": 2,
        "extensions": {},
        "entries": [V3_ENTRY, {**V3_ENTRY, **WORLD_ENTRY}, WORLD_ENTRY],
    },
    extensions={"depth_prompt": {"prompt": "Dry.", "depth": 2, "role": "user"}, "world": "w"},
)
BOOKS: dict[str, dict[str, Any]] = {
    "v3": {"spec": "lorebook_v3", "data": CARD["data"]["character_book"]},
    "world": {"name": "w", "entries": {"1": WORLD_ENTRY, "2": {**V3_ENTRY, **WORLD_ENTRY}}},
    "agnai": {
        "kind": "memory",
        "entries": [{"entry": "A", "keywords": ["a*"], "weight": 2, "priority": 3}],
    },
    "novelai": {
        "lorebookVersion": 5,
        "entries": [{"text": "N", "keys": ["n"], "contextConfig": {"budgetPriority": 4}}],
        "categories": [{"id": "c", "name": "C", "enabled": False}],
    },
    "risu": {
        "type": "risu",
        "data": [{"content": "@@end\nR", "key": "r, s", "insertorder": 3, "useRegex": False}],
    },
}
ODD = st.sampled_from(
    [None, True, 0, 1, -1, 2.5, "", "x", "a, b", "7", [], [None], [1, "a"], ["b"], {}, {"a": 1}]
)


def places_in(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each member and item in a JSON value: what contains it, and its name or index."""
    for name, inner in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, name
        if isinstance(inner, dict | list):
            yield from places_in(inner)


@st.composite
def spoilt(draw: st.DrawFn, value: Any) -> Any:
    """Return a copy of a JSON value in which a few members have other values."""
    made = json.loads(json.dumps(value))
    for _ in range(draw(st.integers(1, 3))):
        holder, name = draw(st.sampled_from(list(places_in(made))))
        holder[name] = deepcopy(draw(ODD))
    return made


@pytest.mark.long
@QUICK
@given(spoilt(CARD["data"]))
def test_card_with_unreadable_fields_can_be_reported_edited_exported_and_composed(data):
    try:
        card = read_card({**CARD, "data": data})
    except FormatError as error:
        assert "card.data" in error.message
        return
    book = character_book(card)
    assert all(report_lines(import_report(CardImport(card=card, carrier="json"))))
    assert card_components(card)
    if book is not None:
        lint_book(book, source=card.character_book)
    for form in FORMS:
        written = load_card(dump_card(card, form, modified_at=1, with_v2=form == "png")).card
        again = character_book(written)
        if book is not None and again is not None:
            assert [bool(one.refused) for one in again.entries] == [
                bool(one.refused) for one in book.entries
            ]
    edited = load_card(dump_card(replace(card, personality="New."), "json", modified_at=1)).card
    assert edited.personality == "New."
    files = json.dumps(CARD), json.dumps({**CARD, "data": data})
    for older, newer in (files, files[::-1]):
        assert list(card_differences(older, newer)) or not list(changed_fields(CARD, card.source))
    scenario = {"card": json.loads(json.dumps(card.source)), "event": {"content": "The mill?"}}
    assert run_scenario(scenario)["messages"]
    if card.character_book is not None:
        edit_each(dict(book_of_card(card.character_book)))


@pytest.mark.long
@QUICK
@pytest.mark.parametrize("name", BOOKS)
@given(data=st.data())
def test_book_with_unreadable_fields_is_converted_and_edited(name, data):
    book = data.draw(spoilt(BOOKS[name]))
    try:
        read = read_book(book)
    except FormatError:
        return
    lint_book(read, source=book)
    assert book_differences(book, BOOKS[name]) is not None
    assert book_differences(BOOKS[name], book) is not None
    made, world = as_v3(book), as_world(book)
    for other in (made, world):
        assert [bool(one.refused) for one in read_book(other).entries] == [
            bool(one.refused) for one in read.entries
        ]
    edit_each(book)


@pytest.mark.parametrize("book", ["x", 5, [None], {"entries": [None, "x", {"id": 3}]}])
def test_revisions_of_a_card_with_an_odd_book_can_be_compared(book: Any) -> None:
    odd = json.dumps(card_data(character_book=book))
    for older, newer in ((json.dumps(CARD), odd), (odd, json.dumps(CARD))):
        assert list(card_differences(older, newer))


def edit_each(book: dict[str, Any]) -> None:
    """Change and remove every entry of a lorebook, and add one."""
    try:
        entries = read_book(book).entries
    except FormatError:
        return
    for entry in entries:
        assert len(read_book(remove_entry(book, entry.uid)).entries) == len(entries) - 1
        if entry.refused != "must be an object":
            changed = read_book(change_entry(book, entry.uid, {"name": "new", "order": 3}))
            assert changed.entries[entry.index].name == "new"
    added, uid = add_entry(book, {"content": "New."})
    assert uid in [one.uid for one in read_book(added).entries]
