"""Which books are one: SillyTavern keeps a card's book in the card and in its folder of worlds.

There the world that `extensions.world` of a card names is the book that counts, and the copy in the
card is what the card was last saved with. A book is also known by its content: the keys and the
texts of its entries. Order, place and the rest may differ, as each format has its own defaults.
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
    """True if two books have entries with the same keys and texts, in whatever order."""
    return len(one.entries) == len(other.entries) and _content(one) == _content(other)


def _content(book: Lorebook) -> _Content:
    known = book.of_entries.get(_CONTENT)
    if known is None:
        known = tuple(
            sorted(
                (
                    _compared(entry.keys),
                    _compared(entry.secondary_keys),
                    "\n".join(entry.template.source.split()),
                )
                for entry in book.entries
            )
        )
        book.of_entries[_CONTENT] = known
    return known


def _compared(keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted({stripped for key in keys if (stripped := normal_form(key).strip())}))


def copy_of(own: Lorebook, attached: Sequence[Lorebook], *, world: str = "") -> Lorebook | None:
    """Return the attached book that a card's own book is a copy of, or None.

    Args:
        own: The book in the card.
        attached: The books that count beside it.
        world: The name of the book that the card is linked with (`linked_world`).
    """
    linked = _folded(world)
    for book in attached:
        if linked and _folded(book.label) == linked:
            return book
    return next((book for book in attached if own.entries and has_same_content(own, book)), None)


def linked_world(extensions: Mapping[str, Any]) -> str:
    """Return the name of the book that a card is linked with, as SillyTavern writes it, or ""."""
    world = extensions.get("world")
    return " ".join(world.split()) if isinstance(world, str) else ""


def _folded(name: str) -> str:
    return " ".join(normal_form(name).casefold().split())


def told_of_copy(own: Lorebook, counting: Lorebook) -> str:
    """Return the sentence of a trace or a notice: the card has the book too, and which counts."""
    differs = "" if has_same_content(own, counting) else " with other entries"
    return (
        f"the card has this lorebook{differs} too ('{own.label}'): this one counts, attached to"
        f" {counting.attach}, and not the copy in the card"
    )


def relabelled(book: Lorebook, taken: Sequence[str]) -> Lorebook:
    """Return a card's own book under a label that none of these is: itself, if its own is free."""
    label, number = book.label, 1
    folded = {name.casefold() for name in taken}
    while label.casefold() in folded:
        label = f"{book.label} (card)" if number == 1 else f"{book.label} (card {number})"
        number += 1
    return with_label(book, label)


def with_label(book: Lorebook, label: str) -> Lorebook:
    """Return the book, called so in verdicts; what follows from its entries is shared."""
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
    """Return the books of an NPC, with the one in its card in front unless it is a copy of another.

    No two of them have the same label. One that counts for the copy in the card says so in traces.
    """
    counting = copy_of(own, attached, world=world)
    if counting is None:
        return (relabelled(own, [book.label for book in attached]), *attached)
    told = "; ".join(filter(None, (counting.told, told_of_copy(own, counting))))
    return tuple(replace(book, told=told) if book is counting else book for book in attached)
