"""The fields of a lore entry in one table: our word, what it may be, where formats keep it.

What reads entries, edits them and tells of them derives from this table. A field that SillyTavern
has too, or that stands in our own data, and that means the same as the attribute of `LoreEntry` it
becomes, is a line here and nothing else; the others have functions where they are read.

V3 entries keep what the standard has no field for where SillyTavern looks for it (`extensions`,
snake case), and what nobody else has in `evennia_ai`; world files keep the former in the entry
itself, in camel case. What is written where is data here; `editing.edits` does it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Any, Final, Literal, NamedTuple, get_args

from pydantic import Field

from evennia_ai.engine.lorebook.conditions import (
    FILTERS,
)
from evennia_ai.engine.lorebook.decorators import (
    MAX_KEYS,
)
from evennia_ai.engine.lorebook.entry import (
    AT_MENTION,
    MAX_KEY,
    Logic,
    LoreEntry,
    Patterns,
    Position,
    SourceName,
)
from evennia_ai.engine.lorebook.rules import CLOCKS
from evennia_ai.engine.prompt.components import MAX_CONTENT, MAX_DEPTH
from evennia_ai.engine.prompt.messages import Role
from evennia_ai.formats.lorebooks.values import (
    MAX_COUNT,
    Check,
    Count,
    Flag,
    Number,
    a_bounded_number,
    a_count,
    a_count_up_to,
    a_flag,
    a_line,
    a_name,
    a_number,
    a_percent,
    a_text,
    anything,
    one_of,
    some_of,
)

MAX_LINE: Final = 300
MAX_NAME: Final = 100
# The text of an entry, wherever it is written.
Content = Annotated[str, Field(max_length=MAX_CONTENT)]
PATTERNS: Final[tuple[Patterns, ...]] = get_args(Patterns)
SOURCE_NAMES: Final[tuple[SourceName, ...]] = get_args(SourceName)
_FILTERED: Final = frozenset(fact for fact, _, _ in FILTERS.values())

# The numbers that SillyTavern writes for these words.
LOGICS: Final[tuple[Logic, ...]] = ("any", "not_all", "not_any", "all")
ROLES: Final[tuple[Role, ...]] = ("system", "user", "assistant")
POSITIONS: Final[tuple[Position, ...]] = (
    "before",
    "after",
    "note_top",
    "note_bottom",
    "depth",
    "examples_before",
    "examples_after",
    "outlet",
)
V3_POSITIONS: Final[Mapping[str, Position]] = {"before_char": "before", "after_char": "after"}
# SillyTavern's flag for each thing that may be scanned beside the conversation.
SOURCES: Final[Mapping[str, SourceName]] = {
    "match_persona_description": "persona",
    "match_character_description": "char_description",
    "match_character_personality": "char_personality",
    "match_character_depth_prompt": "char_depth_prompt",
    "match_scenario": "scenario",
    "match_creator_notes": "creator_notes",
}
# The entry itself, SillyTavern's data about it (the entry itself in a world file), our own data.
Target = Literal["entry", "app", "own"]


class Write(NamedTuple):
    """One member gets a value; None takes it away. `only_there`: where it already is."""

    target: Target
    name: str
    value: Any
    only_there: bool = False


# What is written for a value; the flag says whether the entry is of a world file.
Writes = Callable[[Any, bool], Iterable[Write]]


def _at(
    target: Target, name: str, world: str = "", *, value: Callable[[Any], Any] = lambda said: said
) -> Writes:
    """One member, in world files of the name `world`, gets what `value` makes of what is said."""
    return lambda said, is_world: [
        Write(target, world if is_world and world else name, value(said))
    ]


def _in_own(name: str) -> Writes:
    """A member of our own data; what is empty is taken away."""
    return _at("own", name, value=lambda said: said or None)


def _coded(name: str, codes: tuple[str, ...]) -> Writes:
    """A number that SillyTavern writes for a word."""
    return _at("app", name, value=lambda said: None if said is None else codes.index(said))


def _write_name(value: Any, is_world: bool) -> Iterable[Write]:
    """The name, which V3 has twice."""
    names = ("comment",) if is_world else ("comment", "name")
    return [Write("entry", name, value) for name in names]


def _write_enabled(value: Any, is_world: bool) -> Iterable[Write]:
    """The state, which world files have the other way round."""
    on = value is not False
    return [Write("entry", "disable", not on) if is_world else Write("entry", "enabled", on)]


def _write_secondary_keys(value: Any, is_world: bool) -> Iterable[Write]:
    """The secondary keys, which count where `selective` says so."""
    yield Write("entry", "keysecondary" if is_world else "secondary_keys", value)
    yield Write("entry", "selective", bool(value))


def _write_case_sensitive(value: Any, is_world: bool) -> Iterable[Write]:
    """V3 has a field of its own, which wins over SillyTavern's."""
    if not is_world:
        yield Write("entry", "case_sensitive", value)
    yield Write("app", "case_sensitive", value, only_there=not is_world)


