"""The fields of a lore entry in one table: our word, what it may be, where formats keep it.

What reads entries, edits them and tells of them derives from this table. A field that SillyTavern
has too, or that stands in our own data, and that means the same as the attribute of `LoreEntry` it
becomes, is a line here and nothing else; the others have functions where they are read.
`EntryFields` is what any format says about an entry, before decorators are applied.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, Literal, NamedTuple, get_args

from evennia_ai.lorebook import checks
from evennia_ai.lorebook.checks import Check
from evennia_ai.lorebook.conditions import (
    EVENT_KIND,
    NPC_KEY,
    NPC_TAGS,
    SPEAKER_KIND,
    ZONES,
    Condition,
    Test,
)
from evennia_ai.lorebook.decorators import MAX_KEYS
from evennia_ai.lorebook.entry import (
    CLOCKS,
    MAX_KEY,
    NO_GROUPS,
    NO_RECURSION,
    NO_TIMING,
    Anchor,
    ClockName,
    Grouping,
    Logic,
    LoreEntry,
    Mention,
    Patterns,
    Position,
    Recursion,
    SourceName,
    Timing,
)
from evennia_ai.lorebook.formats import writes
from evennia_ai.lorebook.formats.values import Count, Flag, Number
from evennia_ai.lorebook.formats.writes import AT_MENTION, LOGICS, POSITIONS, ROLES, How
from evennia_ai.prompt.components import MAX_CONTENT, MAX_DEPTH
from evennia_ai.prompt.messages import Role

MAX_LINE: Final = 300
MAX_NAME: Final = 100
PATTERNS: Final[tuple[Patterns, ...]] = get_args(Patterns)
SOURCE_NAMES: Final[tuple[SourceName, ...]] = get_args(SourceName)
# Filter -> the fact it asks about, the test for its values, the test for those with a "!".
FILTERS: Final[Mapping[str, tuple[str, Test, Test]]] = {
    "npcs": (NPC_KEY, "is_any", "is_none"),
    "tags": (NPC_TAGS, "has_any", "has_none"),
    "zones": (ZONES, "has_any", "has_none"),
    "events": (EVENT_KIND, "is_any", "is_none"),
    "speakers": (SPEAKER_KIND, "is_any", "is_none"),
}
_FILTERED: Final = frozenset(fact for fact, _, _ in FILTERS.values())

# How builders write a value behind `lore/set`.
Typed = Literal["text", "word", "flag", "number", "number or off", "keys", "mention", "questions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoreField:
    """One field of an entry; None as a value takes back what it says."""

    name: str
    """Our word for it."""
    check: Check
    """What a value must be."""
    writes: How
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
    how: How,
    typed: Typed | None = None,
    *,
    says: str | Callable[[LoreEntry], Any] = "",
    word: str = "",
    is_compared: bool = True,
    own: Check | None = None,
) -> LoreField:
    return LoreField(
        name=name,
        check=check,
        writes=how,
        says=says if callable(says) else attrgetter(says or name),
        is_compared=is_compared,
        word=word or name,
        typed=typed,
        own=own,
    )


class _Kind(NamedTuple):
    """What a value of SillyTavern's may be, and what an entry has where none is there."""

    check: Check
    door: Any
    typed: Typed
    unsaid: Any


