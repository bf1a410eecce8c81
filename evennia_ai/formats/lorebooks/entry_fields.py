"""The table of a lore entry's fields: their names, allowed values and places in the formats.

The readers, the editor and the commands derive from this table. A field that means the same as an
attribute of `LoreEntry` needs only a line in the table. Other fields also need functions in their
readers. A field of the `evennia_ai` data also needs an attribute of `OwnFields` in `extension`.

V3 entries keep fields that the standard lacks in `extensions`, in snake case, where SillyTavern
looks for them. Fields that only this package has are in `extensions.evennia_ai`. World files keep
SillyTavern's fields in the entry itself, in camel case. The table returns the changes for an edit;
`editing.edits` applies them to the JSON.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Any, Final, Literal, NamedTuple, get_args

from pydantic import Field

from evennia_ai.engine.lorebook.decorators import (
    MAX_KEYS,
)
from evennia_ai.engine.lorebook.entry import (
    AT_MENTION,
    MAX_KEY,
    SOURCE_NAMES,
    Logic,
    LoreEntry,
    Patterns,
    Position,
    SourceName,
)
from evennia_ai.engine.lorebook.rules import CLOCKS
from evennia_ai.engine.prompt.components import MAX_CONTENT, MAX_DEPTH
from evennia_ai.engine.prompt.conditions import (
    ENTRY_FILTERS,
)
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
    any_value,
    one_of,
    some_of,
)

MAX_LINE: Final = 300
MAX_NAME: Final = 100
# The type of an entry's text in every format.
Content = Annotated[str, Field(max_length=MAX_CONTENT)]
PATTERNS: Final[tuple[Patterns, ...]] = get_args(Patterns)
_FILTERED: Final = frozenset(fact for fact, _, _ in ENTRY_FILTERS.values())

# SillyTavern writes the words of these three tuples as numbers: the index of the word in its tuple.
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
# Maps SillyTavern's flags of an entry to the texts that are scanned, in addition to the
# conversation, if the flag is set.
SOURCES: Final[Mapping[str, SourceName]] = {
    "match_persona_description": "persona",
    "match_character_description": "char_description",
    "match_character_personality": "char_personality",
    "match_character_depth_prompt": "char_depth_prompt",
    "match_scenario": "scenario",
    "match_creator_notes": "creator_notes",
}
# The object in which an edit writes a member. "entry" is the JSON object of the entry. "app" is
# SillyTavern's data, which cards keep under `extensions` and world files in the entry itself. "own"
# is the `evennia_ai` data.
Target = Literal["entry", "app", "own"]


class Write(NamedTuple):
    """A change of one member in the JSON of a lore entry; the value None removes the member.

    With `only_there`, the member is changed only if it exists.
    """

    target: Target
    name: str
    value: Any
    only_there: bool = False


# A function that returns the changes that write a field's value into an entry. Its second argument
# is True for an entry of a world file.
Writes = Callable[[Any, bool], Iterable[Write]]


def _at(
    target: Target, name: str, world: str = "", *, value: Callable[[Any], Any] = lambda said: said
) -> Writes:
    """Return a function that writes a field which is a single member of an entry's JSON.

    It returns the change to the entry.

    Args:
        world: the name of the member in world files, "" if it is the same.
        value: converts the field's value to the value in the file.
    """
    return lambda said, is_world: [
        Write(target, world if is_world and world else name, value(said))
    ]


def _in_own(name: str) -> Writes:
    """Return a function that writes a field into the `evennia_ai` data of an entry.

    It returns the change to the entry. An empty value removes the field from the data.
    """
    return _at("own", name, value=lambda said: said or None)


def _coded(name: str, codes: tuple[str, ...]) -> Writes:
    """Return a function that writes a word as the number that SillyTavern uses for it."""
    return _at("app", name, value=lambda said: None if said is None else codes.index(said))


def _write_name(value: Any, is_world: bool) -> Iterable[Write]:
    """Return the changes that write an entry's name. Card V3 has two members for it."""
    names = ("comment",) if is_world else ("comment", "name")
    return [Write("entry", name, value) for name in names]


def _write_enabled(value: Any, is_world: bool) -> Iterable[Write]:
    """Return the change that switches an entry on or off; world files have the flag `disable`."""
    on = value is not False
    return [Write("entry", "disable", not on) if is_world else Write("entry", "enabled", on)]


def _write_secondary_keys(value: Any, is_world: bool) -> Iterable[Write]:
    """Yield the changes that write an entry's secondary keys.

    SillyTavern ignores secondary keys unless the flag `selective` is set, so it is written too.
    """
    yield Write("entry", "keysecondary" if is_world else "secondary_keys", value)
    yield Write("entry", "selective", bool(value))


def _write_case_sensitive(value: Any, is_world: bool) -> Iterable[Write]:
    """Yield the changes that write whether keys are case-sensitive.

    V3's own field wins over SillyTavern's.
    """
    if not is_world:
        yield Write("entry", "case_sensitive", value)
    yield Write("app", "case_sensitive", value, only_there=not is_world)


def _write_patterns(value: Any, is_world: bool) -> Iterable[Write]:
    """Yield the changes that write which keys of an entry are regular expressions.

    V3 can only express "all keys", by the flag `use_regex`.
    """
    yield Write("own", "patterns", value)
    if not is_world:
        yield Write("entry", "use_regex", value == "all")


def _write_priority(value: Any, is_world: bool) -> Iterable[Write]:
    """Return the change that writes an entry's priority.

    World files have a priority only in the `evennia_ai` data.
    """
    return [Write("own" if is_world else "entry", "priority", value)]