def _write_patterns(value: Any, is_world: bool) -> Iterable[Write]:
    """Which keys are patterns; V3 can say that all are."""
    yield Write("own", "patterns", value)
    if not is_world:
        yield Write("entry", "use_regex", value == "all")


def _write_priority(value: Any, is_world: bool) -> Iterable[Write]:
    """World files have no priority."""
    return [Write("own" if is_world else "entry", "priority", value)]


def _write_position(value: Any, is_world: bool) -> Iterable[Write]:
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


def _write_mention(value: Any, is_world: bool) -> Iterable[Write]:
    """The place beside a message, which may stand there in short."""
    yield Write("own", "mention", value or None)
    if value is None:
        yield Write("own", "place", None)


def _write_outlet(value: Any, is_world: bool) -> Iterable[Write]:
    """The outlet, which our own data may name as well."""
    return [Write("own", "outlet", None), Write("app", "outlet_name", value)]


def _write_chance(value: Any, is_world: bool) -> Iterable[Write]:
    """The chance, and that it counts."""
    yield Write("app", "probability", value)
    yield Write("app", "use_probability", None if value is None else True)


def _write_sources(value: Any, is_world: bool) -> Iterable[Write]:
    """A flag for each source that SillyTavern knows, the others in our own data."""
    wanted = frozenset(value or ())
    for name, source in SOURCES.items():
        yield Write("app", name, source in wanted, only_there=source not in wanted)
    yield Write("own", "sources", sorted(wanted - set(SOURCES.values())) or None)


