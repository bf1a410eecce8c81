"""What a setting may be: checks of single values, and readers of those that are dictionaries.

Plain functions of a value; `evennia_ai.conf` says which setting is judged by which.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from math import isfinite
from typing import Any, Final, Literal, get_args

from evennia_ai.cards.limits import CardLimits
from evennia_ai.errors import FormatError
from evennia_ai.history.compaction_settings import CompactionSettings, read_compaction
from evennia_ai.knowledge.lorekeeper_settings import LorekeeperSettings, read_lorekeeper
from evennia_ai.llm.allowances import Allowances, read_allowances
from evennia_ai.llm.profiles import Given, ModelRole, read_profiles, read_roles
from evennia_ai.lorebook.rules import ActivationRules, read_rules
from evennia_ai.memory.settings import MemorySettings, read_memory
from evennia_ai.net.http import is_address
from evennia_ai.prompt.components import is_plain_int
from evennia_ai.wiki.site import Wikis, read_wikis
from evennia_ai.writing_limits import WritingLimits, read_writing_limits

PREFIX: Final = "EVENNIA_AI_"
# One player's shouted keywords shall not crowd out what others wake.
GAME_LORE: Final = {"speaker_share_percent": 50, "speaker_matches": 40}
_NOT_FOR_GAMES: Final = ("dice", "dry_run")
_DOTTED: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")
GLOBAL_TRACES: Final = "global"
LogMode = Literal["", "preview", "full"]
TimeSuffix = Literal["", "real", "game"]
TIME_SUFFIXES: Final[tuple[TimeSuffix, ...]] = get_args(TimeSuffix)
# A setting says True; an environment variable can only say "1".
_LOG_MODES: Final[dict[object, LogMode]] = {
    **dict.fromkeys((False, "", "0", "false", "False", "off"), ""),
    **dict.fromkeys((True, "1", "true", "True", "on", "preview"), "preview"),
    "full": "full",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracing:
    """Where traces go: "" nowhere, "global", or the dotted path of what makes an exporter."""

    to: str = ""
    with_content: bool = False


def whole_number(low: int, high: int = 10**9) -> Callable[[Any], bool]:
    """A check for whole numbers from `low` to `high`."""
    return lambda value: is_plain_int(value) and low <= value <= high


def is_seconds(value: Any) -> bool:
    """Whether it is a number of seconds, 0 or more."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and isfinite(value) and value >= 0


def is_some_seconds(value: Any) -> bool:
    """Whether it is a number of seconds over 0."""
    return is_seconds(value) and value > 0


def is_line(value: Any) -> bool:
    """Whether it is one line that says something."""
    return isinstance(value, str) and 0 < len(value.strip()) <= 500 and "\n" not in value


def is_text(value: Any) -> bool:
    """Whether it is a text, which may be empty."""
    return isinstance(value, str)


def are_paths(value: Any) -> bool:
    """Whether it is a list of dotted paths."""
    listed = isinstance(value, list | tuple)
    return listed and all(isinstance(path, str) and _DOTTED.fullmatch(path) for path in value)


def are_names_or_paths(value: Any) -> bool:
    """Whether it is a list of names and dotted paths of things in Python's modules."""
    return isinstance(value, list | tuple) and all(
        isinstance(one, str) and (one.isidentifier() or are_paths([one])) for one in value
    )


def is_address_or_empty(value: Any) -> bool:
    """Whether it is the address of a server, or empty."""
    return isinstance(value, str) and (not value or is_address(value))


def lore_rules(given: Any) -> ActivationRules:
    """The rules of lore with what the game sets; FormatError names what it cannot set."""
    where = f"{PREFIX}LORE"
    if not isinstance(given, Mapping):
        raise FormatError("setting", f"{where}: must be a dictionary")
    for name in _NOT_FOR_GAMES:
        if name in given:
            raise FormatError("setting", f"{where}.{name}: is for scenarios alone; take it out")
    return read_rules({**GAME_LORE, **given}, where=where)


