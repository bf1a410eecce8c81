"""Store author's notes: texts that a builder writes for one NPC at a depth of its history."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Final

from pydantic import Field

from evennia_ai import models
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import ComponentValueError, StoreError
from evennia_ai.engine.foreign.fields import Must, field_checker, find_wrong_field
from evennia_ai.engine.history.records import make_storable
from evennia_ai.engine.prompt.components import (
    DEFAULT_ORDER,
    MAX_CONTENT,
    MAX_DEPTH,
    Order,
    Scope,
    When,
    of_npc,
)
from evennia_ai.engine.prompt.messages import Role
from evennia_ai.engine.prompt.notes import NoteMode, NotePlace
from evennia_ai.engine.prompt.templates.template import compile_template
from evennia_ai.store.authored.life_cycle import Kind
from evennia_ai.store.core.snapshots import Snapshots, changing

NOTE: Final = "note"
"""The key of the note that a command changes if no key is given."""
MOST_NOTES: Final = 100
"""The most notes that one NPC may have."""
MAX_EVERY: Final = 10**6

_FROM_0: Final = "a whole number, 0 or more"
_Key = Annotated[
    str,
    Field(pattern=r"^[a-z][a-z0-9_]{0,39}$"),
    Must("a small letter, then small letters, digits or _, at most 40"),
]
_Text = Annotated[
    str,
    Field(max_length=MAX_CONTENT),
    Must(f"text of at most {MAX_CONTENT} characters", lambda text: make_storable(text) == text),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredNote:
    """An author's note.

    A new field also needs a column in `models.Note` and a migration.
    """

    key: _Key = NOTE
    content: _Text = ""
    depth: Annotated[int, Field(ge=0, le=MAX_DEPTH), Must(f"{_FROM_0}, at most {MAX_DEPTH}")] = 4
    """The number of messages after the note."""
    role: Role = "system"
    every: Annotated[
        int, Field(ge=0, le=MAX_EVERY), Must(f"{_FROM_0}, at most {MAX_EVERY}; 0 is never")
    ] = 1
    """The note is in a prompt if this number divides the prompt's number of user messages."""
    mode: NoteMode = "floating"
    """Whether the note moves or keeps its place in the history (`evennia_ai.engine.prompt.notes`).
    """
    place: NotePlace = ""
    """The component next to which the note is placed.

    If set, depth, order and mode have no effect.
    """
    order: Order = DEFAULT_ORDER
    """The order among texts at the same depth, low values first."""
    when: When = ""
    """Conditions on facts of the game. The note is only in a prompt while all are met."""
    enabled: bool = True
    revision: int = 0

    def __post_init__(self) -> None:
        if not _are_allowed(_values(self)) and (wrong := find_wrong_field(self)):
            field, wanted = wrong
            raise ComponentValueError(f"the note's {field}", getattr(self, field), wanted)


_values, _are_allowed = field_checker(StoredNote)
_FIELDS: Final = tuple(f.name for f in fields(StoredNote) if f.name not in ("key", "revision"))


class NoteKind(Kind[StoredNote]):
    """Author's notes, as a kind of the life cycle that all authored things share."""

    name = "note"
    state = "notes"
    table = models.Note
    identity = ("npc_ref", "key")

    def from_row(self, row: Any) -> StoredNote:
        columns = {name: getattr(row, name) for name in _FIELDS}
        return StoredNote(key=row.key, revision=row.revision, **columns)

    def to_json(self, value: StoredNote) -> dict[str, Any]:
        return {name: getattr(value, name) for name in _FIELDS}

    def from_json(self, fields: Mapping[str, Any], row: models.Revision) -> StoredNote:
        return StoredNote(key=row.key, revision=row.number, **fields)

    def refresh(self, key: str, scope: Scope) -> None:
        notes_for.note_change(scope.ref)

    def check(
        self, old: StoredNote | None, new: StoredNote | None, *, doing: str, by: Actor
    ) -> None:
        if new is not None:
            compile_template(new.content, trust="builder")


NOTES: Final = NoteKind()


def set_note(
    npc_ref: str,
    key: str = NOTE,
    *,
    by: Actor,
    seen_revision: int | None = None,
    **given: Any,
) -> StoredNote:
    """Create a note, or set some of its fields. Its other fields stay as they are.

    Args:
        seen_revision: See `Kind.refuse_stale`.
        given: Fields of `StoredNote`.

    Returns:
        The note. If the values are not new, no revision is made.

    Raises:
        ComponentValueError: a value is not allowed.
        TemplateError: the content is not a valid template.
        EditConflictError: somebody changed the note after `seen_revision`.
        StoreError: the NPC has too many notes.
    """
    scope = of_npc(npc_ref)
    doing = f"setting {NOTES.called(key, scope)}"
    with changing(NOTES.state, doing, by=by):
        old = NOTES.current(key, scope)
        NOTES.refuse_stale(key, seen_revision, old, scope=scope)
        note = replace(old or StoredNote(key=key), **given)
        if note == old:
            return old
        if old is None and len(NOTES.list_keys(scope)) >= MOST_NOTES:
            raise StoreError(f"an NPC has at most {MOST_NOTES} notes; note/remove removes one")
        NOTES.check(old, note, doing=doing, by=by)
        return NOTES.save(key, note, action="updated" if old else "created", by=by, scope=scope)


def clear_notes(npc_ref: str, key: str | None = None, *, by: Actor) -> int:
    """Remove the note with this key. Without a key, remove all notes of the NPC.

    Returns:
        How many notes were removed.
    """
    scope = of_npc(npc_ref)
    with changing(NOTES.state, f"clearing the notes of {scope}", by=by):
        removed = [known for known in NOTES.list_keys(scope) if key in (None, known)]
        for known in removed:
            NOTES.remove(known, by=by, scope=scope)
    return len(removed)


def _load(npc_ref: str) -> tuple[StoredNote, ...]:
    return _load_each([npc_ref])[npc_ref]


def _load_each(npc_refs: Sequence[str]) -> Mapping[str, tuple[StoredNote, ...]]:
    of_each: dict[str, list[StoredNote]] = {npc_ref: [] for npc_ref in npc_refs}
    for row in models.Note.objects.filter(npc_ref__in=npc_refs).order_by("order", "key"):
        of_each[row.npc_ref].append(NOTES.from_row(row))
    return {npc_ref: tuple(notes) for npc_ref, notes in of_each.items()}


notes_for: Final = Snapshots(NOTES.state, _load, load_each=_load_each)
"""Return the notes of an NPC in their order.

Every call returns the same object until a note is changed.
"""