# How builders write a value behind `lore/set`.
Typed = Literal["text", "word", "flag", "number", "number or off", "keys", "mention", "questions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoreField:
    """One field of an entry; None as a value takes back what it says."""

    name: str
    """Our word for it."""
    check: Check
    """What a value must be."""
    writes: Writes
    """Where a value is written."""
    says: Callable[[LoreEntry], Any]
    """What an entry says of it."""
    is_compared: bool
    """Whether an entry says after an edit what the edit asked for."""
    word: str
    """What builders call it."""
    typed: Typed | None
    """How they write a value; None where it has a switch of its own."""
    into: str = ""
    """The attribute of the entry that a value becomes as it is; "" where more is to be decided."""
    app: str = ""
    """SillyTavern's member of which that is true."""
    door: Any = None
    """What is read of that member."""
    own: Check | None = None
    """What our own data must say in the member of this name; None where it has none such."""
    unsaid: Any = None
    """What the entry has where nothing is said."""


def _keys(value: Any) -> str:
    fits = isinstance(value, list) and len(value) <= MAX_KEYS
    each = fits and all(isinstance(key, str) and len(key) <= MAX_KEY for key in value)
    return "" if each else f"a list of at most {MAX_KEYS} texts of {MAX_KEY} characters each"


def _group_names(value: Any) -> str:
    fits = isinstance(value, list) and all(isinstance(name, str) for name in value)
    each = fits and all(name and name == name.strip() and "," not in name for name in value)
    return "" if each else "a list of names, without commas and blanks around them"


def _mention(entry: LoreEntry) -> Any:
    mention = entry.mention
    return None if mention is None else {"side": mention.side, "message": mention.message}


def _sources(entry: LoreEntry) -> Any:
    return tuple(sorted(entry.sources))


def _asks(fact: str) -> Callable[[LoreEntry], Any]:
    """The conditions of an entry on this fact."""
    return lambda entry: tuple(c for c in entry.conditions if c.fact == fact)


def _asks_otherwise(entry: LoreEntry) -> Any:
    """The conditions that no filter makes."""
    return tuple(c for c in entry.conditions if c.fact not in _FILTERED)


def _field(
    name: str,
    check: Check,
    how: Writes,
    typed: Typed | None = None,
    *,
    says: str | Callable[[LoreEntry], Any] = "",
    word: str = "",
    is_compared: bool = True,
    **more: Any,
) -> LoreField:
    return LoreField(
        name=name,
        check=check,
        writes=how,
        says=says if callable(says) else attrgetter(says or name),
        is_compared=is_compared,
        word=word or name,
        typed=typed,
        **more,
    )


class _Kind(NamedTuple):
    """What a value of SillyTavern's may be, and what an entry has where none is there."""

    check: Check
    door: Any
    typed: Typed
    unsaid: Any


def _app(name: str, kind: _Kind, into: str = "", *, app: str = "") -> LoreField:
    """A field that SillyTavern has too, as `app`; it becomes the attribute `into`."""
    return _field(
        name,
        kind.check,
        _at("app", app or name),
        kind.typed,
        says=into,
        is_compared=not into.startswith("grouping."),  # without a group nothing of it is read
        into=into or name,
        app=app or name,
        door=kind.door,
        unsaid=kind.unsaid,
    )


def _own(
    name: str,
    says: str | Callable[[LoreEntry], Any],
    typed: Typed | None = "keys",
    own: Check | None = None,
) -> LoreField:
    """A field of our own data, which is checked where that is read."""
    how = _in_own(name)
    return _field(name, anything, how, typed, says=says, is_compared=False, own=own)


_COUNT: Final = a_count_up_to(MAX_COUNT)
_DEPTH: Final = a_count_up_to(MAX_DEPTH)
_LINE: Final = a_line(MAX_LINE)
_PLACE: Final = one_of(*POSITIONS, "anchor", AT_MENTION)
_SOURCES: Final = some_of(*SOURCE_NAMES)
_PATTERNS: Final = one_of(*PATTERNS)
_TEXT: Final = a_text(MAX_CONTENT)
_GROUPS: Final = _at("app", "group", value=lambda names: ",".join(names or ()))
_SWITCH: Final = _Kind(a_flag, Flag, "flag", False)
_RULED: Final = _Kind(a_flag, Flag, "flag", None)  # the book or the rules say it
_TIME: Final = _Kind(_COUNT, Count, "number or off", 0)
_ALL: Final = (
    _field("content", _TEXT, _at("entry", "content"), says="template.source", is_compared=False),
    _field("keys", _keys, _at("entry", "keys", "key")),
    _field("secondary_keys", _keys, _write_secondary_keys),
    _field("selective", a_flag, _at("entry", "selective")),
    _field("logic", one_of(*LOGICS), _coded("selective_logic", LOGICS)),
    _field("enabled", a_flag, _write_enabled),
    _field("position", _PLACE, _write_position),
    _field("depth", _DEPTH, _at("app", "depth")),
    _field("outlet", _LINE, _write_outlet, own=a_name(MAX_NAME)),
    _own("anchor", "anchor", None),
    _field("order", a_bounded_number, _at("entry", "insertion_order", "order")),
    # From here on those that `lore/set` takes, in the order in which they are told.
    _field("mention", anything, _write_mention, "mention", says=_mention, word="place"),
    _field("name", _LINE, _write_name, "text"),
    _field("constant", a_flag, _at("entry", "constant"), "flag"),
    _field("role", one_of(*ROLES), _coded("role", ROLES), "word"),
    _field("priority", a_bounded_number, _write_priority, "number", own=a_number),
    _field("chance", a_percent, _write_chance, "number"),
    _app("sticky", _TIME, "timing.sticky"),
    _app("cooldown", _TIME, "timing.cooldown"),
    _app("delay", _TIME, "timing.delay"),
    _own("clock", "timing.clock", "word", one_of(*CLOCKS)),
    _field("groups", _group_names, _GROUPS, "keys", says="grouping.names", word="group"),
    _app("group_weight", _Kind(a_bounded_number, Number, "number", 100), "grouping.weight"),
    _app("group_preferred", _SWITCH, "grouping.preferred", app="group_override"),
    _app("group_scored", _RULED, "grouping.scored", app="use_group_scoring"),
    _own("group_cooldown", "grouping.cooldown", "number or off", a_count),
    _app("recursion_excluded", _SWITCH, "recursion.excluded", app="exclude_recursion"),
    _app("recursion_prevented", _SWITCH, "recursion.prevented", app="prevent_recursion"),
    _app("recursion_level", _TIME, "recursion.delay_level", app="delay_until_recursion"),
    _app("scan_depth", _Kind(_COUNT, Count, "number", None)),
    _field("sources", _SOURCES, _write_sources, "keys", says=_sources, is_compared=False),
    _field("patterns", _PATTERNS, _write_patterns, "word", own=_PATTERNS),
    _field("case_sensitive", a_flag, _write_case_sensitive, "flag"),
    _app("match_whole_words", _RULED),
    _app("ignore_budget", _SWITCH),
    _field("first_to_go", a_flag, _in_own("first_to_go"), "flag", own=a_flag),
    _field("movement", a_flag, _at("own", "movement"), "flag", says="hears_movement", own=a_flag),
    *(_own(name, _asks(fact)) for name, (fact, _, _) in FILTERS.items()),
    _own("when", _asks_otherwise, "questions"),
)
FIELDS: Final[Mapping[str, LoreField]] = {field.name: field for field in _ALL}
# Those that a builder sets by their word, in the order in which they are told.
TYPED_FIELDS: Final[Mapping[str, LoreField]] = {field.word: field for field in _ALL if field.typed}
# Those of which SillyTavern's data says what the entry has.
APP_FIELDS: Final = tuple(field for field in _ALL if field.app)
_REQUIRED: Final = frozenset({"keys", "content", "enabled", "order"})


def problem_with(name: str, value: Any) -> str:
    """What the value of a field must be, "" where it is; None takes back what is not required."""
    return "" if value is None and name not in _REQUIRED else FIELDS[name].check(value)
