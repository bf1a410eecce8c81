"""Cards and presets as builders see them: what they may do, who gave it, what waits, who uses them.

Commands and pages render these values.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evennia_ai.engine.prompt.components import Grant
from evennia_ai.npc.mind.npc_list import npc_names
from evennia_ai.store.authored.cards import assignment_of, players_of
from evennia_ai.store.authored.life_cycle import ImportedKind, Revision, grant_givers
from evennia_ai.store.core.authoring import Change
from evennia_ai.store.core.snapshots import value_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedState:
    """A card or preset, and its imports that wait. Changes are oldest first."""

    name: str
    revision: int | None
    """The current revision; None if nothing was approved yet, or if it was removed."""
    newest: int
    """The newest revision, counting imports and removals."""
    made_by: tuple[Change, ...]
    """The changes that wrote the current file or first approved it."""
    grants: Mapping[Grant, Change]
    """The change that gave each grant of the current revision."""
    waiting: tuple[Change, ...]
    revisions: tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CardPlayer:
    """An NPC that plays a card."""

    ref: str
    name: str
    greeting: int | None
    """The greeting with which it opens conversations; None for none."""


def see_imported(kind: ImportedKind[Any], name: str) -> ImportedState:
    """Return the state of a card or preset."""
    now, changes = kind.current(name), kind.revisions(name)
    return ImportedState(
        name=name,
        revision=now.revision if now is not None else None,
        newest=kind.newest_number(name),
        made_by=tuple(_plain(one) for one in changes if now is not None and _made(one, now)),
        grants=(
            {grant: _plain(one) for grant, one in grant_givers(changes).items()}
            if now is not None
            else {}
        ),
        waiting=tuple(map(_plain, kind.waiting(name))),
        revisions=tuple(map(_plain, changes)),
    )


def see_players(card: str) -> tuple[CardPlayer, ...]:
    """Return the NPCs that play a card."""
    refs = players_of(card)
    names = npc_names(refs)
    return tuple(
        CardPlayer(
            ref=ref,
            name=names.get(ref, f"#{ref}"),
            greeting=found.greeting if (found := assignment_of(ref)) else None,
        )
        for ref in refs
    )


def _plain(change: Revision[Any]) -> Change:
    return value_of(Change, change)


def _made(change: Revision[Any], thing: Any) -> bool:
    return bool(
        change.number == thing.revision
        or (
            change.action in ("created", "updated", "approved")
            and change.value.sha256 == thing.sha256
        )
    )
