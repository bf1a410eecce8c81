"""Read the extension data of lore entries: SillyTavern's, and this package's (`evennia_ai`).

World files have names in camel case (`groupWeight`), extension data of cards in snake case
(`group_weight`, but `useProbability`). Both spellings are read in both places. The table in
`entry_fields` describes members that mean the same as an attribute of `LoreEntry`. Functions in
this module read the others. Other programs may use the same names for other things, so unreadable
members are only notices.

The `evennia_ai` data has settings that no other program has. Examples are conditions on facts of
the game, a position next to a component, and a cooldown of a whole group. Errors in this data are
never ignored: an edit is refused, and an entry of a file is never active. An entry with an ignored
condition could be active when its author does not want it.
"""

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Final, NamedTuple, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainValidator, create_model
from pydantic.alias_generators import to_camel

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import one_line
from evennia_ai.engine.foreign.fields import read_leniently
from evennia_ai.engine.lorebook.entry import (
    AT_MENTION,
    MENTIONINGS,
    NO_GROUPS,
    NO_RECURSION,
    NO_TIMING,
    SIDES,
    SOURCE_NAMES,
    Anchor,
    Grouping,
    Mention,
    Patterns,
    Position,
    Recursion,
    SourceName,
    Timing,
)
from evennia_ai.engine.lorebook.rules import ClockName
from evennia_ai.engine.prompt.conditions import (
    CHARACTER_NAME,
    CHARACTER_TAGS,
    CONDITION_TESTS,
    ENTRY_FILTERS,
    GENERATION_KIND,
    Condition,
    Test,
)
from evennia_ai.formats.lorebooks.entry_fields import (
    APP_FIELDS,
    FIELDS,
    LOGICS,
    MAX_NAME,
    POSITIONS,
    ROLES,
    SOURCES,
    V3_POSITIONS,
    LoreField,
)
from evennia_ai.formats.lorebooks.values import (
    Check,
    Code,
    Flag,
    Number,
    Texts,
    Where,
    a_flag,
    a_list,
    a_name,
    is_number,
    one_of,
    parse_code,
)

MAX_GROUPS: Final = 32
MAX_GROUP_TEXT: Final = 2000
_Model = TypeVar("_Model", bound=BaseModel)
_Word = TypeVar("_Word", bound=str)
_COMMA: Final = re.compile(r",\s*")
_NO_SOURCES: Final[frozenset[SourceName]] = frozenset()


class _CharacterFilter(BaseModel):
    model_config = ConfigDict(
        strict=True, frozen=True, alias_generator=to_camel, populate_by_name=True
    )

    is_exclude: Flag | None = None
    names: Texts | None = None
    tags: Texts | None = None


def _with_table_fields(model: type[_Model]) -> type[_Model]:
    doors = {field.app: field.door for field in APP_FIELDS} | dict.fromkeys(SOURCES, Flag)
    members: dict[str, Any] = {name: (door | None, None) for name, door in doors.items()}
    return create_model(model.__name__, __base__=model, **members)


def _position(value: Any) -> int:
    """Parse the position of an entry: SillyTavern's number, or one of the two words in cards."""
    place = V3_POSITIONS.get(value) if isinstance(value, str) else None
    return parse_code(value) if place is None else POSITIONS.index(place)


def _without_odd_kinds(value: Any) -> Any:
    """Return the kinds of generation of an entry without members that are no text."""
    return [kind for kind in value if isinstance(kind, str)] if isinstance(value, list) else value


def _role(value: Any) -> int:
    """Parse the role of an entry: SillyTavern's number, or the name of a role."""
    return ROLES.index(value) if value in ROLES else parse_code(value)


@_with_table_fields
class AppEntry(BaseModel):
    """SillyTavern's settings of an entry as in the file; None if the file lacks a setting."""

    model_config = ConfigDict(
        strict=True, frozen=True, alias_generator=to_camel, populate_by_name=True
    )

    selective_logic: Code | None = None
    position: Annotated[int, PlainValidator(_position)] | None = None
    depth: Code | None = None
    role: Annotated[int, PlainValidator(_role)] | None = None
    outlet_name: str | None = None
    case_sensitive: Flag | None = None
    probability: Number | None = None
    use_probability: Flag | None = None
    group: str | None = None
    triggers: Annotated[Texts, BeforeValidator(_without_odd_kinds)] | None = None
    character_filter: _CharacterFilter | None = None


