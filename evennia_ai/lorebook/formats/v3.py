"""Entries of Card V3 and V2 books, and what SillyTavern says about an entry wherever it stands.

World files spell in camel case (`groupWeight`), extension data of card entries in snake case
(`group_weight`, but `useProbability`); both are read in both places. What means the same as a field
of ours is told by the table of fields, the rest by the functions here. Extension data of other
programs may use the same names for other things: what of it cannot be read is a notice, the
standard's own fields are errors.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypedDict, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic.alias_generators import to_camel

from evennia_ai.foreign.documents import ListOf, one_line
from evennia_ai.lorebook.conditions import (
    CHARACTER_NAME,
    CHARACTER_TAGS,
    GENERATION_KIND,
    Condition,
)
from evennia_ai.lorebook.entry import (
    NO_GROUPS,
    NO_RECURSION,
    NO_TIMING,
    Grouping,
    Logic,
    Patterns,
    Position,
    Recursion,
    SourceName,
    Timing,
)
from evennia_ai.lorebook.formats.entry_fields import APP_FIELDS, EntryFields, LoreField, OwnFields
from evennia_ai.lorebook.formats.extension import read_own
from evennia_ai.lorebook.formats.values import Code, Content, Flag, Identifier, Number, Texts
from evennia_ai.lorebook.formats.writes import LOGICS, POSITIONS, ROLES, SOURCES
from evennia_ai.lorebook.scan.regex.pattern import is_delimited
from evennia_ai.prompt.messages import Role

MAX_GROUPS: Final = 32
MAX_GROUP_TEXT: Final = 2000
_Model = TypeVar("_Model", bound=BaseModel)
_COMMA: Final = re.compile(r",\s*")
_NO_SOURCES: Final[frozenset[SourceName]] = frozenset()


class _CharacterFilter(BaseModel):
    model_config = ConfigDict(
        strict=True, frozen=True, alias_generator=to_camel, populate_by_name=True
    )

    is_exclude: Flag | None = None
    names: ListOf[str] | None = None
    tags: ListOf[str] | None = None


def _with_table_fields(model: type[_Model]) -> type[_Model]:
    members: Mapping[str, Any] = {field.app: (field.door | None, None) for field in APP_FIELDS}
    return create_model(model.__name__, __base__=model, **members)


@_with_table_fields
class AppEntry(BaseModel):
    """What is written, with the fields of the table; None is what is not said."""

    model_config = ConfigDict(
        strict=True, frozen=True, alias_generator=to_camel, populate_by_name=True
    )

    selective_logic: Code | None = None
    position: Code | None = None
    depth: Code | None = None
    role: Code | None = None
    outlet_name: str | None = None
    case_sensitive: Flag | None = None
    probability: Number | None = None
    use_probability: Flag | None = None
    group: str | None = None
    triggers: ListOf[str] | None = None
    character_filter: _CharacterFilter | None = None
    match_persona_description: Flag | None = None
    match_character_description: Flag | None = None
    match_character_personality: Flag | None = None
    match_character_depth_prompt: Flag | None = None
    match_scenario: Flag | None = None
    match_creator_notes: Flag | None = None


NOTHING_SAID: Final = AppEntry()
# The fields of the table by the part of an entry they stand in, "" for the entry itself.
_PARTS: Final[Mapping[str, Mapping[str, LoreField]]] = {
    part: {
        field.into.rpartition(".")[2]: field
        for field in APP_FIELDS
        if field.into.rpartition(".")[0] == part
    }
    for part in ("", "timing", "recursion", "grouping")
}


def place_of(app: AppEntry, default: Position) -> Position:
    """Where the entry stands; `default` where it does not say or says no place there is."""
    at = app.position
    return POSITIONS[at] if at is not None and 0 <= at < len(POSITIONS) else default


def chance_of(app: AppEntry, *, used_unless_said: bool) -> float:
    """The chance in percent: 100 where none is used."""
    used = used_unless_said if app.use_probability is None else app.use_probability
    if not used or app.probability is None:
        return 100
    return min(max(app.probability, 0), 100)


class Said(TypedDict):
    """What SillyTavern's data says in the words of `EntryFields`."""

    logic: Logic
    depth: int | None
    role: Role
    outlet: str
    sources: frozenset[SourceName]
    recursion: Recursion
    timing: Timing
    grouping: Grouping
    conditions: tuple[Condition, ...]
    plain: Mapping[str, Any]


