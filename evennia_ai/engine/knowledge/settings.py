"""Settings of a game: how models write wiki pages, and how often NPCs may search.

A game may set any field in one dictionary. Other fields keep their defaults.

In a conversation, the first searches of an NPC for a speaker are always allowed. For each later
search, the space left in the prompt decides. The fuller the prompt is, the more urgently the model
is warned, until searches are refused. The code here has no side effects.
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
    """Settings for the lorekeeper, a model that helps builders to write wiki pages."""

    enabled: bool = True
    """True if the model that writes a page gets other wiki pages to read."""
    base: Annotated[str, Must("the key of a knowledge base, as text")] = ""
    """The key of the knowledge base that commands use if they name none."""
    package_placement: Placement = "prepend"
    """The place of these wiki pages in the prompt.

    "prepend" means before the model's system prompt. "split" puts only the instructions there, and
    all other pages into a message before the task.
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
        FormatError: A field is invalid. The message names the first one.
    """
    return read_fields(LorekeeperSettings, given, where=where)


RefusalCode = Literal["max_calls_exceeded", "token_limit_exceeded"]

MAX_CALLS: Final[RefusalCode] = "max_calls_exceeded"
TOKEN_LIMIT: Final[RefusalCode] = "token_limit_exceeded"  # noqa: S105 - a word, no secret


_Amount = Annotated[int, Field(ge=0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchBudget:
    """The limits on an NPC's searches for one speaker in one conversation."""

    calls: _Amount = 10
    free: _Amount = 5
    """How many searches are allowed without looking at the space left in the prompt.

    Each later search carries a warning.
    """
    warn_percent: _Amount = 70
    """From what percentage of the prompt on the model gets a strong warning."""
    reject_percent: _Amount = 90
    """From what percentage of the prompt on searches are refused."""
    minutes: _Amount = 30
    """The period in minutes over which searches are counted."""


DEFAULT_SEARCH_BUDGET: Final = SearchBudget()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchVerdict:
    """The decision whether a search of knowledge bases is allowed.

    If `code` is set, the search is refused. `message` is for the model.
    """

    code: RefusalCode | None = None
    message: str = ""

    @property
    def is_allowed(self) -> bool:
        """True if the search may be made."""
        return self.code is None


def read_search_budget(given: Any) -> tuple[SearchBudget, str]:
    """Return the limits on searches from a dictionary, and a description of its first error.

    The description is "" for a valid dictionary. For an invalid one, the limits are the defaults.
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
    """Decide whether one more search of knowledge bases is allowed.

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
    """Describe two limits on searches that contradict each other; "" if there are none."""
    if made.calls < 1 or made.minutes < 1:
        return "calls and minutes must be 1 or more"
    if made.free >= made.calls:
        return f"free ({made.free}) must be less than calls ({made.calls})"
    if not made.warn_percent <= made.reject_percent <= 100:
        return "warn_percent must be at most reject_percent, and reject_percent at most 100"
    return ""
