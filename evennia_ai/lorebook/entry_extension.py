"""Our own extension data of an entry: `evennia_ai`, in a V3 entry under its `extensions`.

What no other program has a field for: conditions on facts of the game, the clock of timers, a
place next to a component or beside the message that has a key, an outlet of a V3 entry, a rest for
a whole group. It is ours, so what
is wrong in it is an error.
"""

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final, get_args

from evennia_ai.foreign.strict_json import one_line
from evennia_ai.lorebook.conditions import (
    EVENT_KIND,
    NPC_KEY,
    NPC_TAGS,
    SPEAKER_KIND,
    TESTS,
    ZONES,
    Condition,
    Test,
)
from evennia_ai.lorebook.entries import (
    CLOCKS,
    MENTIONINGS,
    SIDES,
    Anchor,
    Mention,
    Patterns,
    SourceName,
)
from evennia_ai.lorebook.entry_fields import NO_OWN, OwnFields
from evennia_ai.lorebook.where import Where
from evennia_ai.prompt.components import is_plain_int

# Filter -> the fact it asks about, the test for its values, the test for those with a "!".
FILTERS: Final[Mapping[str, tuple[str, Test, Test]]] = {
    "npcs": (NPC_KEY, "is_any", "is_none"),
    "tags": (NPC_TAGS, "has_any", "has_none"),
    "zones": (ZONES, "has_any", "has_none"),
    "events": (EVENT_KIND, "is_any", "is_none"),
    "speakers": (SPEAKER_KIND, "is_any", "is_none"),
}
MAX_VALUES: Final = 100
MAX_NAME: Final = 100
AT_MENTION: Final = "at_mention"
_SOURCES: Final[tuple[str, ...]] = get_args(SourceName)
_PATTERNS: Final[tuple[str, ...]] = get_args(Patterns)
_QUESTION: Final = ("fact", "test", "values", "kept_unknown")
_MEMBERS: Final = (
    *("clock", "when", "anchor", "group_cooldown", "outlet", "patterns", "priority", "sources"),
    *("place", "mention", "movement"),
    *FILTERS,
)


def read_own(value: Any, *, where: str) -> OwnFields:
    """What our extension data says; FormatError names the member that is wrong."""
    if value is None:
        return NO_OWN
    return _read(value, Where(where))


def _read(value: Any, where: Where) -> OwnFields:
    given = _object(value, _MEMBERS, where)
    given = {name: member for name, member in given.items() if member is not None}
    read = {name: _READERS[name](given[name], where / name) for name in given.keys() & _READERS}
    mention = _mention(given, where)
    return OwnFields(**read, mention=mention, conditions=tuple(_conditions(given, where)))


def _conditions(given: Mapping[str, Any], where: Where) -> Iterator[Condition]:
    yield from _filtered(given, where)
    for index, item in enumerate(_list(given.get("when", []), where / "when")):
        at = where / "when" / index
        if isinstance(item, dict) and item and item.keys() <= FILTERS.keys():
            yield from _filtered(item, at)
        else:
            yield _question(item, at)


def _filtered(given: Mapping[str, Any], where: Where) -> Iterator[Condition]:
    for name, (fact, with_these, without) in FILTERS.items():
        at = where / name
        values = [_text(value, at) for value in _list(given.get(name, []), at)]
        wanted = tuple(value for value in values if not value.startswith("!"))
        unwanted = tuple(value[1:] for value in values if value.startswith("!"))
        if wanted:
            yield Condition(fact=fact, test=with_these, values=wanted)
        if unwanted:
            yield Condition(fact=fact, test=without, values=unwanted, kept_unknown=True)


def _question(item: Any, where: Where) -> Condition:
    given = _object(item, _QUESTION, where)
    test = _one_of(TESTS)(given.get("test"), where / "test")
    values = given.get("values")
    values = values if isinstance(values, list) else [values]
    if not values or not all(isinstance(value, str | int | float | bool) for value in values):
        raise (where / "values").wrong("one value or more (texts, numbers, flags)", values)
    if test in ("at_least", "at_most") and not all(map(_is_number, values)):
        raise (where / "values").wrong(f"numbers for the test {test}", values)
    return Condition(
        fact=_text(given.get("fact"), where / "fact"),
        test=test,
        values=tuple(_list(values, where / "values")),
        kept_unknown=_flag(given.get("kept_unknown", False), where / "kept_unknown"),
    )


def _anchor(value: Any, where: Where) -> Anchor:
    given = _object(value, ("component", "side"), where)
    side = given.get("side", "after")
    return Anchor(
        component=_text(given.get("component"), where / "component"),
        side=_one_of(SIDES)(side, where / "side"),
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
        side=_one_of(SIDES)(said.get("side", "before"), where / "mention" / "side"),
        message=_one_of(MENTIONINGS)(said.get("message", "newest"), where / "mention" / "message"),
    )


def _count(value: Any, where: Where) -> int:
    if not is_plain_int(value) or value < 0:
        raise where.wrong("a whole number, 0 or more", value)
    return int(value)


def _number(value: Any, where: Where) -> float:
    if not _is_number(value):
        raise where.wrong("a number", value)
    return value  # type: ignore[no-any-return]


def _text(value: Any, where: Where) -> str:
    if not isinstance(value, str) or not value.strip("! ") or len(value) > MAX_NAME:
        raise where.wrong(f"a text of 1 to {MAX_NAME} characters", value)
    return value


def _one_of(choices: tuple[str, ...]) -> Callable[[Any, Where], Any]:
    def read(value: Any, where: Where) -> Any:
        if value not in choices:
            raise where.wrong("one of " + ", ".join(choices), value)
        return value

    return read


def _flag(value: Any, where: Where) -> bool:
    if not isinstance(value, bool):
        raise where.wrong("true or false", value)
    return value


def _sources(value: Any, where: Where) -> frozenset[Any]:
    return frozenset(_one_of(_SOURCES)(name, where) for name in _list(value, where))


def _list(value: Any, where: Where) -> list[Any]:
    if not isinstance(value, list) or len(value) > MAX_VALUES:
        raise where.wrong(f"a list of at most {MAX_VALUES}", value)
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


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_READERS: Final[Mapping[str, Callable[[Any, Where], Any]]] = {
    "clock": _one_of(CLOCKS),
    "anchor": _anchor,
    "outlet": _text,
    "group_cooldown": _count,
    "patterns": _one_of(_PATTERNS),
    "priority": _number,
    "sources": _sources,
    "movement": _flag,
}
