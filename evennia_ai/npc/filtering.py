"""The game's own filter: two functions of the game that may withhold what is said.

`EVENNIA_AI_FILTER` names a function for what players say to NPCs, and one for what a model answers.
A function gets a `FilteredWords` and returns why the words are withheld, or "" to let them pass. It
may return a Deferred or a coroutine. If it fails or takes too long, the setting decides.
"""

import inspect
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final, Literal

from django.utils.module_loading import import_string
from evennia.utils import logger
from twisted.internet.defer import Deferred, maybeDeferred, succeed
from twisted.python.failure import Failure

from evennia_ai.engine.errors import EvenniaAIError, on_one_line
from evennia_ai.services.llm.resilience import Clock
from evennia_ai.services.settings.kinds import FilterRules

Side = Literal["heard", "said"]
MOST_REASON: Final = 100
"""The most characters of a reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilteredWords:
    """Words that the game's filter decides about."""

    text: str
    """What was said, as one text without markup."""
    npc: Any
    """The NPC that hears or says it."""
    person: Any
    """The player's character who said it, or whom the NPC answers. None if they have left."""
    private: bool
    """True if nobody else hears it."""


class WithheldByGame(EvenniaAIError):  # noqa: N818 - a decision of the game, not a fault
    """The game's filter withholds a reply."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(withheld(reason))


def withheld(reason: str) -> str:
    """Return the verdict on withheld words, as records, turns and builders read it."""
    return f"withheld by the game: {reason}"


class GameFilter:
    """Asks the functions of the game. Without a function, everything passes."""

    def __init__(self, rules: FilterRules, clock: Clock) -> None:
        self._rules: Final = rules
        self._clock: Final = clock
        self._heard_now: Final[dict[tuple[Any, str, bool], Deferred[str]]] = {}
        """The verdicts on lines of this iteration of the reactor. All listeners share a verdict."""

    def is_set(self, side: Side) -> bool:
        """True if the game has a function for what is heard, or for what is said."""
        return bool(getattr(self._rules, side))

    def heard(self, words: FilteredWords) -> "Deferred[str]":
        """Return the verdict on words that an NPC hears. One line is asked once for all NPCs."""
        if not self.is_set("heard"):
            return succeed("")
        key = (words.person, words.text, words.private)
        if not self._heard_now:
            self._clock.callLater(0, self._heard_now.clear)
        if key not in self._heard_now:
            self._heard_now[key] = self.verdict("heard", words)
        own: Deferred[str] = Deferred()

        def share(reason: str) -> str:
            own.callback(reason)
            return reason

        self._heard_now[key].addCallback(share)
        return own

    def verdict(self, side: Side, words: FilteredWords) -> "Deferred[str]":
        """Return why words are withheld, "" if they pass. The Deferred never fails."""
        path = str(getattr(self._rules, side))
        if not path:
            return succeed("")
        asked = maybeDeferred(_call, path, words)
        asked.addTimeout(self._rules.seconds, self._clock)
        return asked.addCallbacks(_reason_in, partial(self._without_verdict, path))

    def _without_verdict(self, path: str, failure: Failure) -> str:
        """Return the reason if the function gave no verdict, "" if the words pass then."""
        logger.log_err(
            f"evennia_ai: EVENNIA_AI_FILTER: {path} gave no verdict, so the words"
            f" {'pass' if self._rules.on_failure == 'pass' else 'are withheld'}:"
            f" {on_one_line(failure.value)}"
        )
        return "" if self._rules.on_failure == "pass" else "the filter gave no verdict"


def _call(path: str, words: FilteredWords) -> Any:
    answer = game_function(path)(words)
    return Deferred.fromCoroutine(answer) if inspect.iscoroutine(answer) else answer


def _reason_in(answer: Any) -> str:
    """Return the reason in what the game's function returned, on one line."""
    return " ".join(str(answer or "").split())[:MOST_REASON]


def function_problem(path: str) -> str:
    """Return what is wrong with the function of the game at `path`, "" if it is usable."""
    if not path:
        return ""
    try:
        found = import_string(path)
    except Exception as error:  # importing a module of the game runs its code
        return f"{path}: it cannot be imported: {error}"
    return "" if callable(found) else f"{path}: it is not a function"


@lru_cache(maxsize=4)
def game_function(path: str) -> Callable[[FilteredWords], Any]:
    """Return the function of the game at `path`.

    Raises:
        EvenniaAIError: It is unusable.
    """
    if problem := function_problem(path):
        raise EvenniaAIError(problem)
    found: Callable[[FilteredWords], Any] = import_string(path)
    return found


@dataclass(slots=True)
class _Waiting:
    """A value whose verdict may not be known yet."""

    value: Any
    verdict: str | None = None


class InOrder:
    """Passes values on in the order in which they came, although their verdicts may wait."""

    def __init__(self, pass_on: Callable[[Any, str], None]) -> None:
        self._pass_on: Final = pass_on
        self._waiting: Final[deque[_Waiting]] = deque()

    def __len__(self) -> int:
        """Return how many values wait."""
        return len(self._waiting)

    def add(self, value: Any, verdict: "Deferred[str]") -> None:
        """Pass `value` on with its verdict, after all values that were added before."""
        waiting = _Waiting(value)
        self._waiting.append(waiting)
        verdict.addCallback(partial(self._release, waiting)).addErrback(_log_broken)

    def _release(self, waiting: _Waiting, verdict: str) -> None:
        waiting.verdict = verdict
        while self._waiting and (first := self._waiting[0]).verdict is not None:
            self._waiting.popleft()
            self._pass_on(first.value, first.verdict)


def _log_broken(failure: Failure) -> None:
    """Log an error of a game's hook."""
    logger.log_err(f"evennia_ai: words were not heard\n{failure.getTraceback()}")