def said(app: AppEntry) -> Said:
    """What the data says where the formats do not differ; place and chance have defaults."""
    timing, recursion = _part(app, "timing"), _part(app, "recursion")
    return {
        "logic": _logic(app),
        "depth": app.depth,
        "role": _role(app),
        "outlet": app.outlet_name or "",
        "sources": _sources(app),
        "recursion": Recursion(**recursion) if any(recursion.values()) else NO_RECURSION,
        "timing": Timing(**timing) if any(timing.values()) else NO_TIMING,
        "grouping": _grouping(app),
        "conditions": _conditions(app),
        "plain": _part(app, ""),
    }


def _part(app: AppEntry, part: str) -> dict[str, Any]:
    """What the fields of the table say that stand in this part of an entry."""
    values = {name: getattr(app, field.app) for name, field in _PARTS[part].items()}
    return {
        name: _PARTS[part][name].unsaid if value is None else value
        for name, value in values.items()
    }


def _role(app: AppEntry) -> Role:
    """The role of the entry's text."""
    return ROLES[app.role] if app.role is not None and 0 <= app.role < len(ROLES) else "system"


def _logic(app: AppEntry) -> Logic:
    """How the secondary keys decide."""
    at = app.selective_logic
    return LOGICS[at] if at is not None and 0 <= at < len(LOGICS) else "any"


def _grouping(app: AppEntry) -> Grouping:
    """The inclusion groups: split at commas, the blanks before a name belong to it."""
    if not app.group:
        return NO_GROUPS
    written = app.group[:MAX_GROUP_TEXT]
    return Grouping(
        names=tuple([name for name in _COMMA.split(written) if name][:MAX_GROUPS]),
        written=written,
        **_part(app, "grouping"),
    )


def _sources(app: AppEntry) -> frozenset[SourceName]:
    """What is scanned beside the conversation."""
    if not SOURCES.keys() & app.model_fields_set:
        return _NO_SOURCES
    return frozenset(source for name, source in SOURCES.items() if getattr(app, name))


def _conditions(app: AppEntry) -> tuple[Condition, ...]:
    """The filters by character and by kind of generation.

    A filter that leaves characters out keeps the entry where the character is not known.
    """
    found: list[Condition] = []
    if app.character_filter is not None:
        found += _by_character(app.character_filter)
    if app.triggers:
        kinds = tuple(app.triggers)
        found.append(
            Condition(fact=GENERATION_KIND, test="is_any", values=kinds, kept_unknown=True)
        )
    return tuple(found)


def _by_character(only: _CharacterFilter) -> Iterator[Condition]:
    without = bool(only.is_exclude)
    if only.names:
        yield Condition(
            fact=CHARACTER_NAME,
            test="is_none" if without else "is_any",
            values=tuple(only.names),
            kept_unknown=without,
        )
    if only.tags:
        yield Condition(
            fact=CHARACTER_TAGS,
            test="has_none" if without else "has_any",
            values=tuple(only.tags),
            kept_unknown=without,
        )


def doubts(app: AppEntry) -> list[str]:
    """Notices about codes that stand for nothing, and a place without its name."""
    found = [
        f"{name} {code} is not known: {default} counts"
        for name, code, known, default in (
            ("selectiveLogic", app.selective_logic, LOGICS, "0 (any)"),
            ("position", app.position, POSITIONS, "the usual place"),
            ("role", app.role, ROLES, "0 (system)"),
        )
        if code is not None and not 0 <= code < len(known)
    ]
    if app.position == POSITIONS.index("outlet") and not app.outlet_name:
        found.append("position 7 (outlet) without an outletName: it is never placed")
    if app.group and (len(app.group) > MAX_GROUP_TEXT or app.group.count(",") >= MAX_GROUPS):
        most = f"{MAX_GROUPS} names and {MAX_GROUP_TEXT} characters"
        found.append(f"group has more than {most}: the first ones count")
    return found


V3_POSITIONS: Final[Mapping[str, Position]] = {"before_char": "before", "after_char": "after"}
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
    if entry.position and entry.position not in V3_POSITIONS:
        yield f"position '{one_line(entry.position)[:60]}' is not known: after_char counts"
