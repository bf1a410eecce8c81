"""What a game sets of its knowledge: how builders are helped to write, how often NPCs may search.

A game sets single ones in one dictionary; what it leaves out is as it is by default. The first
searches of an NPC are free of questions. After them each one is measured by what the prompt has
left: the fuller it is, the more urgently the model is told to stop, until it is refused. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.fields import Must, listed, read_fields

Placement = Literal["prepend", "split"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LorekeeperSettings:
    """How builders are helped to write pages."""

    enabled: bool = True
    """False: the generator is asked without a package."""
    base: Annotated[str, Must("the key of a knowledge base, as text")] = ""
    """The key of the knowledge base that is meant where none is named."""
    package_placement: Placement = "prepend"
    """Where a package stands: before the generator's system prompt, or split in two parts, the
    instructions there and all else in a message before the task."""
    budget_tokens: Annotated[int, Field(ge=600, le=10**6)] = 6000
    """The most that a package may have where the base's own config page says nothing else."""
    reply_tokens: Annotated[int, Field(ge=1, le=10**6)] = 1500
    """The most of an answer."""


def read_lorekeeper(given: Any, *, where: str) -> LorekeeperSettings:
    """The settings in the dictionary `given`; FormatError names the first that cannot be."""
    return read_fields(LorekeeperSettings, given, where=where)


Code = Literal["max_calls_exceeded", "token_limit_exceeded"]

MAX_CALLS: Final[Code] = "max_calls_exceeded"
TOKEN_LIMIT: Final[Code] = "token_limit_exceeded"  # noqa: S105 - a word, no secret


_Amount = Annotated[int, Field(ge=0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchBudget:
    """Of one speaker in one conversation."""

    calls: _Amount = 10
    free: _Amount = 5
    """Searches that are never measured; after them the model is warned."""
    warn_percent: _Amount = 70
    """Of the room the model has left: from here on it is warned strongly."""
    reject_percent: _Amount = 90
    """From here on it gets nothing."""
    minutes: _Amount = 30
    """Over how long searches are counted."""


USUAL: Final = SearchBudget()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchVerdict:
    """Whether a search may be made: refused with a `code`, or allowed, with what to tell."""

    code: Code | None = None
    told: str = ""

    @property
    def is_allowed(self) -> bool:
        """Whether it may be made."""
        return self.code is None


def read_budget(given: Any) -> tuple[SearchBudget, str]:
    """The budget that is given, or the usual one and why it is not the given one."""
    if given in (None, "") or given == {}:
        return USUAL, ""
    problem = _problem(given)
    return (USUAL, problem) if problem else (SearchBudget(**given), "")


def judged(
    budget: SearchBudget, *, before: int, used_tokens: int, limit_tokens: int
) -> SearchVerdict:
    """The verdict on one more search, after `before` others.

    `limit_tokens` is what prompts may have, `used_tokens` what this one has already.
    """
    number = before + 1
    if number > budget.calls:
        return SearchVerdict(
            code=MAX_CALLS,
            told=f"You have searched {budget.calls} times already. Answer with what you found.",
        )
    if number <= budget.free:
        return SearchVerdict()
    percent = 100 * used_tokens // limit_tokens if limit_tokens > 0 else 100
    if percent >= budget.reject_percent:
        return SearchVerdict(
            code=TOKEN_LIMIT,
            told="There is no room left for what a search would find. Answer with what you have.",
        )
    if percent >= budget.warn_percent:
        return SearchVerdict(told="There is little room left: answer now, without another search.")
    left = budget.calls - number
    return SearchVerdict(told=f"You may search {left} more time{'' if left == 1 else 's'}.")


def _problem(given: Any) -> str:
    if not isinstance(given, Mapping):
        return f"must be a dictionary, not {given!r}"
    try:
        return _contradiction(read_fields(SearchBudget, given, where="", what="", hint=listed))
    except FormatError as error:
        return " ".join(map(str, (*error.path, error.problem)))


def _contradiction(made: SearchBudget) -> str:
    """What of a budget does not go together, "" where all does."""
    if made.calls < 1 or made.minutes < 1:
        return "calls and minutes must be 1 or more"
    if made.free >= made.calls:
        return f"free ({made.free}) must be less than calls ({made.calls})"
    if not made.warn_percent <= made.reject_percent <= 100:
        return "warn_percent must not be over reject_percent, nor that over 100"
    return ""
