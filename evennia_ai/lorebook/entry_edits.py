"""What of an entry can be edited: our word for it, what it may be, where each format keeps it.

A field is written as a list of `Write`s, data that says which member of which object gets which
value; `editing` applies them. V3 entries keep what the standard has no field for where
SillyTavern looks for it (`extensions`, snake case), and what nobody else has in `evennia_ai`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, get_args

from evennia_ai.lorebook.decorators import MAX_KEYS
from evennia_ai.lorebook.entries import LoreEntry, Patterns, SourceName
from evennia_ai.lorebook.entry_app import LOGICS, POSITIONS, ROLES, SOURCES
from evennia_ai.lorebook.entry_extension import AT_MENTION
from evennia_ai.lorebook.entry_formats import MAX_KEY
from evennia_ai.prompt.components import MAX_CONTENT, MAX_DEPTH, is_plain_int

# The entry itself, SillyTavern's data about it (the entry itself in a world file), our own data.
Target = Literal["entry", "app", "own"]
MAX_LINE: Final = 300
MAX_COUNT: Final = 10**9


class Write(NamedTuple):
    """One member gets a value; None takes it away. `only_there`: where it already is."""

    target: Target
    name: str
    value: Any
    only_there: bool = False


Writes = Iterator[Write]


@dataclass(frozen=True, slots=True)
class Field:
    """`wanted` says what a value must be, "" where it is; `told` what an entry then says.

    None as a value takes back what the field says. `told` is None where nothing can be compared.
    """

    wanted: Callable[[Any], str]
    writes: Callable[[Any, bool], Writes]
    told: Callable[[LoreEntry], Any] | None = None


def _flag(value: Any) -> str:
    return "" if isinstance(value, bool) else "true or false"


def _number(value: Any) -> str:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return "a number"
    return "" if abs(value) <= MAX_COUNT else f"a number from {-MAX_COUNT} to {MAX_COUNT}"


def _percent(value: Any) -> str:
    return "" if not _number(value) and 0 <= value <= 100 else "a number from 0 to 100"


def _count(value: Any) -> str:
    return _whole(value, most=MAX_COUNT)


def _depth(value: Any) -> str:
    return _whole(value, most=MAX_DEPTH)


def _whole(value: Any, *, most: int) -> str:
    if not is_plain_int(value) or value < 0:
        return "a whole number, 0 or more"
    return "" if value <= most else f"a whole number, 0 or more, at most {most}"


def _line(value: Any) -> str:
    fits = isinstance(value, str) and len(value) <= MAX_LINE and "\n" not in value
    return "" if fits else f"one line of at most {MAX_LINE} characters"


def _content(value: Any) -> str:
    fits = isinstance(value, str) and len(value) <= MAX_CONTENT
    return "" if fits else f"a text of at most {MAX_CONTENT} characters"


def _keys(value: Any) -> str:
    fits = isinstance(value, list) and len(value) <= MAX_KEYS
    each = fits and all(isinstance(key, str) and len(key) <= MAX_KEY for key in value)
    return "" if each else f"a list of at most {MAX_KEYS} texts of {MAX_KEY} characters each"


def _group_names(value: Any) -> str:
    fits = isinstance(value, list) and all(isinstance(name, str) for name in value)
    each = fits and all(name and name == name.strip() and "," not in name for name in value)
    return "" if each else "a list of names, without commas and blanks around them"


def _one_of(*choices: str) -> Callable[[Any], str]:
    return lambda value: "" if value in choices else "one of " + ", ".join(choices)


def _some_of(*choices: str) -> Callable[[Any], str]:
    def wanted(value: Any) -> str:
        fits = isinstance(value, list) and all(name in choices for name in value)
        return "" if fits else "a list of " + ", ".join(choices)

    return wanted


def _own_check(value: Any) -> str:
    """Nothing: our own data is checked where it is read."""
    return ""


def _entry(v3: str, world: str) -> Callable[[Any, bool], Writes]:
    def writes(value: Any, is_world: bool) -> Writes:
        yield Write("entry", world if is_world else v3, value)

    return writes


def _app(name: str) -> Callable[[Any, bool], Writes]:
    def writes(value: Any, is_world: bool) -> Writes:
        yield Write("app", name, value)

    return writes


def _own(name: str) -> Callable[[Any, bool], Writes]:
    def writes(value: Any, is_world: bool) -> Writes:
        yield Write("own", name, value or None)

    return writes


def _coded(name: str, codes: tuple[str, ...]) -> Callable[[Any, bool], Writes]:
    def writes(value: Any, is_world: bool) -> Writes:
        yield Write("app", name, None if value is None else codes.index(value))

    return writes


def _name(value: Any, is_world: bool) -> Writes:
    yield Write("entry", "comment", value)
    if not is_world:
        yield Write("entry", "name", value)


def _enabled(value: Any, is_world: bool) -> Writes:
    on = value is not False
    yield Write("entry", "disable", not on) if is_world else Write("entry", "enabled", on)


def _secondary_keys(value: Any, is_world: bool) -> Writes:
    yield Write("entry", "keysecondary" if is_world else "secondary_keys", value)
    yield Write("entry", "selective", bool(value))


def _case_sensitive(value: Any, is_world: bool) -> Writes:
    if is_world:
        yield Write("app", "case_sensitive", value)
    else:
        yield Write("entry", "case_sensitive", value)
        yield Write("app", "case_sensitive", value, only_there=True)


def _patterns(value: Any, is_world: bool) -> Writes:
    yield Write("own", "patterns", value)
    if not is_world:
        yield Write("entry", "use_regex", value == "all")


def _priority(value: Any, is_world: bool) -> Writes:
    yield Write("own" if is_world else "entry", "priority", value)


def _position(value: Any, is_world: bool) -> Writes:
    """A place by its name; V3 has words for two of them, numbers of SillyTavern for the others."""
    for name, place in (("anchor", "anchor"), ("outlet", "outlet"), ("mention", AT_MENTION)):
        if value != place:
            yield Write("own", name, None)
    yield Write("own", "place", AT_MENTION if value == AT_MENTION else None)
    if value in ("anchor", AT_MENTION):
        return
    number = None if value is None else POSITIONS.index(value)
    if is_world:
        yield Write("entry", "position", number or 0)
    elif value in ("before", "after"):
        yield Write("entry", "position", f"{value}_char")
        yield Write("app", "position", number, only_there=True)
    else:
        yield Write("app", "position", number)
    if value is None and not is_world:
        yield Write("entry", "position", None)


def _movement(value: Any, is_world: bool) -> Writes:
    yield Write("own", "movement", value)


def _mention(value: Any, is_world: bool) -> Writes:
    yield Write("own", "mention", value or None)
    if value is None:
        yield Write("own", "place", None)


def _mention_said(entry: LoreEntry) -> Any:
    mention = entry.mention
    return None if mention is None else {"side": mention.side, "message": mention.message}


def _outlet(value: Any, is_world: bool) -> Writes:
    yield Write("own", "outlet", None)
    yield Write("app", "outlet_name", value)


def _chance(value: Any, is_world: bool) -> Writes:
    yield Write("app", "probability", value)
    yield Write("app", "use_probability", None if value is None else True)


def _groups(value: Any, is_world: bool) -> Writes:
    yield Write("app", "group", ",".join(value or ()))


def _sources(value: Any, is_world: bool) -> Writes:
    wanted = frozenset(value or ())
    for name, source in SOURCES.items():
        yield Write("app", name, source in wanted, only_there=source not in wanted)
    yield Write("own", "sources", sorted(wanted - set(SOURCES.values())) or None)


_SOURCE_NAMES: Final[tuple[str, ...]] = get_args(SourceName)
FIELDS: Final[Mapping[str, Field]] = {
    "name": Field(_line, _name, lambda e: e.name),
    "content": Field(_content, _entry("content", "content")),
    "keys": Field(_keys, _entry("keys", "key"), lambda e: list(e.keys)),
    "secondary_keys": Field(_keys, _secondary_keys, lambda e: list(e.secondary_keys)),
    "selective": Field(_flag, _entry("selective", "selective"), lambda e: e.selective),
    "logic": Field(_one_of(*LOGICS), _coded("selective_logic", LOGICS), lambda e: e.logic),
    "patterns": Field(_one_of(*get_args(Patterns)), _patterns, lambda e: e.patterns),
    "constant": Field(_flag, _entry("constant", "constant"), lambda e: e.constant),
    "enabled": Field(_flag, _enabled, lambda e: e.enabled),
    "position": Field(_one_of(*POSITIONS, "anchor", AT_MENTION), _position, lambda e: e.position),
    "depth": Field(_depth, _app("depth"), lambda e: e.depth),
    "outlet": Field(_line, _outlet, lambda e: e.outlet),
    "anchor": Field(_own_check, _own("anchor")),
    "mention": Field(_own_check, _mention, _mention_said),
    "role": Field(_one_of(*ROLES), _coded("role", ROLES), lambda e: e.role),
    "order": Field(_number, _entry("insertion_order", "order"), lambda e: e.order),
    "priority": Field(_number, _priority, lambda e: e.priority),
    "case_sensitive": Field(_flag, _case_sensitive, lambda e: e.case_sensitive),
    "match_whole_words": Field(_flag, _app("match_whole_words"), lambda e: e.match_whole_words),
    "scan_depth": Field(_count, _app("scan_depth"), lambda e: e.scan_depth),
    "sources": Field(_some_of(*_SOURCE_NAMES), _sources),
    "chance": Field(_percent, _chance, lambda e: e.chance),
    "ignore_budget": Field(_flag, _app("ignore_budget"), lambda e: e.ignore_budget),
    "sticky": Field(_count, _app("sticky"), lambda e: e.timing.sticky),
    "cooldown": Field(_count, _app("cooldown"), lambda e: e.timing.cooldown),
    "delay": Field(_count, _app("delay"), lambda e: e.timing.delay),
    "clock": Field(_own_check, _own("clock")),
    "movement": Field(_flag, _movement, lambda e: e.hears_movement),
    "groups": Field(_group_names, _groups, lambda e: list(e.grouping.names)),
    "group_weight": Field(_number, _app("group_weight")),
    "group_preferred": Field(_flag, _app("group_override")),
    "group_scored": Field(_flag, _app("use_group_scoring")),
    "group_cooldown": Field(_own_check, _own("group_cooldown")),
    "recursion_excluded": Field(_flag, _app("exclude_recursion"), lambda e: e.recursion.excluded),
    "recursion_prevented": Field(_flag, _app("prevent_recursion"), lambda e: e.recursion.prevented),
    "recursion_level": Field(
        _count, _app("delay_until_recursion"), lambda e: e.recursion.delay_level
    ),
    "when": Field(_own_check, _own("when")),
    "npcs": Field(_own_check, _own("npcs")),
    "tags": Field(_own_check, _own("tags")),
    "zones": Field(_own_check, _own("zones")),
    "events": Field(_own_check, _own("events")),
    "speakers": Field(_own_check, _own("speakers")),
}
_REQUIRED: Final = frozenset({"keys", "content", "enabled", "order"})


def wanted(name: str, value: Any) -> str:
    """What the value of a field must be, "" where it is; None takes back what is not required."""
    return "" if value is None and name not in _REQUIRED else FIELDS[name].wanted(value)
