"""Entries of Card V3 and V2 books, with the extension data that SillyTavern writes into them.

Extension data of other programs may use the same names for other things: what of it cannot be
read is a notice, the standard's own fields are errors.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from evennia_ai.foreign.strict_json import ListOf, one_line
from evennia_ai.lorebook.entries import Patterns, Position
from evennia_ai.lorebook.entry_app import (
    NOTHING_SAID,
    AppEntry,
    chance_of,
    doubts,
    place_of,
    said,
)
from evennia_ai.lorebook.entry_extension import read_own
from evennia_ai.lorebook.entry_fields import EntryFields, OwnFields
from evennia_ai.lorebook.entry_values import Content, Flag, Identifier, Number, Texts
from evennia_ai.lorebook.patterns import is_delimited

POSITIONS: Final[Mapping[str, Position]] = {"before_char": "before", "after_char": "after"}
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
    app, unread = _app_entry(extensions) if extensions else (NOTHING_SAID, ())
    own = read_own(extensions.get("evennia_ai"), where=f"{where}.extensions.evennia_ai")
    patterns = _patterns(entry, own, extensions)
    order = 100 if entry.insertion_order is None else entry.insertion_order
    usual = POSITIONS.get(entry.position or "", "after")
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
        position=place_of(app, usual),
        order=order,
        priority=order if priority is None else priority,
        case_sensitive=cased,
        chance=chance_of(app, used_unless_said=True),
        **said(app),
        own=own,
        notices=(*_notices(entry, raw, patterns), *doubts(app), *unread),
    )


def unreadable(extensions: Mapping[str, Any]) -> frozenset[str]:
    """The members that are named like SillyTavern's and hold something else."""
    try:
        AppEntry.model_validate(extensions)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        wrong = frozenset(str(each["loc"][0]) for each in found)
        readable = {name: value for name, value in extensions.items() if name not in wrong}
        return wrong | unreadable(readable)  # a field may be there in the other spelling too
    return frozenset()


def _app_entry(extensions: Mapping[str, Any]) -> tuple[AppEntry, tuple[str, ...]]:
    """What SillyTavern says there, and a notice for each field that cannot be read."""
    try:
        return AppEntry.model_validate(extensions), ()
    except ValidationError:
        wrong = unreadable(extensions)
    readable = {name: value for name, value in extensions.items() if name not in wrong}
    notices = (f"extensions.{one_line(name)} cannot be read: it is ignored" for name in wrong)
    return AppEntry.model_validate(readable), tuple(sorted(notices))


def _patterns(entry: _V3Entry, own: OwnFields, extensions: Mapping[str, Any]) -> Patterns:
    """Which keys are patterns: SillyTavern sets the flag on every entry and goes by the form."""
    if own.patterns is not None:
        return own.patterns
    if entry.use_regex is not False and not _APP_MARKS.isdisjoint(extensions):
        return "by_form"
    return "all" if entry.use_regex else "none"


def _otherwise_written(entry: _V3Entry, raw: Mapping[str, Any]) -> Iterable[str]:
    """A notice on each number and flag that is read although it has another type."""
    for name in ("insertion_order", "priority"):
        if isinstance(raw.get(name), str):
            yield f"{name} is a text: taken as the number {getattr(entry, name):g}"
    for name in ("enabled", "use_regex", "constant", "selective", "case_sensitive"):
        if type(raw.get(name)) is int:
            yield f"{name} is {raw[name]}: taken as {str(getattr(entry, name)).lower()}"


def _notices(entry: _V3Entry, raw: Mapping[str, Any], patterns: Patterns) -> Iterable[str]:
    yield from _otherwise_written(entry, raw)
    if entry.use_regex and patterns == "by_form" and not any(map(is_delimited, entry.keys)):
        yield "use_regex is set, but no key is a /pattern/: they are taken as words"
    if entry.constant and patterns == "all":
        yield "constant is ignored beside use_regex (Card V3)"
    if isinstance(raw.get("secondary_keys"), str):
        yield "secondary_keys is one text: split at its commas"
    if entry.position and entry.position not in POSITIONS:
        yield f"position '{one_line(entry.position)[:60]}' is not known: after_char counts"
