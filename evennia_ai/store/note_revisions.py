"""Revisions of author's notes: who changed which note of an NPC, when, and to what.

Numbers go on when a note is cleared and written again, so that a number means one text for ever.
"""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from django.db.models import Max

from evennia_ai import models
from evennia_ai.history.records import canonical_json
from evennia_ai.store.errors import NotStoredError

Action = Literal["created", "updated", "removed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteChange:
    """One change of a note; `value` is what it says since, None where it was removed.

    `changed_at` is in epoch seconds.
    """

    npc_ref: str
    position: int
    number: int
    action: Action
    changed_by: str
    changed_at: float
    value: Mapping[str, Any] | None


def record_note_revision(
    npc_ref: str, position: int, *, action: Action, value: Mapping[str, Any] | None, by: str
) -> int:
    """Write down one change, in the transaction that makes it; the number it got."""
    number = 1 + newest_number(npc_ref, position)
    models.NoteRevision.objects.create(
        npc_ref=npc_ref,
        position=position,
        number=number,
        action=action,
        changed_by=by,
        changed_at=time.time(),
        value="" if value is None else canonical_json(dict(value)),
    )
    return number


def newest_number(npc_ref: str, position: int) -> int:
    """The newest revision number of a note, removals counted; 0 where there never was one."""
    return _rows(npc_ref, position).aggregate(newest=Max("number"))["newest"] or 0


def note_change(npc_ref: str, position: int, number: int) -> NoteChange:
    """One change of a note; NotStoredError: there is no such number."""
    row = _rows(npc_ref, position).filter(number=number).first()
    if row is None:
        raise NotStoredError(f"revision of note {position} of NPC {npc_ref} with number", number)
    return NoteChange(
        npc_ref=row.npc_ref,
        position=row.position,
        number=row.number,
        action=row.action,
        changed_by=row.changed_by,
        changed_at=row.changed_at,
        value=json.loads(row.value) if row.value else None,
    )


def _rows(npc_ref: str, position: int) -> Any:
    return models.NoteRevision.objects.filter(npc_ref=npc_ref, position=position)
