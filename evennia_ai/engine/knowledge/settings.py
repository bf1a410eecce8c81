"""Settings of a game for the writing of wiki pages by models, and for searches of NPCs.

A game may set any field in one dictionary; the other fields keep their defaults. The first searches
of an NPC in a conversation are free. Each later search depends on the space left in the prompt: the
fuller the prompt is, the more urgently the model is warned, until searches are refused. The code
here has no side effects.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.fields import Must, list_names, read_fields

Placement = Literal["prepend", "split"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LorekeeperSettings:
    """Settings of a game for the lorekeeper: a model that helps builders write wiki pages."""

    enabled: bool = True
    """True if the model that writes a page gets other wiki pages to read."""
    base: Annotated[str, Must("the key of a knowledge base, as text")] = ""
    """The key of the knowledge base that commands use if they name none."""
    package_placement: Placement = "prepend"
    """The place of these wiki pages in the prompt.

    "prepend" means before the model's system prompt. "split" puts only the instructions there, and
    everything else into a message before the task.
    """
    budget_tokens: Annotated[int, Field(ge=600, le=10**6)] = 6000
    """The maximum number of tokens of these wiki pages.

    The config page of a knowledge base may change this value.
    """
    reply_tokens: Annotated[int, Field(ge=1, le=10**6)] = 1500
    """The maximum number of tokens of the model's answer."""


def read_lorekeeper_settings(given: Any, *, where: str) -> LorekeeperSettings:
    """Read the settings for the lorekeeper, which writes wiki pages, from a dictionary.

    Raises:
        FormatError: A field is wrong. The message names the first one.
    """
    return read_fields(LorekeeperSettings, given, where=where)


RefusalCode = Literal["max_calls_exceeded", "token_limit_exceeded"]

MAX_CALLS: Final[RefusalCode] = "max_calls_exceeded"
TOKEN_LIMIT: Final[RefusalCode] = "token_limit_exceeded"  # noqa: S105 - a word, no secret


_Amount = Annotated[int, Field(ge=0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchBudget:
    """The limits on a speaker's searches of knowledge bases in one conversation."""

    calls: _Amount = 10
    free: _Amount = 5
    """The number of searches that are allowed without a check of the space left.

    Later searches carry a warning.
    """
    warn_percent: _Amount = 70
    """The used percentage of the prompt from which the model gets a strong warning."""
    reject_percent: _Amount = 90
    """The used percentage of the prompt from which searches are refused."""
    minutes: _Amount = 30
    """The period in minutes in which searches are counted."""


DEFAULT_SEARCH_BUDGET: Final = SearchBudget()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchVerdict:
    """The decision whether one search of knowledge bases is allowed.

    If `code` is set, the search is refused; `message` is for the model.
    """

    code: RefusalCode | None = None
    message: str = ""

    @property
    def is_allowed(self) -> bool:
        """True if the search may be made."""
        return self.code is None


def read_search_budget(given: Any) -> tuple[SearchBudget, str]:
    """Return the limits on searches from a dictionary, and "" as no error.

    If the dictionary is wrong, return the default limits and a description of the error.
    """
    if given in (None, "") or given == {}:
        return DEFAULT_SEARCH_BUDGET, ""
    if not isinstance(given, Mapping):
        return DEFAULT_SEARCH_BUDGET, f"must be a dictionary, not {given!r}"
    try:
        made = read_fields(SearchBudget, given, where="", what="", hint=list_names)
    except FormatError as error:
        return DEFAULT_SEARCH_BUDGET, " ".join(map(str, (*error.path, error.problem)))
    problem = _contradiction(made)
    return (DEFAULT_SEARCH_BUDGET, problem) if problem else (made, "")


def judge_search(
    budget: SearchBudget, *, before: int, used_tokens: int, limit_tokens: int
) -> SearchVerdict:
    """Decide whether another search of knowledge bases is allowed.

    Args:
        budget: The limits of the game.
        before: The number of searches so far.
        used_tokens: The tokens that the prompt uses so far.
        limit_tokens: The maximum number of tokens of a prompt.
    """
    number = before + 1
    if number > budget.calls:
        return SearchVerdict(
            code=MAX_CALLS,
            message=f"You have searched {budget.calls} times already. Answer with what you found.",
        )
    if number <= budget.free:
        return SearchVerdict()
    percent = 100 * used_tokens // limit_tokens if limit_tokens > 0 else 100
    if percent >= budget.reject_percent:
        return SearchVerdict(
            code=TOKEN_LIMIT,
            message=(
                "There is no room left for what a search would find. Answer with what you have."
            ),
        )
    if percent >= budget.warn_percent:
        return SearchVerdict(
            message="There is little room left: answer now, without another search."
        )
    left = budget.calls - number
    return SearchVerdict(message=f"You may search {left} more time{'' if left == 1 else 's'}.")


def _contradiction(made: SearchBudget) -> str:
    """Describe two limits on searches that contradict each other; "" if none do."""
    if made.calls < 1 or made.minutes < 1:
        return "calls and minutes must be 1 or more"
    if made.free >= made.calls:
        return f"free ({made.free}) must be less than calls ({made.calls})"
    if not made.warn_percent <= made.reject_percent <= 100:
        return "warn_percent must not be over reject_percent, nor that over 100"
    return ""