NOTHING_SAID: Final = AppEntry()
# The fields of SillyTavern's data, by the part of `LoreEntry` that holds them, then by attribute.
# The part "" is the entry itself.
_PARTS: Final[Mapping[str, Mapping[str, LoreField]]] = {
    part: {
        field.into.rpartition(".")[2]: field
        for field in APP_FIELDS
        if field.into.rpartition(".")[0] == part
    }
    for part in ("", "timing", "recursion", "grouping")
}


def _chance(app: AppEntry, *, used_unless_said: bool) -> float:
    """Return the activation chance of an entry in percent; 100 if its chance is not used."""
    used = used_unless_said if app.use_probability is None else app.use_probability
    if not used or app.probability is None:
        return 100
    return min(max(app.probability, 0), 100)


def app_fields(app: AppEntry, *, usual: Position, chance_counts: bool) -> dict[str, Any]:
    """Return SillyTavern's settings of an entry as a dict of fields of `EntryFields`.

    Args:
        usual: the position of an entry whose data has no position, or an unknown one.
        chance_counts: True if the chance of an entry without `useProbability` is used.
    """
    timing, recursion = _part(app, "timing"), _part(app, "recursion")
    return {
        "logic": _word(LOGICS, app.selective_logic, "any"),
        "position": _word(POSITIONS, app.position, usual),
        "depth": app.depth,
        "chance": _chance(app, used_unless_said=chance_counts),
        "role": _word(ROLES, app.role, "system"),
        "outlet": app.outlet_name or "",
        "sources": _sources(app),
        "recursion": Recursion(**recursion) if any(recursion.values()) else NO_RECURSION,
        "timing": Timing(**timing) if any(timing.values()) else NO_TIMING,
        "grouping": _grouping(app),
        "conditions": _conditions(app),
        "plain": _part(app, ""),
    }


def _part(app: AppEntry, part: str) -> dict[str, Any]:
    """Return SillyTavern's settings for one part of `LoreEntry` as a dict of attributes."""
    values = {}
    for name, field in _PARTS[part].items():
        value = getattr(app, field.app)
        values[name] = field.unsaid if value is None else value
    return values


def _word(words: tuple[_Word, ...], code: int | None, default: _Word) -> _Word:
    """Return the word for a number in SillyTavern's data; `default` for an unknown number."""
    return words[code] if code is not None and 0 <= code < len(words) else default


def _grouping(app: AppEntry) -> Grouping:
    """Return the inclusion groups of an entry, whose names are separated by commas.

    As in SillyTavern, blanks before a comma belong to the name.
    """
    if not app.group:
        return NO_GROUPS
    written = app.group[:MAX_GROUP_TEXT]
    return Grouping(
        names=tuple([name for name in _COMMA.split(written) if name][:MAX_GROUPS]),
        written=written,
        **_part(app, "grouping"),
    )


def _sources(app: AppEntry) -> frozenset[SourceName]:
    """Return the names of the texts that are scanned in addition to the conversation."""
    if not SOURCES.keys() & app.model_fields_set:
        return _NO_SOURCES
    return frozenset(source for name, source in SOURCES.items() if getattr(app, name))


