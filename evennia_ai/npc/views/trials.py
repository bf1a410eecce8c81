"""Trials: edits of a past turn that are never stored. Each edit is a line of text.

The line `component:mood.depth=4` changes a depth. The address of a web page can contain such lines,
so a trial can be undone and shared. A trial can change the depth and order of a text in the
history, and switch it off. `npc/views/edits.py` has edits that need a file.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, get_args

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.inputs import Inputs
from evennia_ai.engine.lorebook.book import Lorebook
from evennia_ai.engine.lorebook.entry import LoreEntry
from evennia_ai.engine.prompt.components import MAX_DEPTH, PromptComponent, Scope, is_plain_int
from evennia_ai.engine.prompt.expansion import ComponentSet
from evennia_ai.engine.prompt.memo import Memo
from evennia_ai.engine.prompt.notes import AuthorsNote, Notes, note_origin
from evennia_ai.engine.prompt.prefix_rules import check_before_history
from evennia_ai.npc.views.recomposing import CHARACTER, PastInputs

Field = Literal["depth", "order", "off"]
FIELDS: Final = get_args(Field)
KIND: Final = "trial"
YES: Final = "yes"
MOST_EDITS: Final = 64
_LINE: Final = re.compile(r"((?:component|note|lore):.{1,300})\.([a-z]+)=(.{1,20})")
_WHOLE: Final = re.compile(r"-?[0-9]{1,10}")
_OFF: Final = "off in this trial"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldEdit:
    """A new value for one field of one text. If the field is `off`, the value is 1."""

    origin: str
    field: Field
    value: int

    def __str__(self) -> str:
        """Return the edit as a line for `read_trial`."""
        return f"{self.origin}.{self.field}={YES if self.field == 'off' else self.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The depth and order of a text in the history, which a trial may change."""

    origin: str
    depth: int
    order: int
    holder: Literal["component", "note", "book", "card"]
    """The kind of thing that stores the text. A text in a card can only be edited with the card."""
    key: str
    """The key of the component or note, or the name of the book."""
    scope: Scope | None = None
    """The scope of the component; None for other texts."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Edits to apply to a turn's inputs. Of two edits of one field, the later one counts."""

    edits: tuple[FieldEdit, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the edits as lines."""
        return tuple(map(str, self.edits))

    def with_edit(self, edit: FieldEdit) -> "Trial":
        """Return the trial with one more edit, which replaces an edit of the same field."""
        kept = [one for one in self.edits if (one.origin, one.field) != (edit.origin, edit.field)]
        return Trial((*kept, edit))

    def __call__(self, past: PastInputs) -> Inputs:
        """Return the inputs of a past turn with the edits applied.

        Raises:
            FormatError: The turn has no text with this origin and a depth.
            ComponentValueError: A component may not have this value.
        """
        wanted: dict[str, dict[str, int]] = {}
        for edit in self.edits:
            wanted.setdefault(edit.origin, {})[edit.field] = edit.value
        inputs = past.inputs
        if unknown := wanted.keys() - places(inputs).keys():
            named = ", ".join(sorted(unknown))
            raise FormatError(
                KIND, f"the turn has no text called {named} with a depth in the history"
            )
        return replace(
            inputs,
            components=_components(inputs.components, wanted),
            notes=_notes(inputs.notes, wanted),
            books=tuple(_book(book, wanted) for book in inputs.books),
        )


def read_trial(lines: Iterable[str]) -> Trial:
    """Parse a trial from its lines.

    Raises:
        FormatError: A line is not an edit. The message shows what an edit looks like.
    """
    trial = Trial()
    for count, line in enumerate(lines):
        if count == MOST_EDITS:
            raise FormatError(KIND, f"has more than {MOST_EDITS} edits")
        trial = trial.with_edit(_read(line))
    return trial


def places(inputs: Inputs) -> Mapping[str, Place]:
    """Return the places of all texts of a turn whose depth a trial can change, by origin."""
    return {place.origin: place for place in _places(inputs)}


def _read(line: str) -> FieldEdit:
    found = _LINE.fullmatch(line)
    if found is None or found[2] not in FIELDS:
        raise FormatError(
            KIND,
            f"'{line[:80]}' is not an edit; write component:mood.depth=4, .order=50 or .off=yes",
        )
    origin, field, text = found.groups()
    if field == "off":
        if text != YES:
            raise FormatError(KIND, f"{origin}.off must be yes; leave it out to keep the text on")
        return FieldEdit(origin=origin, field="off", value=1)
    if not _WHOLE.fullmatch(text) or (field == "depth" and not 0 <= int(text) <= MAX_DEPTH):
        wanted = f"a number from 0 to {MAX_DEPTH}" if field == "depth" else "a whole number"
        raise FormatError(KIND, f"{origin}.{field} must be {wanted}, not '{text}'")
    return FieldEdit(origin=origin, field="depth" if field == "depth" else "order", value=int(text))


def _places(inputs: Inputs) -> Iterator[Place]:
    for member in inputs.components.compiled.members:
        component = member.component
        if component.placement == "history":
            yield Place(
                origin=f"component:{component.key}",
                depth=component.injection_depth,
                order=component.injection_order,
                holder="component",
                key=component.key,
                scope=component.scope,
            )
    for index, note in enumerate(inputs.notes.given):
        if not note.is_tail and not note.place:
            origin = note_origin(note, index)
            yield Place(
                origin=origin, depth=note.depth, order=note.order, holder="note", key=note.key
            )
    for book in inputs.books:
        holder: Literal["card", "book"] = "card" if book.attach == CHARACTER else "book"
        for entry in book.entries:
            if entry.position == "depth" and is_plain_int(entry.depth) and not entry.from_oldest:
                yield Place(
                    origin=entry.origin,
                    depth=entry.depth or 0,
                    order=int(entry.order),
                    holder=holder,
                    key=book.label,
                )


def _components(before: ComponentSet, wanted: Mapping[str, Mapping[str, int]]) -> ComponentSet:
    known = [member.component for member in before.compiled.members]
    if not any(f"component:{one.key}" in wanted for one in known):
        return before
    changed = [_component(one, wanted.get(f"component:{one.key}", {})) for one in known]
    for component, old in zip(changed, known, strict=True):
        if component is not old:
            check_before_history(component)
    return ComponentSet(changed, context=before.context, off=before.off)


def component_fields(given: Mapping[str, int]) -> dict[str, Any]:
    """Return the fields of a component that these edits change, with their new values."""
    fields: dict[str, Any] = {}
    if "depth" in given:
        fields |= {"injection_depth": given["depth"], "placement": "history"}
    if "order" in given:
        fields["injection_order"] = given["order"]
    if "off" in given:
        fields["enabled"] = False
    return fields


def _component(component: PromptComponent, given: Mapping[str, int]) -> PromptComponent:
    return component.changed(**component_fields(given)) if given else component


def _notes(before: Notes, wanted: Mapping[str, Mapping[str, int]]) -> Notes:
    numbered = [(note_origin(note, index), note) for index, note in enumerate(before.given)]
    if not any(origin in wanted for origin, _ in numbered):
        return before
    return Notes([_note(note, wanted.get(origin, {})) for origin, note in numbered])


def _note(note: AuthorsNote, given: Mapping[str, int]) -> AuthorsNote:
    return replace(
        note,
        depth=given.get("depth", note.depth),
        order=given.get("order", note.order),
        off=_OFF if "off" in given else note.off,
    )


def _book(book: Lorebook, wanted: Mapping[str, Mapping[str, int]]) -> Lorebook:
    if not any(entry.origin in wanted for entry in book.entries):
        return book
    entries = tuple(_entry(entry, wanted.get(entry.origin, {})) for entry in book.entries)
    return replace(book, entries=entries, memo=Memo(), of_entries=Memo())


def entry_fields(given: Mapping[str, int]) -> dict[str, Any]:
    """Return the fields of a lore entry that these edits change, with their new values."""
    fields: dict[str, Any] = {}
    if "depth" in given:
        fields |= {"position": "depth", "depth": given["depth"]}
    if "order" in given:
        fields["order"] = given["order"]
    if "off" in given:
        fields["enabled"] = False
    return fields


def _entry(entry: LoreEntry, given: Mapping[str, int]) -> LoreEntry:
    return replace(entry, **entry_fields(given)) if given else entry