def _app(name: str, kind: _Kind, into: str = "", *, app: str = "") -> LoreField:
    """A field that SillyTavern has too, as `app`; it becomes the attribute `into`."""
    return LoreField(
        name=name,
        check=kind.check,
        writes=writes.in_app(app or name),
        says=attrgetter(into or name),
        is_compared=not into.startswith("grouping."),  # without a group nothing of it is read
        word=name,
        typed=kind.typed,
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
    how = writes.in_own(name)
    return _field(name, checks.any_value, how, typed, says=says, is_compared=False, own=own)


_FLAG: Final = checks.flag
_COUNT: Final = checks.count_up_to(checks.MAX_COUNT)
_NUMBER: Final = checks.bounded_number
_DEPTH: Final = checks.count_up_to(MAX_DEPTH)
_LINE: Final = checks.line(MAX_LINE)
_PLACE: Final = checks.one_of(*POSITIONS, "anchor", AT_MENTION)
_SOURCES: Final = checks.some_of(*SOURCE_NAMES)
_PATTERNS: Final = checks.one_of(*PATTERNS)
_TEXT: Final = checks.text(MAX_CONTENT)
_SWITCH: Final = _Kind(_FLAG, Flag, "flag", False)
_RULED: Final = _Kind(_FLAG, Flag, "flag", None)  # the book or the rules say it
_TIME: Final = _Kind(_COUNT, Count, "number or off", 0)
_ALL: Final = (
    _field("content", _TEXT, writes.member("content"), says="template.source", is_compared=False),
    _field("keys", _keys, writes.member("keys", "key")),
    _field("secondary_keys", _keys, writes.secondary_keys),
    _field("selective", _FLAG, writes.member("selective")),
    _field("logic", checks.one_of(*LOGICS), writes.coded("selective_logic", LOGICS)),
    _field("enabled", _FLAG, writes.enabled),
    _field("position", _PLACE, writes.position),
    _field("depth", _DEPTH, writes.in_app("depth")),
    _field("outlet", _LINE, writes.outlet, own=checks.name(MAX_NAME)),
    _own("anchor", "anchor", None),
    _field("order", _NUMBER, writes.member("insertion_order", "order")),
    # From here on those that `lore/set` takes, in the order in which they are told.
    _field("mention", checks.any_value, writes.mention, "mention", says=_mention, word="place"),
    _field("name", _LINE, writes.name, "text"),
    _field("constant", _FLAG, writes.member("constant"), "flag"),
    _field("role", checks.one_of(*ROLES), writes.coded("role", ROLES), "word"),
    _field("priority", _NUMBER, writes.priority, "number", own=checks.number),
    _field("chance", checks.percent, writes.chance, "number"),
    _app("sticky", _TIME, "timing.sticky"),
    _app("cooldown", _TIME, "timing.cooldown"),
    _app("delay", _TIME, "timing.delay"),
    _own("clock", "timing.clock", "word", checks.one_of(*CLOCKS)),
    _field("groups", _group_names, writes.groups, "keys", says="grouping.names", word="group"),
    _app("group_weight", _Kind(_NUMBER, Number, "number", 100), "grouping.weight"),
    _app("group_preferred", _SWITCH, "grouping.preferred", app="group_override"),
    _app("group_scored", _RULED, "grouping.scored", app="use_group_scoring"),
    _own("group_cooldown", "grouping.cooldown", "number or off", checks.count),
    _app("recursion_excluded", _SWITCH, "recursion.excluded", app="exclude_recursion"),
    _app("recursion_prevented", _SWITCH, "recursion.prevented", app="prevent_recursion"),
    _app("recursion_level", _TIME, "recursion.delay_level", app="delay_until_recursion"),
    _app("scan_depth", _Kind(_COUNT, Count, "number", None)),
    _field("sources", _SOURCES, writes.sources, "keys", says=_sources, is_compared=False),
    _field("patterns", _PATTERNS, writes.patterns, "word", own=_PATTERNS),
    _field("case_sensitive", _FLAG, writes.case_sensitive, "flag"),
    _app("match_whole_words", _RULED),
    _app("ignore_budget", _SWITCH),
    _field("first_to_go", _FLAG, writes.in_own("first_to_go"), "flag", own=_FLAG),
    _field("movement", _FLAG, writes.movement, "flag", says="hears_movement", own=_FLAG),
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


# Injection depth of an entry that stands in the history and does not say where.
DEFAULT_DEPTH: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFields:
    """What our own extension data says; None and empty are what it does not say."""

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


NO_OWN: Final = OwnFields()


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
    case_sensitive: bool | None
    sources: frozenset[SourceName]
    recursion: Recursion = NO_RECURSION
    timing: Timing = NO_TIMING
    grouping: Grouping = NO_GROUPS
    chance: float = 100
    conditions: tuple[Condition, ...] = ()
    own: OwnFields = NO_OWN
    plain: Mapping[str, Any]
    notices: tuple[str, ...] = ()
