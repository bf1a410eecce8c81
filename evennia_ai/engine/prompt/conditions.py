"""Conditions of texts: tests of facts of the game, such as the room, the speaker or the hour.

A condition names a fact, a test and the values to compare. It is data and contains no code. A
condition on an unknown fact is not met, and the verdict on the text says so. Lore entries,
components and notes have conditions. An entry's filters by NPC, tag, zone, kind of event and kind
of speaker are conditions, too.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, get_args

from evennia_ai.engine.errors import ComponentValueError

# The value of one fact. A fact with several texts, such as tags or zones, is a tuple.
Fact = str | int | float | bool | tuple[str, ...]
Facts = Mapping[str, Fact]
Test = Literal["is_any", "is_none", "at_least", "at_most", "has_any", "has_none"]
CONDITION_TESTS: Final[tuple[Test, ...]] = get_args(Test)

# The names of the facts that the game and scenarios provide. A game may add others.
CHARACTER_NAME: Final = "character.name"
CHARACTER_TAGS: Final = "character.tags"
NPC_KEY: Final = "npc.key"
NPC_TAGS: Final = "npc.tags"
ROOM_KEY: Final = "room.key"
ROOM_TAGS: Final = "room.tags"
ZONES: Final = "room.zones"
EVENT_KIND: Final = "event.kind"
SPEAKER_KIND: Final = "speaker.kind"
# The kind of generation, which SillyTavern's `triggers` filter by. In this package each turn is
# "normal".
GENERATION_KIND: Final = "generation.kind"
NORMAL: Final = "normal"
# Facts that depend neither on the event nor on the time, so they are the same in every turn.
LASTING_FACTS: Final = frozenset(
    {
        *(CHARACTER_NAME, CHARACTER_TAGS, NPC_KEY, NPC_TAGS),
        *(ROOM_KEY, ROOM_TAGS, ZONES, GENERATION_KIND),
    }
)

# For each filter field of an entry: the fact, the test for plain values, and the test for values
# that begin with "!". For example "!guard" excludes guards.
ENTRY_FILTERS: Final[Mapping[str, tuple[str, Test, Test]]] = {
    "npcs": (NPC_KEY, "is_any", "is_none"),
    "tags": (NPC_TAGS, "has_any", "has_none"),
    "zones": (ZONES, "has_any", "has_none"),
    "events": (EVENT_KIND, "is_any", "is_none"),
    "speakers": (SPEAKER_KIND, "is_any", "is_none"),
}

_WORDS: Final[Mapping[Test, str]] = {
    "is_any": "must be",
    "is_none": "must not be",
    "at_least": "must be at least",
    "at_most": "must be at most",
    "has_any": "must have",
    "has_none": "must not have",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A test that compares one fact of the game with `values`.

    `is_any` and `is_none` compare the whole fact with each value. `has_any` and `has_none` compare
    each text of a fact that has several texts. `at_least` and `at_most` compare numbers. Letter
    case is ignored. If `kept_unknown`, the condition is met when the fact is unknown.
    """

    fact: str
    test: Test
    values: tuple[str | int | float | bool, ...]
    kept_unknown: bool = False

    def __str__(self) -> str:
        """Render the condition as builders write it: fact, test and values."""
        return f"{self.fact} {self.test} {', '.join(map(str, self.values))}"


_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,15}(\.[0-9]{1,15})?")
_SIGNS: Final[Mapping[str, Test]] = {">=": "at_least", "<=": "at_most"}
"""Signs that builders may type instead of the words of a test."""
_FORM: Final = (
    "<fact> <test> <value>, <value>, with a semicolon between two conditions, and one of the tests"
    f" {', '.join(CONDITION_TESTS)}, >= and <="
)


@lru_cache(maxsize=1024)
def parse_conditions(text: str) -> tuple[Condition, ...]:
    """Parse conditions as builders type them, such as `time.hour >= 18; npc.tags has_any tired`.

    Raises:
        ComponentValueError: A part of the text is not a condition. The error names that part.
    """
    return tuple(_parsed(part.strip()) for part in text.split(";") if part.strip())


def _parsed(text: str) -> Condition:
    fact, sign, given = (*text.split(maxsplit=2), "", "")[:3]
    test = next((one for one in CONDITION_TESTS if one == sign.lower()), _SIGNS.get(sign))
    values = tuple(_value(one.strip()) for one in given.split(",") if one.strip())
    if test is None or not values:
        raise ComponentValueError("when", text, _FORM)
    if test in ("at_least", "at_most") and not all(map(_is_number, values)):
        raise ComponentValueError("when", text, f"{fact} {sign} and a number")
    return Condition(fact=fact, test=test, values=values)


def _value(text: str) -> str | int | float | bool:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if _NUMBER.fullmatch(text):
        return float(text) if "." in text else int(text)
    return text


def are_conditions(text: str) -> bool:
    """True if `parse_conditions` can parse the text."""
    try:
        parse_conditions(text)
    except ComponentValueError:
        return False
    return True


def passing_fact(conditions: tuple[Condition, ...]) -> str:
    """Return the first tested fact that depends on the event or on the time; "" if none does."""
    return next((one.fact for one in conditions if one.fact not in LASTING_FACTS), "")


def unmet_condition(conditions: tuple[Condition, ...], facts: Facts) -> str:
    """Render the first condition that is not met; "" if all are met."""
    for condition in conditions:
        if problem := _problem(condition, facts):
            return problem
    return ""


def _problem(condition: Condition, facts: Facts) -> str:
    wish = f"{condition.fact} {_WORDS[condition.test]} {_shown(condition.values)}"
    fact = facts.get(condition.fact)
    if fact is None:
        return "" if condition.kept_unknown else f"{wish}, and the fact is unknown"
    met = _TESTS[condition.test](fact, condition.values)
    found = fact if isinstance(fact, tuple) else (fact,)
    return "" if met else f"{wish}, and it is {_shown(found, between=', ') or 'nothing'}"


def _is_any(fact: Fact, values: tuple[object, ...]) -> bool:
    return _plain(fact) in map(_plain, values)


def _has_any(fact: Fact, values: tuple[object, ...]) -> bool:
    several = fact if isinstance(fact, tuple) else (fact,)
    return not set(map(_plain, several)).isdisjoint(map(_plain, values))


def _at_least(fact: Fact, values: tuple[object, ...]) -> bool:
    return _is_number(fact) and all(_is_number(v) and fact >= v for v in values)  # type: ignore[operator]


def _at_most(fact: Fact, values: tuple[object, ...]) -> bool:
    return _is_number(fact) and all(_is_number(v) and fact <= v for v in values)  # type: ignore[operator]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _plain(value: object) -> object:
    """Return a value in the form to compare: texts without case, and True different from 1."""
    if isinstance(value, bool):
        return ("flag", value)
    return value.casefold() if isinstance(value, str) else value


def _shown(values: tuple[object, ...], *, between: str = " or ") -> str:
    return between.join(
        str(value).lower() if isinstance(value, bool) else str(value)[:60] for value in values[:6]
    )


_TESTS: Final[Mapping[Test, Callable[[Fact, tuple[object, ...]], bool]]] = {
    "is_any": _is_any,
    "is_none": lambda fact, values: not _is_any(fact, values),
    "at_least": _at_least,
    "at_most": _at_most,
    "has_any": _has_any,
    "has_none": lambda fact, values: not _has_any(fact, values),
}
