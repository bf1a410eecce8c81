"""Counts calls of models: the outcome of a call as a word, and its tokens.

The game and workers use the same rules, so the rows of their calls can be summed.
"""

from typing import Final

from twisted.internet.defer import CancelledError
from twisted.python.failure import Failure

from evennia_ai.engine.errors import (
    ModelError,
    ModelRefused,
    ModelRubbish,
    ModelTimeout,
    ModelUnavailable,
)
from evennia_ai.engine.prompt.tokens import ESTIMATE
from evennia_ai.services.llm.chat import ChatReply, Usage
from evennia_ai.store.model_calls import ANSWERED, CANCELLED, OFFLINE, UNSENT, is_counted

# With these outcomes the provider certainly made no reply, so the call cost nothing.
_FREE: Final = frozenset({"failed:unavailable", "failed:refused"})


class ModelStopped(ModelError):  # noqa: N818 - named as its siblings are
    """No model may be asked, because a person stopped the game or paused the NPC.

    `why` says who did that, and the reason that they gave.
    """

    def __init__(self, endpoint: str, why: str) -> None:
        self.why = why
        super().__init__(endpoint, f"is not asked: {why}")


# The first class in this list that matches gives the word for a failure.
_KINDS: Final[tuple[tuple[type[BaseException], str], ...]] = (
    (ModelStopped, "stopped"),
    (ModelTimeout, "timeout"),
    (ModelUnavailable, "unavailable"),
    (ModelRefused, "refused"),
    (ModelRubbish, "rubbish"),
)


def outcome_word(outcome: ChatReply | Failure) -> str:
    """Return the outcome of a call as a word for its row, such as "failed:timeout"."""
    if not isinstance(outcome, Failure):
        return OFFLINE if outcome.offline else ANSWERED
    if outcome.check(CancelledError):
        return CANCELLED
    kind = next((word for known, word in _KINDS if outcome.check(known)), "error")
    is_unsent = outcome.check(ModelUnavailable, ModelTimeout) and not outcome.value.was_sent
    return f"{UNSENT}{kind}" if is_unsent else f"failed:{kind}"


def usage_of(outcome: ChatReply | Failure) -> Usage | None:
    """Return the usage that the provider reported, None if it reported none."""
    return None if isinstance(outcome, Failure) else outcome.usage


def reply_tokens_of(outcome: ChatReply | Failure) -> int:
    """Estimate the tokens of a reply, for a provider that reports none."""
    return 0 if isinstance(outcome, Failure) else ESTIMATE.of_message(outcome.text)


def estimate_usage(outcome: str, *, prompt_tokens: int, reply_tokens: int) -> Usage:
    """Estimate the tokens of a call with this outcome."""
    if not is_counted(outcome):
        return Usage(input_tokens=0, output_tokens=0)
    sent = 0 if outcome in _FREE else prompt_tokens
    return Usage(input_tokens=sent, output_tokens=reply_tokens)
