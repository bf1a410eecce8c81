"""Errors of the history."""

from enum import StrEnum

from evennia_ai.errors import EvenniaAIError


class AppendOnlyError(EvenniaAIError):
    """A record would be changed or removed."""

    def __init__(self, action: str) -> None:
        self.action = action
        super().__init__(
            f"records of the history are never {action}; append a new record that says what is so"
        )


class ReplayError(EvenniaAIError):
    """A turn cannot be rebuilt from its manifest and the records."""


class CompactionRulesError(EvenniaAIError):
    """A rule of compaction has a value it cannot have."""

    def __init__(self, rule: str, value: object, wanted: str) -> None:
        self.rule = rule
        self.value = value
        self.wanted = wanted
        super().__init__(f"compaction: {rule} cannot be {value}; it must be {wanted}")


class ThrashError(EvenniaAIError):
    """A history that was just compacted is due again at once."""

    def __init__(self, history_tokens: int, other_tokens: int, limit_tokens: int) -> None:
        self.history_tokens = history_tokens
        self.other_tokens = other_tokens
        self.limit_tokens = limit_tokens
        super().__init__(
            f"the history was compacted to {history_tokens} tokens and is due again at once:"
            f" with {other_tokens} of other pieces the limit of {limit_tokens} is nearly reached;"
            " raise the limit, shorten the components or keep fewer messages"
        )


class RefusalReason(StrEnum):
    """Why a summary is not accepted."""

    EMPTY = "empty"
    TOO_LONG = "too_long"
    NOT_TEXT = "not_text"
    ROLE_MARKUP = "role_markup"
    ECHO = "echo"
    GAINS_NOTHING = "gains_nothing"


class SummaryRefused(EvenniaAIError):  # noqa: N818 - a verdict on a text, not a fault of ours
    """A summary is not fit to be committed; the history stays as it is."""

    def __init__(self, reason: RefusalReason, detail: str) -> None:
        self.reason = reason
        self.detail = detail
        super().__init__(f"the summary is refused ({reason}): {detail}; nothing was changed")


class TranscriptTooLongError(EvenniaAIError):
    """What is to be summarised does not fit into one request."""

    def __init__(self, texts: int, tokens: int, most_tokens: int) -> None:
        self.texts = texts
        self.tokens = tokens
        self.most_tokens = most_tokens
        super().__init__(
            f"{texts} texts need {tokens} tokens even when each is shortened, and the request for"
            f" a summary may have {most_tokens}; make the summary by extraction, or allow more"
        )
