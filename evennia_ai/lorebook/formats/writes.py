"""Where each format keeps the fields of an entry: which member of which object gets which value.

V3 entries keep what the standard has no field for where SillyTavern looks for it (`extensions`,
snake case), and what nobody else has in `evennia_ai`; world files keep the former in the entry
itself, in camel case. What is said here is data; `edits` does it.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple

from evennia_ai.lorebook.entry import Logic, Position, SourceName
from evennia_ai.prompt.messages import Role

AT_MENTION: Final = "at_mention"
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


Writes = Iterator[Write]
# What is written for a value; the flag says whether the entry is of a world file.
How = Callable[[Any, bool], Writes]


def member(v3: str, world: str = "") -> How:
    """A member of the entry itself."""

    def writes(value: Any, is_world: bool) -> Writes:
        yield Write("entry", world or v3 if is_world else v3, value)

    return writes


def in_app(name: str) -> How:
    """A member of SillyTavern's data."""

    def writes(value: Any, is_world: bool) -> Writes:
        yield Write("app", name, value)

    return writes


def in_own(name: str) -> How:
    """A member of our own data; what is empty is taken away."""

    def writes(value: Any, is_world: bool) -> Writes:
        yield Write("own", name, value or None)

    return writes


def coded(name: str, codes: tuple[str, ...]) -> How:
    """A number that SillyTavern writes for a word."""

    def writes(value: Any, is_world: bool) -> Writes:
        yield Write("app", name, None if value is None else codes.index(value))

    return writes


def name(value: Any, is_world: bool) -> Writes:
    """The name, which V3 has twice."""
    yield Write("entry", "comment", value)
    if not is_world:
        yield Write("entry", "name", value)


def enabled(value: Any, is_world: bool) -> Writes:
    """The state, which world files have the other way round."""
    on = value is not False
    yield Write("entry", "disable", not on) if is_world else Write("entry", "enabled", on)


def secondary_keys(value: Any, is_world: bool) -> Writes:
    """The secondary keys, which count where `selective` says so."""
    yield Write("entry", "keysecondary" if is_world else "secondary_keys", value)
    yield Write("entry", "selective", bool(value))


def case_sensitive(value: Any, is_world: bool) -> Writes:
    """V3 has a field of its own, which wins over SillyTavern's."""
    if is_world:
        yield Write("app", "case_sensitive", value)
    else:
        yield Write("entry", "case_sensitive", value)
        yield Write("app", "case_sensitive", value, only_there=True)


def patterns(value: Any, is_world: bool) -> Writes:
    """Which keys are patterns; V3 can say that all are."""
    yield Write("own", "patterns", value)
    if not is_world:
        yield Write("entry", "use_regex", value == "all")


def priority(value: Any, is_world: bool) -> Writes:
    """World files have no priority."""
    yield Write("own" if is_world else "entry", "priority", value)


def position(value: Any, is_world: bool) -> Writes:
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


def movement(value: Any, is_world: bool) -> Writes:
    """Whether it hears of who comes and goes."""
    yield Write("own", "movement", value)


def mention(value: Any, is_world: bool) -> Writes:
    """The place beside a message, which may stand there in short."""
    yield Write("own", "mention", value or None)
    if value is None:
        yield Write("own", "place", None)


def outlet(value: Any, is_world: bool) -> Writes:
    """The outlet, which our own data may name as well."""
    yield Write("own", "outlet", None)
    yield Write("app", "outlet_name", value)


def chance(value: Any, is_world: bool) -> Writes:
    """The chance, and that it counts."""
    yield Write("app", "probability", value)
    yield Write("app", "use_probability", None if value is None else True)


def groups(value: Any, is_world: bool) -> Writes:
    """The groups as one text."""
    yield Write("app", "group", ",".join(value or ()))


def sources(value: Any, is_world: bool) -> Writes:
    """A flag for each source that SillyTavern knows, the others in our own data."""
    wanted = frozenset(value or ())
    for name, source in SOURCES.items():
        yield Write("app", name, source in wanted, only_there=source not in wanted)
    yield Write("own", "sources", sorted(wanted - set(SOURCES.values())) or None)
