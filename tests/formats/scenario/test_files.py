"""The lorebooks of a scenario: a book that is listed twice counts once."""

from typing import Any

import pytest

from evennia_ai.formats.scenario import read_scenario
from tests.formats.scenario.builders import a_book, a_card, an_entry


def read(*rows: dict[str, Any], rules: str = "evennia_ai", **more: Any) -> Any:
    settings = {"lore": {"rules": rules}}
    return read_scenario({"lorebooks": list(rows), "settings": settings, **more})


def a_row(attach: str, *, name: str = "town", content: str = "A town.") -> dict[str, Any]:
    return {"name": name, "attach": attach, "book": a_book(an_entry(content))}


@pytest.mark.parametrize(
    ("rules", "places", "kept"),
    [
        ("evennia_ai", ["global", "character"], "character"),
        ("evennia_ai", ["room", "chat", "zone"], "chat"),
        ("sillytavern", ["global", "character"], "global"),
        ("sillytavern", ["character", "chat", "global"], "global"),
        ("sillytavern", ["character", "chat"], "chat"),
        ("sillytavern", ["character", "room"], "room"),
    ],
)
def test_lorebook_that_is_attached_several_times_is_used_once(
    rules: str, places: list[str], kept: str
) -> None:
    scenario = read(*map(a_row, places), rules=rules)
    assert [(book.label, book.attach) for book in scenario.books] == [("town", kept)]
    notice = (
        "lorebook town: is listed more than once with the same content; it is used once, assigned"
        f" to {kept}"
    )
    assert scenario.notices == (notice,) * (len(places) - 1)


def test_books_with_the_same_name_and_different_content_are_both_used() -> None:
    books = read(a_row("global"), a_row("character", content="Another town.")).books
    assert [book.label for book in books] == ["town", "town (2)"]


def test_books_with_the_same_content_and_different_names_are_both_used() -> None:
    books = read(a_row("global"), a_row("global", name="city")).books
    assert [book.label for book in books] == ["town", "city"]


def test_books_keep_the_order_of_the_list_without_repeated_ones() -> None:
    rows = [a_row("global"), a_row("global", name="sea"), a_row("chat"), a_row("chat", name="sky")]
    assert [book.label for book in read(*rows).books] == ["sea", "town", "sky"]


def test_cards_book_and_a_listed_book_are_both_used() -> None:
    own = a_book(an_entry("Lamps."), name="lamps")
    rows = [{"book": own, "attach": "global"}]
    books = read(*rows, card=a_card(an_entry("Other lamps."))).books
    assert [(book.label, book.attach) for book in books] == [
        ("lamps (card)", "character"),
        ("lamps", "global"),
    ]


@pytest.mark.parametrize("rules", ["evennia_ai", "sillytavern"])
@pytest.mark.parametrize("attach", ["global", "npc", "character", "chat"])
@pytest.mark.parametrize("extensions", [{}, {"world": "lamps"}])
def test_cards_book_is_used_once_when_the_scenario_also_lists_the_book(
    attach: str, rules: str, extensions: dict[str, Any]
) -> None:
    own = a_book(an_entry("Lamps."), name="lamps")
    card = a_card(an_entry("Lamps."), extensions=extensions)
    made = read({"book": own, "attach": attach}, card=card, rules=rules)
    assert [(book.label, book.attach) for book in made.books] == [("lamps", attach)]
    [told] = [notice for notice in made.notices if "the card has a copy of this lorebook" in notice]
    assert told.startswith("lorebook lamps: the card has a copy of this lorebook ('lamps')")


def test_world_file_that_a_card_names_replaces_the_copy_in_the_card() -> None:
    rows = [{"book": a_book(an_entry("New lamps.")), "name": "Lamps", "attach": "npc"}]
    made = read(*rows, card=a_card(an_entry("Lamps."), extensions={"world": "lamps"}))
    assert [[one.template.source for one in book.entries] for book in made.books] == [
        ["New lamps."]
    ]
    assert "the card has a copy of this lorebook with other entries" in str(made.notices)


@pytest.mark.parametrize(("row", "mode"), [({}, "frozen"), ({"mode": "floating"}, "floating")])
def test_mode_in_the_scenario_overrides_the_mode_in_the_books_file(
    row: dict[str, Any], mode: str
) -> None:
    book = {**a_book(an_entry("A town.")), "extensions": {"evennia_ai": {"mode": "frozen"}}}
    [read_in] = read({"name": "town", "book": book, **row}).books
    assert read_in.mode == mode
