"""Author's notes of NPCs by their keys, and their revisions: who changed which, when, and to what.

Numbers go on when a note is cleared and written again, so that a number means one text for ever.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from evennia_ai import models
from evennia_ai.actors import Actor
from evennia_ai.errors import (
    ComponentValueError,
    NotStoredError,
    StoreError,
)
from evennia_ai.foreign.fields import Must, checker, wrong_in
from evennia_ai.history.records import canonical_json, storable
from evennia_ai.prompt.components import DEFAULT_ORDER, MAX_CONTENT, MAX_DEPTH, Order
from evennia_ai.prompt.messages import Role
from evennia_ai.prompt.notes import NoteMode, NotePlace
from evennia_ai.prompt.templates.template import compile_template
from evennia_ai.store.core.authoring import Change, Revisions
from evennia_ai.store.core.snapshots import NOTES, Snapshots, changing, value_of

Action = Literal["created", "updated", "removed", "reverted"]

NOTE: Final = "note"
"""The key of the note that is meant where none is named."""
MOST_NOTES: Final = 100
"""Notes that one NPC may have."""
MAX_EVERY: Final = 10**6
# What a revision has columns of its own for.
_KEPT_APART: Final = ("key", "revision")

_revisions: Final = Revisions(models.NoteRevision)

_FROM_0: Final = "a whole number, 0 or more"
_Key = Annotated[
    str,
    Field(pattern=r"^([a-z][a-z0-9_]{0,39})?$"),
    Must("a small letter, then small letters, digits or _, at most 40"),
]
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

    key: _Key = NOTE
    """"" where it is a note of a turn from before notes had keys."""
    content: _Text = ""
    depth: Annotated[int, Field(ge=0, le=MAX_DEPTH), Must(f"{_FROM_0}, at most {MAX_DEPTH}")] = 4
    role: Role = "system"
    every: Annotated[
        int, Field(ge=0, le=MAX_EVERY), Must(f"{_FROM_0}, at most {MAX_EVERY}; 0 is never")
    ] = 1
    mode: NoteMode = "floating"
    place: NotePlace = ""
    """Beside which component it stands; depth, order and mode do not count then."""
    order: Order = DEFAULT_ORDER
    """Which stands first at one depth, low first."""
    enabled: bool = True
    revision: int = 0

    def __post_init__(self) -> None:
        if not _are_allowed(_values(self)) and (wrong := wrong_in(self)):
            field, wanted = wrong
            raise ComponentValueError(f"the note's {field}", getattr(self, field), wanted)


_values, _are_allowed = checker(StoredNote)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteChange(Change):
    """One change of a note."""

    npc_ref: str
    key: str
    action: Action
    value: Mapping[str, Any] | None
    """What the note says since, None where it was removed."""


def set_note(
    npc_ref: str,
    key: str = NOTE,
    *,
    by: Actor,
    expected_revision: int | None = None,
    **given: Any,
) -> StoredNote:
    """Set what is given of a note and leave the rest; the note as it is now.

    `given` are fields of `StoredNote`. `expected_revision` is the one that the editor looked at;
    EditConflictError says who changed the note since. ComponentValueError: a value is not allowed.
    TemplateError: the content is no valid template. StoreError: the NPC has too many notes.
    """
    with changing(NOTES, f"setting the note '{key}' of NPC {npc_ref}", by=by):
        old = note_or_none(npc_ref, key)
        if expected_revision not in (None, old.revision if old else 0):
            _revisions.refuse_stale(f"note '{key}'", expected_revision, npc_ref=npc_ref, key=key)
        note = replace(old or StoredNote(key=key), **given)
        if note == old:
            return old
        return _put(npc_ref, note, action="updated" if old else "created", by=by)


def revert_note(
    npc_ref: str, key: str, number: int, *, by: Actor, expected_revision: int | None = None
) -> StoredNote:
    """Make a note what it was at a revision, as a change of its own; a removed one comes back.

    NotStoredError: there is no such revision, or it is the one that removed the note.
    EditConflictError: it was changed or removed since `expected_revision`, its newest then.
    """
    with changing(NOTES, f"reverting the note '{key}' of NPC {npc_ref}", by=by):
        _revisions.refuse_stale(f"note '{key}'", expected_revision, npc_ref=npc_ref, key=key)
        then, old = note_then(npc_ref, key, number), note_or_none(npc_ref, key)
        if old is not None and said(old) == said(then):
            return old
        return _put(npc_ref, then, action="reverted", by=by)


def clear_notes(npc_ref: str, key: str | None = None, *, by: Actor) -> int:
    """Remove the note of this key, or all notes of an NPC; how many that were."""
    with changing(NOTES, f"clearing the notes of NPC {npc_ref} for {by}", by=by):
        gone = [note for note in _load(npc_ref) if key in (None, note.key)]
        for note in gone:
            record_note_revision(npc_ref, note.key, action="removed", value=None, by=by)
        keys = [note.key for note in gone]
        models.Note.objects.filter(npc_ref=npc_ref, key__in=keys).delete()
        notes_for.written(npc_ref)
    return len(gone)


def note_or_none(npc_ref: str, key: str) -> StoredNote | None:
    """The note of this key, None where the NPC has none."""
    return next((note for note in _load(npc_ref) if note.key == key), None)


def note_then(npc_ref: str, key: str, number: int) -> StoredNote:
    """A note as its revision of this number left it.

    NotStoredError: there is no such number, or it is the one that removed the note.
    """
    value = note_change(npc_ref, key, number).value
    if value is None:
        raise NotStoredError("note in revision", f"{key} {number}: it removed it")
    return StoredNote(key=key, revision=number, **value)


def record_note_revision(
    npc_ref: str, key: str, *, action: Action, value: Mapping[str, Any] | None, by: Actor
) -> int:
    """Write down one change, in the transaction that makes it; the number it got."""
    told = "" if value is None else canonical_json(dict(value))
    number = _revisions.next_number(npc_ref=npc_ref, key=key)
    return _revisions.write(number, action=action, by=by, value=told, npc_ref=npc_ref, key=key)


def note_change(npc_ref: str, key: str, number: int) -> NoteChange:
    """One change of a note; NotStoredError: there is no such number."""
    rows = _revisions.of(npc_ref=npc_ref, key=key)
    return _change(_revisions.numbered(rows, number, what=f"note {key} of NPC {npc_ref}"))


def note_changes(npc_ref: str, key: str) -> tuple[NoteChange, ...]:
    """All changes of a note, oldest first; also of one that was removed."""
    return tuple(map(_change, _revisions.of(npc_ref=npc_ref, key=key)))


def said(note: StoredNote) -> dict[str, Any]:
    """What a revision keeps of a note."""
    kept = {f.name: getattr(note, f.name) for f in fields(note)}
    return {name: value for name, value in kept.items() if name not in _KEPT_APART}


def _change(row: Any) -> NoteChange:
    value = said(StoredNote(key=row.key, **json.loads(row.value))) if row.value else None
    return value_of(NoteChange, row, value=value)


def _put(npc_ref: str, note: StoredNote, *, action: Action, by: Actor) -> StoredNote:
    """Write a note and the change of it down, in the transaction that wants it."""
    if not note.key:
        raise ComponentValueError("the note's key", "", "a word")
    others = models.Note.objects.filter(npc_ref=npc_ref).exclude(key=note.key)
    if others.count() >= MOST_NOTES:
        raise StoreError(f"an NPC has at most {MOST_NOTES} notes; note/clear removes one")
    compile_template(note.content, trust="builder")
    number = record_note_revision(npc_ref, note.key, action=action, value=said(note), by=by)
    note = replace(note, revision=number)
    columns = {f.name: getattr(note, f.name) for f in fields(note)}
    models.Note.objects.update_or_create(
        npc_ref=npc_ref, key=note.key, defaults={**columns, "changed_by": by.name}
    )
    notes_for.written(npc_ref)
    return note


def _load(npc_ref: str) -> tuple[StoredNote, ...]:
    return _load_each([npc_ref])[npc_ref]


def _load_each(npc_refs: Sequence[str]) -> Mapping[str, tuple[StoredNote, ...]]:
    names = [f.name for f in fields(StoredNote)]
    of_each: dict[str, list[StoredNote]] = {npc_ref: [] for npc_ref in npc_refs}
    rows = models.Note.objects.filter(npc_ref__in=npc_refs).order_by("order", "key")
    for row in rows.values("npc_ref", *names):
        of_each[row.pop("npc_ref")].append(StoredNote(**row))
    return {npc_ref: tuple(notes) for npc_ref, notes in of_each.items()}


notes_for: Final = Snapshots(NOTES, _load, load_each=_load_each)
"""The notes of an NPC in their order; the same object until one is changed."""
