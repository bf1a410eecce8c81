"""Following: what this game has taken changes with the library, and stays when the library is away.

A look asks the library for the hashes of all its entries at once; only what changed is read. What
one entry is refused for is told and holds up no other.
"""

from dataclasses import dataclass
from typing import Final

from evennia_ai.engine.actors import Actor, trusted
from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.store.core.copies import copies, mark
from evennia_ai.store.library.bases import MOST_WRITTEN, take_base
from evennia_ai.store.library.cards import take_card
from evennia_ai.store.library.entries import Entry, entries, reading

LOOKING_SECONDS: Final = 10.0
BY: Final = trusted("the library")


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a look at the library found, as commands name it."""

    bases: tuple[str, ...] = ()
    """Bases that changed here."""
    cards: tuple[str, ...] = ()
    """Cards that changed there, and wait here for approval."""
    gone: tuple[str, ...] = ()
    """What is in the library no more, since this look."""
    refused: tuple[tuple[str, str], ...] = ()
    """What could not be taken, with the reason."""


def look() -> Look:
    """Take what changed of all that this game has taken; LibraryError: the library is away."""
    known = copies()
    if not known:
        return Look()
    with reading(seconds=LOOKING_SECONDS):
        found = {(one.kind, one.name): one for one in entries()}
    changed: dict[str, list[str]] = {"base": [], "card": []}
    gone: list[str] = []
    refused: list[tuple[str, str]] = []
    for copy in known:
        entry = found.get((copy.kind, copy.name))
        if copy.is_gone != (entry is None):
            mark(copy.kind, copy.name, is_gone=entry is None)
            gone += [copy.typed] if entry is None else []
        if entry is None or entry.sha256 == copy.sha256:
            continue
        try:
            take(entry, by=BY, most=MOST_WRITTEN)
            changed[copy.kind].append(copy.typed)
        except EvenniaAIError as error:
            refused.append((copy.typed, str(error)))
    return Look(
        bases=tuple(changed["base"]),
        cards=tuple(changed["card"]),
        gone=tuple(gone),
        refused=tuple(refused),
    )


def take(entry: Entry, *, by: Actor, most: int | None = None) -> object:
    """Take an entry, whatever it is; errors as `take_base` and `take_card`."""
    return take_base(entry, by=by, most=most) if entry.kind == "base" else take_card(entry, by=by)