def _write_position(value: Any, is_world: bool) -> Iterable[Write]:
    """Yield the changes that write an entry's position.

    V3 has words for two positions, and SillyTavern's numbers for the others.
    """
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
    """Yield the changes that place an entry next to a message with one of its keys.

    If the value is None, the member `place` is removed too, which means the same.
    """
    yield Write("own", "mention", value or None)
    if value is None:
        yield Write("own", "place", None)


def _write_outlet(value: Any, is_world: bool) -> Iterable[Write]:
    """Return the changes that write an entry's outlet to SillyTavern's data.

    The outlet in the `evennia_ai` data, which would win, is removed.
    """
    return [Write("own", "outlet", None), Write("app", "outlet_name", value)]


def _write_chance(value: Any, is_world: bool) -> Iterable[Write]:
    """Yield the changes that write an entry's chance.

    The flag `useProbability` makes the chance count, so it is set too.
    """
    yield Write("app", "probability", value)
    yield Write("app", "use_probability", None if value is None else True)


def _write_sources(value: Any, is_world: bool) -> Iterable[Write]:
    """Yield the changes that write which texts are scanned in addition to the conversation.

    SillyTavern has a flag for each of its sources of text; others go to the `evennia_ai` data.
    """
    wanted = frozenset(value or ())
    for name, source in SOURCES.items():
        yield Write("app", name, source in wanted, only_there=source not in wanted)
    yield Write("own", "sources", sorted(wanted - set(SOURCES.values())) or None)


# The kinds of values that builders type for `lore/set`.
Typed = Literal["text", "word", "flag", "number", "number or off", "keys", "mention", "questions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoreField:
    """A field of a lore entry: its names, and how it is checked, written and read.

    In edits, the value None removes the field.
    """

    name: str
    """The field's name in this package."""
    check: Check
    """The check that a new value must pass."""
    writes: Writes
    """The function that returns the changes that write a value."""
    says: Callable[[LoreEntry], Any]
    """The function that returns the field's value in an entry."""
    is_compared: bool
    """True if the field's value in the edited entry must equal the value that the edit wrote."""
    word: str
    """The word that builders use for the field."""
    typed: Typed | None
    """The kind of value that builders type; None if `lore/set` does not set the field."""
    into: str = ""
    """The attribute of `LoreEntry` that gets the value of `app` unchanged, "" if there is none."""
    app: str = ""
    """The member of SillyTavern's data that holds the value, "" if there is none."""
    door: Any = None
    """The pydantic type with which the member of SillyTavern's data is parsed."""
    own: Check | None = None
    """The check of the member with this field's name in the `evennia_ai` data of an entry.

    It is None if that data has no such member.
    """
    unsaid: Any = None
    """The value of the field if the file has none."""


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


def _conditions_on(fact: str) -> Callable[[LoreEntry], Any]:
    """Return a function that selects those conditions of an entry that test this fact."""
    return lambda entry: tuple(c for c in entry.conditions if c.fact == fact)


def _other_conditions(entry: LoreEntry) -> Any:
    """Return the conditions of an entry that are not filters of SillyTavern."""
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
    """What fields of SillyTavern's data with the same type share: check, parser and default."""

    check: Check
    door: Any
    typed: Typed
    unsaid: Any


def _app(name: str, kind: _Kind, into: str = "", *, app: str = "") -> LoreField:
    """Return a field that is a member of SillyTavern's data and an attribute of `LoreEntry`.

    `app` is the name of the member, `into` the name of the attribute; both default to `name`.
    """
    return _field(
        name,
        kind.check,
        _at("app", app or name),
        kind.typed,
        says=into,
        # An entry without a group is read with defaults for these values, so a comparison with the
        # values that an edit wrote would fail.
        is_compared=not into.startswith("grouping."),
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
    """Return a field of the `evennia_ai` data, whose values the reader of that data checks."""
    how = _in_own(name)
    return _field(name, any_value, how, typed, says=says, is_compared=False, own=own)


_COUNT: Final = a_count_up_to(MAX_COUNT)
_DEPTH: Final = a_count_up_to(MAX_DEPTH)
_LINE: Final = a_line(MAX_LINE)
_PLACE: Final = one_of(*POSITIONS, "anchor", AT_MENTION)
_SOURCES: Final = some_of(*SOURCE_NAMES)
_PATTERNS: Final = one_of(*PATTERNS)
_TEXT: Final = a_text(MAX_CONTENT)
_GROUPS: Final = _at("app", "group", value=lambda names: ",".join(names or ()))
_SWITCH: Final = _Kind(a_flag, Flag, "flag", False)
# Flags that an entry may lack. Then the setting of the book or of the rules is used.
_RULED: Final = _Kind(a_flag, Flag, "flag", None)
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
    # The rest are fields that builders set with `lore/set`, which lists them in this order.
    _field("mention", any_value, _write_mention, "mention", says=_mention, word="place"),
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
    *(_own(name, _conditions_on(fact)) for name, (fact, _, _) in ENTRY_FILTERS.items()),
    _own("when", _other_conditions, "questions"),
)
FIELDS: Final[Mapping[str, LoreField]] = {field.name: field for field in _ALL}
"""All fields of a lore entry, by their name in this package."""
TYPED_FIELDS: Final[Mapping[str, LoreField]] = {field.word: field for field in _ALL if field.typed}
"""The fields of an entry that `lore/set` sets, by the word that builders use.

Commands list them in this order.
"""
APP_FIELDS: Final = tuple(field for field in _ALL if field.app)
"""The fields of a `LoreEntry` that are unchanged members of SillyTavern's data."""
_REQUIRED: Final = frozenset({"keys", "content", "enabled", "order"})


def problem_with(name: str, value: Any) -> str:
    """Return a description of the values that a field may have, "" if `value` is valid.

    None removes the field, which is allowed unless the field is required.
    """
    return "" if value is None and name not in _REQUIRED else FIELDS[name].check(value)