def card_limits(given: Any) -> CardLimits:
    """The limits of cards with what the game sets; FormatError names what it cannot set."""
    where = f"{PREFIX}CARD_LIMITS"
    if not isinstance(given, Mapping):
        raise FormatError("setting", f"{where}: must be a dictionary")
    known = [field.name for field in fields(CardLimits)]
    for name, value in given.items():
        if name not in known:
            near = get_close_matches(str(name), known, n=1)
            meant = f"; did you mean {near[0]}?" if near else ""
            raise FormatError("setting", f"{where}: there is no limit {name!r}{meant}")
        if not is_plain_int(value):
            raise FormatError("setting", f"{where}.{name}: must be a whole number, not {value!r}")
    try:
        return CardLimits(**given)
    except FormatError as error:
        raise FormatError("setting", f"{where}: {error.message}") from error


def compaction(given: Any) -> CompactionSettings:
    """How histories are compacted in the game; FormatError names what cannot be set."""
    return read_compaction(given, where=f"{PREFIX}COMPACTION")


def memory(given: Any) -> MemorySettings:
    """How NPCs remember; FormatError names what cannot be set."""
    return read_memory(given, where=f"{PREFIX}MEMORY")


def call_limits(given: Any) -> Allowances:
    """What may be asked of models; FormatError names what cannot be set."""
    return read_allowances(given, where=f"{PREFIX}LIMITS")


def knowledge_wikis(given: Any) -> Wikis:
    """The wikis that are knowledge bases; FormatError names what cannot be set."""
    return read_wikis(given, where=f"{PREFIX}KNOWLEDGE_WIKIS")


def is_log_mode(value: Any) -> bool:
    """Whether it says how much of requests is logged."""
    return isinstance(value, bool | str) and value in _LOG_MODES


def log_mode(value: Any) -> LogMode:
    """How much of requests is logged: nothing, the first words, or everything."""
    return _LOG_MODES[value]


def lorekeeper(given: Any) -> LorekeeperSettings:
    """How the lorekeeper writes; FormatError names what cannot be set."""
    return read_lorekeeper(given, where=f"{PREFIX}LOREKEEPER")


def writing_limits(given: Any) -> WritingLimits:
    """How much NPCs may write; FormatError names what cannot be set."""
    return read_writing_limits(given, where=f"{PREFIX}WRITINGS")


def tracing(given: Any) -> Tracing:
    """Where traces go; FormatError names what cannot be set."""
    where = f"{PREFIX}TRACES"
    if not isinstance(given, Mapping):
        raise FormatError("setting", f"{where}: must be a dictionary")
    for name in given:
        if name not in ("to", "content"):
            raise FormatError("setting", f"{where}: there is no {name!r}; there are to, content")
    to, content = given.get("to", ""), given.get("content", False)
    if to not in ("", GLOBAL_TRACES) and not are_paths([to]):
        raise FormatError(
            "setting", f'{where}.to: must be "global" or the dotted path of an exporter, not {to!r}'
        )
    if not isinstance(content, bool):
        raise FormatError("setting", f"{where}.content: must be True or False, not {content!r}")
    return Tracing(to=to, with_content=content)


def model_profiles(given: Any) -> dict[str, Given]:
    """The game's profiles of models; FormatError names what cannot be set."""
    return read_profiles(given, where=f"{PREFIX}PROFILES")


def model_roles(given: Any) -> dict[ModelRole, tuple[str, ...]]:
    """Which profiles are asked in which role; FormatError names what cannot be set."""
    return read_roles(given, where=f"{PREFIX}MODEL_ROLES")


def problem_of(read: Callable[[Any], object]) -> Callable[[Any], str]:
    """What `read` refuses a value for, "" where it does not."""

    def problem(given: Any) -> str:
        try:
            read(given)
        except FormatError as error:
            return error.message
        return ""

    return problem


def reads(read: Callable[[Any], object]) -> Callable[[Any], bool]:
    """A check for values that `read` does not refuse."""
    problem = problem_of(read)
    return lambda given: not problem(given)
