"""What SillyTavern says about an entry, in the spelling of its world files or of card extensions.

World files spell in camel case (`groupWeight`), extension data of card entries in snake case
(`group_weight`, but `useProbability`); both are read in both places. `AppEntry` is what is written
there, the functions say what it means.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, TypedDict

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from evennia_ai.foreign.strict_json import ListOf
from evennia_ai.lorebook.conditions import (
    CHARACTER_NAME,
    CHARACTER_TAGS,
    GENERATION_KIND,
    Condition,
)
from evennia_ai.lorebook.entries import (
    NO_GROUPS,
    NO_RECURSION,
    NO_TIMING,
    Grouping,
    Logic,
    Position,
    Recursion,
    SourceName,
    Timing,
)
from evennia_ai.lorebook.entry_values import Code, Count, Flag, Number
from evennia_ai.prompt.messages import Role

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
SOURCES: Final[Mapping[str, SourceName]] = {
    "match_persona_description": "persona",
    "match_character_description": "char_description",
    "match_character_personality": "char_personality",
    "match_character_depth_prompt": "char_depth_prompt",
    "match_scenario": "scenario",
    "match_creator_notes": "creator_notes",
}
MAX_GROUPS: Final = 32
MAX_GROUP_TEXT: Final = 2000
_COMMA: Final = re.compile(r",\s*")
_NO_SOURCES: Final[frozenset[SourceName]] = frozenset()


class _CharacterFilter(BaseModel):
    model_config = ConfigDict(
        strict=True, frozen=True, alias_generator=to_camel, populate_by_name=True
    )

    is_exclude: Flag | None = None
    names: ListOf[str] | None = None
    tags: ListOf[str] | None = None


class AppEntry(BaseModel):
    """What is written; None is what is not said."""

    model_config = ConfigDict(
        strict=True, frozen=True, alias_generator=to_camel, populate_by_name=True
    )

    selective_logic: Code | None = None
    position: Code | None = None
    depth: Code | None = None
    role: Code | None = None
    outlet_name: str | None = None
    scan_depth: Count | None = None
    case_sensitive: Flag | None = None
    match_whole_words: Flag | None = None
    probability: Number | None = None
    use_probability: Flag | None = None
    ignore_budget: Flag | None = None
    sticky: Count | None = None
    cooldown: Count | None = None
    delay: Count | None = None
    group: str | None = None
    group_override: Flag | None = None
    group_weight: Number | None = None
    use_group_scoring: Flag | None = None
    exclude_recursion: Flag | None = None
    prevent_recursion: Flag | None = None
    delay_until_recursion: Count | None = None
    triggers: ListOf[str] | None = None
    character_filter: _CharacterFilter | None = None
    match_persona_description: Flag | None = None
    match_character_description: Flag | None = None
    match_character_personality: Flag | None = None
    match_character_depth_prompt: Flag | None = None
    match_scenario: Flag | None = None
    match_creator_notes: Flag | None = None


NOTHING_SAID: Final = AppEntry()


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
    ignore_budget: bool
    match_whole_words: bool | None
    scan_depth: int | None
    sources: frozenset[SourceName]
    recursion: Recursion
    timing: Timing
    grouping: Grouping
    conditions: tuple[Condition, ...]


def said(app: AppEntry) -> Said:
    """What the data says where the formats do not differ; place and chance have defaults."""
    return {
        "logic": _logic(app),
        "depth": app.depth,
        "role": _role(app),
        "outlet": app.outlet_name or "",
        "ignore_budget": bool(app.ignore_budget),
        "match_whole_words": app.match_whole_words,
        "scan_depth": app.scan_depth,
        "sources": _sources(app),
        "recursion": _recursion(app),
        "timing": _timing(app),
        "grouping": _grouping(app),
        "conditions": _conditions(app),
    }


def _role(app: AppEntry) -> Role:
    """The role of the entry's text."""
    return ROLES[app.role] if app.role is not None and 0 <= app.role < len(ROLES) else "system"


def _logic(app: AppEntry) -> Logic:
    """How the secondary keys decide."""
    at = app.selective_logic
    return LOGICS[at] if at is not None and 0 <= at < len(LOGICS) else "any"


def _recursion(app: AppEntry) -> Recursion:
    """How the entry takes part in recursion."""
    if not (app.exclude_recursion or app.prevent_recursion or app.delay_until_recursion):
        return NO_RECURSION
    return Recursion(
        excluded=bool(app.exclude_recursion),
        prevented=bool(app.prevent_recursion),
        delay_level=app.delay_until_recursion or 0,
    )


def _timing(app: AppEntry) -> Timing:
    """How long the entry stays, rests and waits."""
    if not (app.sticky or app.cooldown or app.delay):
        return NO_TIMING
    return Timing(sticky=app.sticky or 0, cooldown=app.cooldown or 0, delay=app.delay or 0)


def _grouping(app: AppEntry) -> Grouping:
    """The inclusion groups: split at commas, the blanks before a name belong to it."""
    if not app.group:
        return NO_GROUPS
    written = app.group[:MAX_GROUP_TEXT]
    return Grouping(
        names=tuple([name for name in _COMMA.split(written) if name][:MAX_GROUPS]),
        written=written,
        weight=100 if app.group_weight is None else app.group_weight,
        preferred=bool(app.group_override),
        scored=app.use_group_scoring,
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
