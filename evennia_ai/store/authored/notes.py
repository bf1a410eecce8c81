"""Author's notes of NPCs, and their revisions: who changed which note, when, and to what.

Numbers go on when a note is cleared and written again, so that a number means one text for ever.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from evennia_ai import models
from evennia_ai.errors import ComponentValueError, NotStoredError
from evennia_ai.foreign.fields import Must, checker, wrong_in
from evennia_ai.history.records import canonical_json, storable
from evennia_ai.prompt.components import MAX_CONTENT, MAX_DEPTH
from evennia_ai.prompt.messages import Role
from evennia_ai.prompt.notes import NoteMode
from evennia_ai.prompt.templates.template import compile_template
from evennia_ai.store.core.authoring import Change, Revisions
from evennia_ai.store.core.snapshots import NOTES, Snapshots, changing, value_of

Action = Literal["created", "updated", "removed"]

MAX_POSITION: Final = 99
MAX_EVERY: Final = 10**6
# What a revision has columns of its own for.
_KEPT_APART: Final = ("position", "revision")

_revisions: Final = Revisions(models.NoteRevision)

_FROM_0: Final = "a whole number, 0 or more"
_Text = Annotated[
    str,
    Field(max_length=MAX_CONTENT),
    Must(f"text of at most {MAX_CONTENT} characters", lambda text: storable(text) == text),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredNote:
    """A note `depth` messages from the newest, due every `every` messages of role user.

    `mode` says whether it keeps a place it once had (`evennia_ai.prompt.notes`).
    """

    position: Annotated[int, Field(ge=0, le=MAX_POSITION)] = 0
    content: _Text = ""
    depth: Annotated[int, Field(ge=0, le=MAX_DEPTH), Must(f"{_FROM_0}, at most {MAX_DEPTH}")] = 4
    role: Role = "system"
    every: Annotated[
        int, Field(ge=0, le=MAX_EVERY), Must(f"{_FROM_0}, at most {MAX_EVERY}; 0 is never")
    ] = 1
    mode: NoteMode = "floating"
    revision: int = 0

    def __post_init__(self) -> None:
        if not _is_allowed(self) and (wrong := wrong_in(self)):
            field, wanted = wrong
            raise ComponentValueError(f"the note's {field}", getattr(self, field), wanted)


_is_allowed: Final = checker(StoredNote)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteChange(Change):
    """One change of a note."""

    npc_ref: str
    position: int
    action: Action
    value: Mapping[str, Any] | None
    """What the note says since, None where it was removed."""


def set_note(
    npc_ref: str,
    position: int = 0,
    *,
    by: str,
    content: str | None = None,
    depth: int | None = None,
    role: Role | None = None,
    every: int | None = None,
    mode: NoteMode | None = None,
) -> StoredNote:
    """Set what is given of a note and leave the rest; the note as it is now.

    ComponentValueError: a value is not allowed. TemplateError: the content is no valid template.
    """
    given = {"content": content, "depth": depth, "role": role, "every": every, "mode": mode}
    wanted = {name: value for name, value in given.items() if value is not None}
    with changing(NOTES, f"setting the note of NPC {npc_ref}"):
        kept = {note.position: note for note in _load(npc_ref)}
        old = kept.get(position, StoredNote(position=position))
        note = replace(old, **wanted)  # type: ignore[arg-type]
        if position in kept and note == old:
            return old
        compile_template(note.content, trust="builder")
        action: Action = "updated" if position in kept else "created"
        number = record_note_revision(npc_ref, position, action=action, value=_said(note), by=by)
        note = replace(note, revision=number)
        columns = {f.name: getattr(note, f.name) for f in fields(note)}
        models.Note.objects.update_or_create(
            npc_ref=npc_ref, position=position, defaults={**columns, "changed_by": by}
        )
        notes_for.written(npc_ref)
    return note


def clear_notes(npc_ref: str, *, by: str) -> int:
    """Remove all notes of an NPC; how many there were."""
    with changing(NOTES, f"clearing the notes of NPC {npc_ref} for {by}"):
        for note in _load(npc_ref):
            record_note_revision(npc_ref, note.position, action="removed", value=None, by=by)
        removed, _ = models.Note.objects.filter(npc_ref=npc_ref).delete()
        notes_for.written(npc_ref)
    return removed


def note_then(npc_ref: str, position: int, number: int) -> StoredNote:
    """A note as its revision of this number left it.

    NotStoredError: there is no such number, or it is the one that removed the note.
    """
    value = note_change(npc_ref, position, number).value
    if value is None:
        raise NotStoredError("note in revision", f"{position} {number}: it removed it")
    return StoredNote(position=position, revision=number, **value)


def record_note_revision(
    npc_ref: str, position: int, *, action: Action, value: Mapping[str, Any] | None, by: str
) -> int:
    """Write down one change, in the transaction that makes it; the number it got."""
    key: dict[str, Any] = {"npc_ref": npc_ref, "position": position}
    told = "" if value is None else canonical_json(dict(value))
    number = _revisions.next_number(**key)
    return _revisions.write(number, action=action, by=by, value=told, **key)


def note_change(npc_ref: str, position: int, number: int) -> NoteChange:
    """One change of a note; NotStoredError: there is no such number."""
    row = _revisions.of(npc_ref=npc_ref, position=position).filter(number=number).first()
    if row is None:
        raise NotStoredError(f"revision of note {position} of NPC {npc_ref} with number", number)
    value = json.loads(row.value) if row.value else None
    return value_of(NoteChange, row, value=value)


def _said(note: StoredNote) -> dict[str, Any]:
    """What a revision keeps of a note."""
    kept = {f.name: getattr(note, f.name) for f in fields(note)}
    return {name: value for name, value in kept.items() if name not in _KEPT_APART}


def _load(npc_ref: str) -> tuple[StoredNote, ...]:
    names = [f.name for f in fields(StoredNote)]
    rows = models.Note.objects.filter(npc_ref=npc_ref).order_by("position").values(*names)
    return tuple(StoredNote(**row) for row in rows)


notes_for: Final = Snapshots(NOTES, _load)
"""The notes of an NPC in their order; the same object until one is changed."""
