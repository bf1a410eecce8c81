"""Tests that the book in a card counts as a copy of the same book among the attached ones."""

import pytest

from evennia_ai.engine.lorebook.same_book import (
    copy_of,
    linked_world,
    with_free_label,
    with_own_book,
)
from evennia_ai.formats.lorebooks.books import read_book
from tests.engine.lorebook.builders import a_book, a_scan, a_world_entry, an_entry, awake, texts

LORE = an_entry("The mill stands still.", keys=["mill"])


def own_book(*entries, label="Lore of Brand"):
    return a_book(*entries, label=label, attach="character")


def a_world(*entries, label="Lore of Brand", attach="npc"):
    data = {"entries": {str(at): {**one, "uid": at} for at, one in enumerate(entries)}}
    return read_book(data, label=label, attach=attach)


MILL = a_world_entry("The mill stands still.", key=["mill"], order=7, position=4, comment="x")


@pytest.mark.parametrize(
    ("own", "attached", "world", "counts_once"),
    [
        (own_book(LORE), a_world(MILL), "Lore of Brand", True),
        (own_book(LORE), a_world(MILL, label="another name"), "", True),
        (own_book(LORE, label="x"), a_world(MILL, label="The Mill"), "the  MILL", True),
        (own_book(LORE), a_world(a_world_entry("Edited.", key=["mill"])), "lore of brand", True),
        (own_book(LORE), a_world(a_world_entry("Edited.", key=["mill"])), "", False),
        (own_book(LORE), a_world(a_world_entry("Edited.", key=["mill"])), "Other", False),
        (own_book(LORE), a_world({**MILL, "key": ["wheel"]}), "", False),
        (own_book(LORE), a_world({**MILL, "key": [" mill ", ""]}), "", True),
        (own_book(LORE), a_world({**MILL, "keysecondary": ["old"]}), "", False),
        (own_book(LORE), a_world(MILL, MILL), "", False),
        (own_book(LORE, an_entry()), a_world(a_world_entry(), MILL), "", True),
        (
            own_book(an_entry("Caf\u00e9.", keys=["caf\u00e9"])),
            a_world(a_world_entry("Caf\u00e9.", key=["cafe\u0301"])),
            "",
            True,
        ),
        (own_book(an_entry("Caf\u00e9.")), a_world(a_world_entry("Cafe\u0301.")), "", True),
        (own_book(LORE), a_world(MILL, attach="player"), "", True),
        (
            own_book(LORE),
            a_world(a_world_entry("Edited.", key=["mill"]), attach="player"),
            "Lore of Brand",
            False,
        ),
        (own_book(an_entry("One.\nTwo.")), a_world(a_world_entry("One.\r\nTwo. ")), "", True),
        (own_book(), a_world(), "", False),
        (own_book(), a_world(MILL), "Lore of Brand", True),
    ],
)
def test_book_of_a_card_is_a_copy_of_the_linked_or_an_equal_book(own, attached, world, counts_once):
    assert copy_of(own, [a_world(label="z"), attached], world=world) is (
        attached if counts_once else None
    )
    books = with_own_book(own, [attached], world=world)
    assert len(books) == (1 if counts_once else 2)
    assert len({book.label for book in books}) == len(books)
    assert bool(books[-1].told) == counts_once


@pytest.mark.parametrize(
    ("taken", "label"),
    [
        ([], "Lore"),
        (["lorebook"], "Lore"),
        (["LORE"], "Lore (card)"),
        (["Lore", "Lore (card)"], "Lore (card 2)"),
    ],
)
def test_book_of_a_card_gets_a_label_that_no_other_book_has(taken, label):
    own = own_book(LORE, label="Lore")
    made = with_free_label(own, taken)
    assert made is with_free_label(own, taken)
    assert (made.label, made.entries[0].origin) == (label, f"lore:{label}#0")


def test_entries_of_books_with_one_name_have_different_labels():
    own, other = own_book(LORE), a_world(a_world_entry("The wheel turns.", key=["mill"]))
    result = awake(*with_own_book(own, [other]), scan=a_scan("user: The mill?"))
    assert sorted(texts(result)) == ["The mill stands still.", "The wheel turns."]
    labels = [entry.label for entry in result.entries]
    assert sorted(labels) == ["Lore of Brand (card)#0", "Lore of Brand#0"]


@pytest.mark.parametrize("world", [None, 5, "", "  ", ["x"]])
def test_card_world_that_is_no_text_links_no_book(world):
    assert linked_world({"world": world}) == ""
