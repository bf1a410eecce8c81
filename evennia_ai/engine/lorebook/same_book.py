"""Detect that the book inside a card is a copy of another lorebook of the NPC.

SillyTavern stores the lorebook of a card twice: in the card and as a world file. The world file
that the card names in `extensions.world` applies. The book in the card is only a copy from the time
when the card was last saved.

Two books also count as copies of each other if their entries have the same keys and texts. Other
fields may differ, because each format has its own defaults.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from evennia_ai.engine.lorebook.book import Lorebook
from evennia_ai.engine.prompt.memo import Memo, Slot
from evennia_ai.engine.text.normal_form import normal_form

_Content = tuple[tuple[tuple[str, ...], tuple[str, ...], str], ...]
_CONTENT: Final = Slot[_Content]("content")
_RELABELLED: Final = Slot[dict[str, Lorebook]]("relabelled")


def has_same_content(one: Lorebook, other: Lorebook) -> bool:
    """True if the entries of two books have the same keys and texts, in any order."""
    return len(one.entries) == len(other.entries) and _content(one) == _content(other)


def _content(book: Lorebook) -> _Content:
    known = book.of_entries.get(_CONTENT)
    if known is None:
        known = tuple(
            sorted(
                (
                    _comparable_keys(entry.keys),
                    _comparable_keys(entry.secondary_keys),
                    "\n".join(normal_form(entry.template.source).split()),
                )
                for entry in book.entries
            )
        )
        book.of_entries[_CONTENT] = known
    return known


def _comparable_keys(keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted({stripped for key in keys if (stripped := normal_form(key).strip())}))


def copy_of(own: Lorebook, attached: Sequence[Lorebook], *, world: str = "") -> Lorebook | None:
    """Return the attached lorebook of which the card's book is a copy; None if it is no copy.

    A player's book counts only if its content is the same. So a card cannot claim it by name.

    Args:
        own: The book in the card.
        attached: The other books of the NPC.
        world: The name of the book that the card is linked with (`linked_world`).
    """
    linked = _folded(world)
    for book in attached:
        if linked and book.attach != "player" and _folded(book.label) == linked:
            return book
    return next((book for book in attached if own.entries and has_same_content(own, book)), None)


def linked_world(extensions: Mapping[str, Any]) -> str:
    """Return the name of the lorebook that a card names in SillyTavern's field `world`, or ""."""
    world = extensions.get("world")
    return " ".join(world.split()) if isinstance(world, str) else ""


def _folded(name: str) -> str:
    return " ".join(normal_form(name).casefold().split())


def describe_copy(own: Lorebook, counting: Lorebook) -> str:
    """Say that a card contains a copy of a lorebook, and which of the two books applies."""
    differs = "" if has_same_content(own, counting) else " with other entries"
    return (
        f"the card has a copy of this lorebook{differs} ('{own.label}'), which is ignored, because"
        f" this lorebook is assigned to {counting.attach}"
    )


def with_free_label(book: Lorebook, taken: Sequence[str]) -> Lorebook:
    """Return a card's lorebook, with another label if an assigned book already has its label."""
    label, number = book.label, 1
    folded = {name.casefold() for name in taken}
    while label.casefold() in folded:
        label = f"{book.label} (card)" if number == 1 else f"{book.label} (card {number})"
        number += 1
    return with_label(book, label)


def with_label(book: Lorebook, label: str) -> Lorebook:
    """Return a copy of the lorebook with another label.

    Both share the cached results that depend only on the entries.
    """
    if label == book.label:
        return book
    known = book.memo.setdefault(_RELABELLED, {})
    if label not in known:
        entries = tuple(replace(e, origin=f"lore:{label}#{e.uid}") for e in book.entries)
        known[label] = replace(book, label=label, entries=entries, memo=Memo())
    return known[label]


def with_own_book(
    own: Lorebook, attached: Sequence[Lorebook], *, world: str = ""
) -> tuple[Lorebook, ...]:
    """Return all lorebooks of an NPC: the attached books, after the card's book if it is no copy.

    The card's book gets a label that no attached book has. If it is a copy of an attached book, the
    field `told` of the attached book says so in traces.
    """
    counting = copy_of(own, attached, world=world)
    if counting is None:
        return (with_free_label(own, [book.label for book in attached]), *attached)
    told = "; ".join(filter(None, (counting.told, describe_copy(own, counting))))
    return tuple(replace(book, told=told) if book is counting else book for book in attached)