def _conditions(app: AppEntry) -> tuple[Condition, ...]:
    """Return conditions for an entry's filters by character and by kind of generation.

    If the character is unknown, an entry with a filter that excludes characters is still allowed.
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
    asked: tuple[tuple[str, list[str] | None, Test], ...] = (
        (CHARACTER_NAME, only.names, "is_none" if without else "is_any"),
        (CHARACTER_TAGS, only.tags, "has_none" if without else "has_any"),
    )
    for fact, values, test in asked:
        if values:
            yield Condition(fact=fact, test=test, values=tuple(values), kept_unknown=without)


def list_doubts(app: AppEntry) -> list[str]:
    """Return notices on an entry's unknown numbers, unnamed outlet and too many groups."""
    found = [
        f"{name} {code} is unknown: {default} is used"
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
        found.append(f"group has more than {most}: only the first ones are used")
    return found


def unreadable_members(extensions: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of SillyTavern's members that have a value of the wrong type."""
    return frozenset(read_leniently(AppEntry, extensions)[1])


def read_app_entry(extensions: Mapping[str, Any]) -> tuple[AppEntry, tuple[str, ...]]:
    """Return SillyTavern's settings of an entry, and a notice for each one that cannot be read."""
    if not extensions:
        return NOTHING_SAID, ()
    read, problems = read_leniently(AppEntry, extensions)
    return read, tuple(f"extensions.{problem}" for problem in problems.values())


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OwnFields:
    """The `evennia_ai` data of an entry; a missing setting is None or empty."""

    clock: ClockName | None = None
    conditions: tuple[Condition, ...] = ()
    anchor: Anchor | None = None
    mention: Mention | None = None
    outlet: str = ""
    group_cooldown: int = 0
    patterns: Patterns | None = None
    priority: float | None = None
    sources: frozenset[SourceName] = frozenset()
    movement: bool | None = None
    first_to_go: bool = False
    plain: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Further attributes, which `LoreEntry` takes unchanged."""


NO_OWN: Final = OwnFields()


MAX_VALUES: Final = 100
_QUESTION: Final = ("fact", "test", "values", "kept_unknown")
# Members of the `evennia_ai` data that errors list first. The other members follow in the order of
# the table of fields.
_LISTED_FIRST: Final = (
    *("clock", "when", "anchor", "group_cooldown", "outlet", "patterns", "priority", "sources"),
    *("place", "mention"),
)
_OWN_ATTRIBUTES: Final = frozenset(one.name for one in dataclasses.fields(OwnFields))
_OWN: Final = {field.name: field.own for field in FIELDS.values() if field.own}
_MEMBERS: Final = tuple(dict.fromkeys((*_LISTED_FIRST, *_OWN, *ENTRY_FILTERS)))
_TEXT: Final = a_name(MAX_NAME)
_LIST: Final = a_list(MAX_VALUES)
_SOURCE: Final = one_of(*SOURCE_NAMES)


def read_own(value: Any, *, where: str) -> tuple[OwnFields, tuple[FormatError, ...]]:
    """Return the `evennia_ai` data of an entry, and an error for each invalid member."""
    at = Where(where)
    if value is None:
        return NO_OWN, ()
    if not isinstance(value, dict):
        return NO_OWN, (at.wrong("an object of " + ", ".join(_MEMBERS), value),)
    given = {name: member for name, member in value.items() if member is not None}
    wrong = [_unknown_member(name, _MEMBERS, at) for name in given if name not in _MEMBERS]
    fields: dict[str, Any] = {}
    for field, is_said, read in _OWN_READERS:
        if any(name in given for name in is_said):
            try:
                fields[field] = read(given, at)
            except FormatError as error:
                wrong.append(error)
    plain = {name: fields.pop(name) for name in fields.keys() - _OWN_ATTRIBUTES}
    return OwnFields(**fields, plain=plain), tuple(wrong)


def _plain_reader(name: str, check: Check) -> "_OwnReader":
    return _OwnReader(name, (name,), lambda given, at: _check_value(given[name], check, at / name))


def _asked(given: Mapping[str, Any], where: Where) -> Iterator[Condition]:
    yield from _filtered(given, where)
    for index, item in enumerate(_check_value(given.get("when", []), _LIST, where / "when")):
        at = where / "when" / index
        if isinstance(item, dict) and item and item.keys() <= ENTRY_FILTERS.keys():
            yield from _filtered(item, at)
        else:
            yield _question(item, at)


def _filtered(given: Mapping[str, Any], where: Where) -> Iterator[Condition]:
    for name, (fact, with_these, without) in ENTRY_FILTERS.items():
        at = where / name
        values = [
            _check_value(value, _TEXT, at) for value in _check_value(given.get(name, []), _LIST, at)
        ]
        wanted = tuple(value for value in values if not value.startswith("!"))
        unwanted = tuple(value[1:] for value in values if value.startswith("!"))
        if wanted:
            yield Condition(fact=fact, test=with_these, values=wanted)
        if unwanted:
            yield Condition(fact=fact, test=without, values=unwanted, kept_unknown=True)


def _question(item: Any, where: Where) -> Condition:
    given = _object(item, _QUESTION, where)
    test = _check_value(given.get("test"), one_of(*CONDITION_TESTS), where / "test")
    values = given.get("values")
    values = values if isinstance(values, list) else [values]
    if not values or not all(isinstance(value, str | int | float | bool) for value in values):
        raise (where / "values").wrong("one value or more (texts, numbers, flags)", values)
    if test in ("at_least", "at_most") and not all(map(is_number, values)):
        raise (where / "values").wrong(f"numbers for the test {test}", values)
    return Condition(
        fact=_check_value(given.get("fact"), _TEXT, where / "fact"),
        test=test,
        values=tuple(_check_value(values, _LIST, where / "values")),
        kept_unknown=_check_value(given.get("kept_unknown", False), a_flag, where / "kept_unknown"),
    )


def _anchor(value: Any, where: Where) -> Anchor:
    given = _object(value, ("component", "side"), where)
    side = given.get("side", "after")
    return Anchor(
        component=_check_value(given.get("component"), _TEXT, where / "component"),
        side=_check_value(side, one_of(*SIDES), where / "side"),
    )


def _mention(given: Mapping[str, Any], where: Where) -> Mention | None:
    """Return the position next to a message with a key, from the members `place` and `mention`.

    Return None if an entry has no such position.
    """
    place, more = given.get("place"), given.get("mention")
    if place is None and more is None:
        return None
    if place not in (None, AT_MENTION):
        raise (where / "place").wrong(f"{AT_MENTION}, the only value of this member", place)
    given_mention = _object({} if more is None else more, ("side", "message"), where / "mention")
    return Mention(
        side=_check_value(
            given_mention.get("side", "before"), one_of(*SIDES), where / "mention" / "side"
        ),
        message=_check_value(
            given_mention.get("message", "newest"),
            one_of(*MENTIONINGS),
            where / "mention" / "message",
        ),
    )


def _named_sources(value: Any, where: Where) -> frozenset[Any]:
    return frozenset(
        _check_value(name, _SOURCE, where) for name in _check_value(value, _LIST, where)
    )


def _check_value(value: Any, check: Check, where: Where) -> Any:
    """Return a value that passes a check; raise FormatError for another value."""
    if problem := check(value):
        raise where.wrong(problem, value)
    return value


def _object(value: Any, known: tuple[str, ...], where: Where) -> dict[str, Any]:
    """Return a JSON object that has only known members; raise FormatError for another value."""
    if not isinstance(value, dict):
        raise where.wrong("an object of " + ", ".join(known), value)
    for name in value:
        if name not in known:
            raise _unknown_member(name, known, where)
    return value


def _unknown_member(name: str, known: tuple[str, ...], where: Where) -> FormatError:
    near = get_close_matches(name[:60], known, n=3) or known
    shown = one_line(name)[:60]
    return where.refused(f"unknown member '{shown}'; it may be {', '.join(near)}")


class _OwnReader(NamedTuple):
    """A reader of one field of `OwnFields`.

    It runs if the `evennia_ai` data has one of `members`.
    """

    field: str
    members: tuple[str, ...]
    read: Callable[[Mapping[str, Any], Where], Any]


_OWN_READERS: Final = (
    *(_plain_reader(name, check) for name, check in _OWN.items()),
    _OwnReader("anchor", ("anchor",), lambda given, at: _anchor(given["anchor"], at / "anchor")),
    _OwnReader(
        "sources",
        ("sources",),
        lambda given, at: _named_sources(given["sources"], at / "sources"),
    ),
    _OwnReader("mention", ("place", "mention"), _mention),
    _OwnReader("conditions", ("when", *ENTRY_FILTERS), lambda given, at: tuple(_asked(given, at))),
)
