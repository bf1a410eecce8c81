"""Our own extension data of an entry: `evennia_ai`, in a V3 entry under its `extensions`.

What no other program has a field for: conditions on facts of the game, the clock of timers, a
place next to a component or beside the message that has a key, an outlet of a V3 entry, a rest for
a whole group. It is ours, so what is wrong in it is an error.
"""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

from evennia_ai.foreign.documents import one_line
from evennia_ai.lorebook import checks
from evennia_ai.lorebook.checks import Check
from evennia_ai.lorebook.conditions import TESTS, Condition
from evennia_ai.lorebook.entry import MENTIONINGS, SIDES, Anchor, Mention
from evennia_ai.lorebook.formats.entry_fields import (
    FIELDS,
    FILTERS,
    MAX_NAME,
    NO_OWN,
    SOURCE_NAMES,
    OwnFields,
)
from evennia_ai.lorebook.formats.values import Where
from evennia_ai.lorebook.formats.writes import AT_MENTION

MAX_VALUES: Final = 100
_QUESTION: Final = ("fact", "test", "values", "kept_unknown")
# In the order in which they are told; what a single check is enough for joins from the table.
_TOLD_FIRST: Final = (
    *("clock", "when", "anchor", "group_cooldown", "outlet", "patterns", "priority", "sources"),
    *("place", "mention"),
)
_OWN: Final = {field.name: field.own for field in FIELDS.values() if field.own}
_MEMBERS: Final = tuple(dict.fromkeys((*_TOLD_FIRST, *_OWN, *FILTERS)))
_TEXT: Final = checks.name(MAX_NAME)
_LIST: Final = checks.list_up_to(MAX_VALUES)
_SOURCE: Final = checks.one_of(*SOURCE_NAMES)


def read_own(value: Any, *, where: str) -> OwnFields:
    """What our extension data says; FormatError names the member that is wrong."""
    if value is None:
        return NO_OWN
    return _read(value, Where(where))


def _read(value: Any, where: Where) -> OwnFields:
    given = _object(value, _MEMBERS, where)
    given = {name: member for name, member in given.items() if member is not None}
    plain = given.keys() & _OWN
    return OwnFields(
        **{name: _checked(given[name], _OWN[name], where / name) for name in plain},
        anchor=_anchor(given["anchor"], where / "anchor") if "anchor" in given else None,
        sources=_sources(given.get("sources", []), where / "sources"),
        mention=_mention(given, where),
        conditions=tuple(_conditions(given, where)),
    )


def _conditions(given: Mapping[str, Any], where: Where) -> Iterator[Condition]:
    yield from _filtered(given, where)
    for index, item in enumerate(_checked(given.get("when", []), _LIST, where / "when")):
        at = where / "when" / index
        if isinstance(item, dict) and item and item.keys() <= FILTERS.keys():
            yield from _filtered(item, at)
        else:
            yield _question(item, at)


def _filtered(given: Mapping[str, Any], where: Where) -> Iterator[Condition]:
    for name, (fact, with_these, without) in FILTERS.items():
        at = where / name
        values = [_checked(value, _TEXT, at) for value in _checked(given.get(name, []), _LIST, at)]
        wanted = tuple(value for value in values if not value.startswith("!"))
        unwanted = tuple(value[1:] for value in values if value.startswith("!"))
        if wanted:
            yield Condition(fact=fact, test=with_these, values=wanted)
        if unwanted:
            yield Condition(fact=fact, test=without, values=unwanted, kept_unknown=True)


def _question(item: Any, where: Where) -> Condition:
    given = _object(item, _QUESTION, where)
    test = _checked(given.get("test"), checks.one_of(*TESTS), where / "test")
    values = given.get("values")
    values = values if isinstance(values, list) else [values]
    if not values or not all(isinstance(value, str | int | float | bool) for value in values):
        raise (where / "values").wrong("one value or more (texts, numbers, flags)", values)
    if test in ("at_least", "at_most") and not all(map(checks.is_number, values)):
        raise (where / "values").wrong(f"numbers for the test {test}", values)
    return Condition(
        fact=_checked(given.get("fact"), _TEXT, where / "fact"),
        test=test,
        values=tuple(_checked(values, _LIST, where / "values")),
        kept_unknown=_checked(
            given.get("kept_unknown", False), checks.flag, where / "kept_unknown"
        ),
    )


def _anchor(value: Any, where: Where) -> Anchor:
    given = _object(value, ("component", "side"), where)
    side = given.get("side", "after")
    return Anchor(
        component=_checked(given.get("component"), _TEXT, where / "component"),
        side=_checked(side, checks.one_of(*SIDES), where / "side"),
    )


def _mention(given: Mapping[str, Any], where: Where) -> Mention | None:
    """The place beside a message, which `place` asks for and `mention` too, saying more of it."""
    place, more = given.get("place"), given.get("mention")
    if place is None and more is None:
        return None
    if place not in (None, AT_MENTION):
        raise (where / "place").wrong(f"{AT_MENTION}, the one place that it can name", place)
    said = _object({} if more is None else more, ("side", "message"), where / "mention")
    return Mention(
        side=_checked(
            said.get("side", "before"), checks.one_of(*SIDES), where / "mention" / "side"
        ),
        message=_checked(
            said.get("message", "newest"),
            checks.one_of(*MENTIONINGS),
            where / "mention" / "message",
        ),
    )


def _sources(value: Any, where: Where) -> frozenset[Any]:
    return frozenset(_checked(name, _SOURCE, where) for name in _checked(value, _LIST, where))


def _checked(value: Any, check: Check, where: Where) -> Any:
    """The value, which is what it must be; FormatError says what that is."""
    if problem := check(value):
        raise where.wrong(problem, value)
    return value


def _object(value: Any, known: tuple[str, ...], where: Where) -> dict[str, Any]:
    """`value` as an object of known members; FormatError names the near ones."""
    if not isinstance(value, dict):
        raise where.wrong("an object of " + ", ".join(known), value)
    for name in value:
        if name not in known:
            near = get_close_matches(name[:60], known, n=3) or known
            shown = one_line(name)[:60]
            raise where.refused(f"unknown member '{shown}'; it may be {', '.join(near)}")
    return value
