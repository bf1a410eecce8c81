"""An entry as its file writes it: of a SillyTavern world file, or of a book of Card V3 or V2.

Both are told in one vocabulary (`EntryFields`). What of the standard's own fields cannot be read is
an error; what was read with a doubt is a notice.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from evennia_ai.foreign.documents import ListOf, one_line
from evennia_ai.lorebook.conditions import Condition
from evennia_ai.lorebook.entry import (
    Grouping,
    Logic,
    Patterns,
    Position,
    Recursion,
    SourceName,
    Timing,
)
from evennia_ai.lorebook.formats.entry_fields import V3_POSITIONS, Content
from evennia_ai.lorebook.formats.extension import (
    AppEntry,
    OwnFields,
    app_entry,
    doubts,
    read_own,
    said,
)
from evennia_ai.lorebook.formats.values import Flag, Identifier, Number, Texts
from evennia_ai.lorebook.scan.regex.pattern import is_delimited
from evennia_ai.prompt.messages import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFields:
    """An entry as its format says it; the names are those of `LoreEntry`.

    `plain` are attributes of it that all formats give as they are (`fields`).
    """

    uid: str
    name: str
    keys: tuple[str, ...]
    secondary_keys: tuple[str, ...]
    selective: bool
    logic: Logic
    patterns: Patterns
    enabled: bool
    constant: bool
    content: str
    position: Position
    depth: int | None
    role: Role
    outlet: str
    order: float
    priority: float
    priority_said: bool
    """Whether it says one; else that is its order."""
    case_sensitive: bool | None
    sources: frozenset[SourceName]
    recursion: Recursion
    timing: Timing
    grouping: Grouping
    chance: float
    conditions: tuple[Condition, ...]
    own: OwnFields
    plain: Mapping[str, Any]
    notices: tuple[str, ...]


# Marks of an entry that SillyTavern wrote.
_APP_MARKS: Final = frozenset(
    {
        *("position", "probability", "displayIndex", "display_index"),
        *("excludeRecursion", "exclude_recursion", "selectiveLogic", "selective_logic"),
        *("useProbability", "use_probability"),
    }
)


class _V3Entry(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True)

    keys: ListOf[str] = []
    content: Content = ""
    extensions: dict[str, Any] | None = None
    enabled: Flag = True
    insertion_order: Number | None = None
    case_sensitive: Flag | None = None
    use_regex: Flag | None = None
    constant: Flag | None = None
    name: str | None = None
    priority: Number | None = None
    id: Identifier | None = None
    comment: str | None = None
    selective: Flag | None = None
    secondary_keys: Texts | None = None
    position: str | None = None


def from_v3(raw: Mapping[str, Any], *, default_uid: str, where: str) -> EntryFields:
    """What the entry says; pydantic's or a FormatError names the field that is wrong.

    Where its keys are patterns by the standard, `constant` and the secondary keys are ignored.
    """
    entry = _V3Entry.model_validate(raw)
    extensions = entry.extensions or {}
    app, unread = app_entry(extensions)
    own = read_own(extensions.get("evennia_ai"), where=f"{where}.extensions.evennia_ai")
    patterns = _patterns(entry, own, extensions)
    order = 100 if entry.insertion_order is None else entry.insertion_order
    usual = V3_POSITIONS.get(entry.position or "", "after")
    priority = own.priority if entry.priority is None else entry.priority
    cased = app.case_sensitive if entry.case_sensitive is None else entry.case_sensitive
    return EntryFields(
        uid=default_uid if entry.id is None else entry.id,
        name=entry.comment or entry.name or "",
        keys=tuple(entry.keys),
        secondary_keys=tuple(entry.secondary_keys or ()),
        selective=bool(entry.selective and entry.secondary_keys and patterns != "all"),
        patterns=patterns,
        enabled=entry.enabled,
        constant=bool(entry.constant and patterns != "all"),
        content=entry.content,
        order=order,
        priority=order if priority is None else priority,
        priority_said=priority is not None,
        case_sensitive=cased,
        **said(app, usual=usual, chance_counts=True),
        own=own,
        notices=(*_notices(entry, raw, patterns), *doubts(app), *unread),
    )


def _patterns(entry: _V3Entry, own: OwnFields, extensions: Mapping[str, Any]) -> Patterns:
    """Which keys are patterns: SillyTavern sets the flag on every entry and goes by the form."""
    if own.patterns is not None:
        return own.patterns
    if entry.use_regex is not False and not _APP_MARKS.isdisjoint(extensions):
        return "by_form"
    return "all" if entry.use_regex else "none"


def _notices(entry: _V3Entry, raw: Mapping[str, Any], patterns: Patterns) -> Iterable[str]:
    """What is read although it has another type, and what is not taken as it is written."""
    for name in ("insertion_order", "priority"):
        if isinstance(raw.get(name), str):
            yield f"{name} is a text: taken as the number {getattr(entry, name):g}"
    for name in ("enabled", "use_regex", "constant", "selective", "case_sensitive"):
        if type(raw.get(name)) is int:
            yield f"{name} is {raw[name]}: taken as {str(getattr(entry, name)).lower()}"
    if entry.use_regex and patterns == "by_form" and not any(map(is_delimited, entry.keys)):
        yield "use_regex is set, but no key is a /pattern/: they are taken as words"
    if entry.constant and patterns == "all":
        yield "constant is ignored beside use_regex (Card V3)"
    if isinstance(raw.get("secondary_keys"), str):
        yield "secondary_keys is one text: split at its commas"
    if entry.position and entry.position not in V3_POSITIONS:
        yield f"position '{one_line(entry.position)[:60]}' is not known: after_char counts"


class _WorldEntry(AppEntry):
    uid: Identifier | None = None
    key: ListOf[str] | None = None
    keysecondary: ListOf[str] | None = None
    comment: str | None = None
    content: Content | None = None
    constant: Flag | None = None
    selective: Flag | None = None
    order: Number | None = None
    disable: Flag | None = None


def from_world(raw: Mapping[str, Any], *, default_uid: str, where: str) -> EntryFields:
    """What the entry says; pydantic's or a FormatError names the field that is wrong.

    As in the application, a chance counts only with `useProbability` and secondary keys only with
    `selective`.
    """
    entry = _WorldEntry.model_validate(raw)
    own = read_own(raw.get("evennia_ai"), where=f"{where}.evennia_ai")
    patterns = "by_form" if own.patterns is None else own.patterns
    order = 100 if entry.order is None else entry.order
    return EntryFields(
        uid=default_uid if entry.uid is None else entry.uid,
        name=entry.comment or "",
        keys=tuple(entry.key or ()),
        secondary_keys=tuple(entry.keysecondary or ()),
        selective=bool(entry.selective and entry.keysecondary and patterns != "all"),
        patterns=patterns,
        enabled=not entry.disable,
        constant=bool(entry.constant and patterns != "all"),
        content=entry.content or "",
        order=order,
        priority=order if own.priority is None else own.priority,
        priority_said=own.priority is not None,
        case_sensitive=entry.case_sensitive,
        **said(entry, usual="before", chance_counts=False),
        own=own,
        notices=tuple(doubts(entry)),
    )


_WORLD_MARKS: Final = frozenset({"key", "keysecondary", "uid", "disable"})


def is_world_entry(raw: Mapping[str, Any]) -> bool:
    """Whether an entry is spelled as in SillyTavern's world files."""
    return "keys" not in raw and not _WORLD_MARKS.isdisjoint(raw)
