"""The errors that this package raises on purpose.

An error message says what is wrong, where, and what to do. The facts in the message are also
attributes of the error. An error has its own class only if some caller catches exactly that class.
An author's mistake that is found during a turn, such as a bad template, raises no exception: the
trace of the turn reports it in a verdict.

Every failed call of a model raises a `ModelError`. Its subclasses differ in what the caller should
do next. No message ever contains an API key.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, Literal


class EvenniaAIError(Exception):
    """The base class of all errors of evennia_ai."""


class ComponentValueError(EvenniaAIError):
    """The error for an invalid value in a field of a component."""

    def __init__(self, field: str, value: object, wanted: str) -> None:
        self.field = field
        self.value = value
        self.wanted = wanted
        super().__init__(self.in_words(field))

    def in_words(self, called: str) -> str:
        """Return the message of this error, with the field called by this name."""
        return f"{called} {_quote_value(self.value)} is not allowed: it must be {self.wanted}"


class UnknownComponentError(EvenniaAIError):
    """The error for a key or an ID that no component has."""

    def __init__(self, wanted: object, known: Sequence[str] = (), *, where: str = "") -> None:
        self.wanted = wanted
        self.where = where
        scope = f" of the scope {where}" if where else ""
        near = f"; known keys are {', '.join(known)}" if known else ""
        super().__init__(f"there is no component {_quote_value(wanted)}{scope}{near}")


class DuplicateComponentError(EvenniaAIError):
    """The error for a key or registry ID that another component of the scope already has."""

    def __init__(self, field: str, value: object, taken_by: str) -> None:
        self.field = field
        self.value = value
        self.taken_by = taken_by
        super().__init__(self.in_words(field))

    def in_words(self, called: str) -> str:
        """Return the message of this error, with the field called by this name."""
        taken = f"is already taken by component '{self.taken_by}'; choose another"
        return f"{called} {_quote_value(self.value)} {taken}"


class StaticComponentError(EvenniaAIError):
    """The error for an attempt to remove, renumber or rename a static component."""

    def __init__(self, key: str, action: str) -> None:
        self.key = key
        self.action = action
        super().__init__(
            f"component '{key}' is static and cannot be {action};"
            " it can be disabled or given other content"
        )


class EditConflictError(EvenniaAIError):
    """The error for a save that is rejected, because somebody else changed the text meanwhile."""

    def __init__(self, what: str, seen: int, current: int, changed_by: str) -> None:
        self.what = what
        self.seen = seen
        self.current = current
        self.changed_by = changed_by
        super().__init__(
            f"{what} was changed by {changed_by} while you edited it (you saw revision {seen},"
            f" it is now {current}); nothing was saved: look at it again and repeat your change"
        )


class NotPermittedError(EvenniaAIError):
    """The error for a change without the right to make it. Nothing was changed."""

    def __init__(self, doing: str, why: str) -> None:
        self.doing = doing
        self.why = why
        super().__init__(f"{doing} was refused: {why}. Nothing was changed")


class TemplateError(EvenniaAIError):
    """The error for a template that cannot be compiled or rendered."""

    def __init__(self, problem: str, *, line: int | None = None) -> None:
        self.problem = problem
        self.line = line
        super().__init__(problem if line is None else f"line {line}: {problem}")


class BudgetError(EvenniaAIError):
    """The error for a token limit that is too small.

    `required` lists the required texts with their tokens.
    """

    def __init__(self, limit_tokens: int, required: Sequence[tuple[str, int]]) -> None:
        self.limit_tokens = limit_tokens
        self.required = tuple(required)
        total = sum(tokens for _, tokens in required)
        texts = ", ".join(f"{origin} {tokens}" for origin, tokens in required)
        super().__init__(
            f"the required texts need {total} tokens and the limit is {limit_tokens}: {texts};"
            " shorten one, make one not required, or raise the limit"
        )


class ContextError(EvenniaAIError):
    """The error for an invalid context, or for a layer of one that allows more than before."""


class FormatError(EvenniaAIError):
    """The error for foreign data that cannot be read, such as a scenario, card or lorebook."""

    def __init__(
        self, kind: str, message: str, *, path: Sequence[str | int] = (), problem: str = ""
    ) -> None:
        """Describe what is wrong.

        Args:
            kind: The kind of data, in one word.
            message: The problem and its place, on one line.
            path: The keys and indexes that lead to the wrong value in the data, if there is one.
            problem: What is wrong with that value, for a person who did not write the file.
        """
        self.kind = kind
        self.message = message
        self.path = tuple(path)
        self.problem = problem
        super().__init__(message)


class NotYetError(FormatError):
    """The error for data that use a feature that this version does not support yet."""

    def __init__(self, what: str, where: str) -> None:
        self.what = what
        self.where = where
        super().__init__("unsupported", f"{where}: {what} is not supported yet; remove it")


def _quote_value(value: object) -> str:
    """Return `value` as quoted text, cut to a length that fits a line."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


MAX_CHARACTERS: Final = 1_000
"""The most characters kept of an error message from elsewhere, because a server may answer with a
whole page.
"""


def on_one_line(error: BaseException) -> str:
    """Return the message of an error as one short line of printable characters."""
    return _short_line(str(error))


def _short_line(text: str) -> str:
    letters = filter(str.isprintable, " ".join(text[: 4 * MAX_CHARACTERS].split()))
    return "".join(letters)[:MAX_CHARACTERS]


class EndpointError(EvenniaAIError):
    """The error for an invalid value in the configuration of a model's endpoint."""

    def __init__(self, endpoint: str, field: str, problem: str) -> None:
        self.endpoint = endpoint
        self.field = field
        super().__init__(f"endpoint '{endpoint}': {field} {problem}")


class Fault(StrEnum):
    """The cause of a failed call of a model. It decides whether and where the call is repeated."""

    TEMPORARY = "temporary"
    """The server is unreachable, overloaded or broken."""
    ACCOUNT = "account"
    """The address, API key, credit or model name is wrong, so every request fails."""
    PROMPT = "prompt"
    """The request is wrong: its roles, its tools, or one of its fields are refused."""
    TOO_LONG = "too_long"
    """Prompt and reply together are longer than the model's context window."""
    POLICY = "policy"
    """The provider or the model refuses the content of the request."""
    MALFORMED = "malformed"
    """The server's answer cannot be read as a reply of a model."""

    @property
    def is_worth_a_retry(self) -> bool:
        """True if the same request may succeed in a moment."""
        return self is Fault.TEMPORARY

    @property
    def is_asked_elsewhere(self) -> bool:
        """True if the call should be repeated with the next model profile of the same role."""
        return self not in (Fault.PROMPT, Fault.POLICY)

    @property
    def opens_the_breaker(self) -> bool:
        """True if the failure most likely affects other requests to the same model server, too."""
        return self is Fault.TEMPORARY


class ModelError(EvenniaAIError):
    """The error for a failed call of a model."""

    fault: Fault | None = None
    """The cause of the failure; None if a person or this program stopped the call."""

    def __init__(self, endpoint: str, message: str, *, was_sent: bool = True) -> None:
        """Describe the failure.

        Args:
            endpoint: The name of the model that was asked.
            message: What happened and what to do.
            was_sent: False if this process refused the request itself.
        """
        self.endpoint = endpoint
        self.was_sent = was_sent
        super().__init__(_short_line(f"model '{endpoint}' {message}"))


class ModelTimeout(ModelError):  # noqa: N818 - the name says what happened
    """The error for a reply of a model that was not complete in time."""

    fault = Fault.TEMPORARY

    def __init__(
        self,
        endpoint: str,
        timeout_seconds: float,
        doing: str = "answering",
        *,
        was_sent: bool = True,
    ) -> None:
        self.timeout_seconds = timeout_seconds
        super().__init__(
            endpoint,
            f"was still {doing} after {timeout_seconds:g} seconds; see whether the server is"
            " overloaded, or raise timeout_seconds or idle_seconds of the profile",
            was_sent=was_sent,
        )


class ModelUnavailable(ModelError):  # noqa: N818
    """The error for a model server that cannot be reached, is overloaded or broken.

    A later call may succeed. `retry_in_seconds` is set if the server said when to come back, and
    also if this package sent no request because the server has failed too often.
    """

    fault = Fault.TEMPORARY

    def __init__(
        self,
        endpoint: str,
        reason: str,
        *,
        status: int | None = None,
        retry_in_seconds: float | None = None,
        was_sent: bool = True,
    ) -> None:
        self.status = status
        self.retry_in_seconds = retry_in_seconds
        super().__init__(endpoint, f"is not available: {reason}", was_sent=was_sent)


RoleWish = Literal["", "no_system", "in_turn"]
"""What a server requires of the roles of messages.

"no_system": no message of the role system. "in_turn": one system message, then user and assistant
messages by turns.
"""


class ModelRefused(ModelError):  # noqa: N818
    """The error for a request that the model server refused, and would refuse again."""

    def __init__(
        self,
        endpoint: str,
        status: int | None,
        reason: str,
        *,
        fault: Fault = Fault.PROMPT,
        advice: str = "check base_url, api_key_env, model and extra of the profile",
        window_tokens: int | None = None,
        counted_tokens: int | None = None,
        refused: Mapping[str, str] | None = None,
        wants_past_thoughts: bool = False,
        wants_roles: RoleWish = "",
    ) -> None:
        """Describe the refusal.

        Args:
            endpoint: The name of the model that was asked.
            status: The HTTP status; None if the refusal came without one.
            reason: The server's reason.
            fault: The cause of the refusal.
            advice: What a person should check.
            window_tokens: The longest prompt and reply that the server takes, if it said so.
            counted_tokens: The length of this request by the server's count, if it said so.
            refused: Fields that the server refuses, each with the field to send instead or "".
            wants_past_thoughts: True if earlier tool calls lack the thoughts of their turn.
            wants_roles: Which roles of messages the server takes, if it refused others.
        """
        self.status = status
        self.fault = fault
        self.advice = advice
        self.window_tokens = window_tokens
        self.counted_tokens = counted_tokens
        self.refused = refused or {}
        self.wants_past_thoughts = wants_past_thoughts
        self.wants_roles = wants_roles
        by = "" if status is None else f" with status {status}"
        super().__init__(endpoint, f"refused the request{by}: {reason}; {advice}")


class ModelRubbish(ModelError):  # noqa: N818
    """The error for an answer of a server that is not a reply of a model.

    `too_much` is True if reading stopped because the answer was too large.
    """

    def __init__(
        self,
        endpoint: str,
        problem: str,
        *,
        too_much: bool = False,
        fault: Fault = Fault.MALFORMED,
    ) -> None:
        self.problem = problem
        self.too_much = too_much
        self.fault = fault
        super().__init__(endpoint, f"gave no usable reply: {problem}")


class AppendOnlyError(EvenniaAIError):
    """The error for an attempt to change or remove a record of the history."""

    def __init__(self, action: str) -> None:
        self.action = action
        super().__init__(f"records of the history are never {action}; append a new record instead")


class ReplayError(EvenniaAIError):
    """The error for a past turn whose prompt cannot be rebuilt from its records."""


class CompactionRulesError(EvenniaAIError):
    """The error for an invalid value of a rule for compaction."""

    def __init__(self, rule: str, value: object, wanted: str) -> None:
        self.rule = rule
        self.value = value
        self.wanted = wanted
        super().__init__(f"compaction: {rule} cannot be {value}; it must be {wanted}")


class ThrashError(EvenniaAIError):
    """The error for a history that needs compaction again right after its compaction."""

    def __init__(self, history_tokens: int, other_tokens: int, limit_tokens: int) -> None:
        self.history_tokens = history_tokens
        self.other_tokens = other_tokens
        self.limit_tokens = limit_tokens
        super().__init__(
            f"the history was compacted to {history_tokens} tokens and is due for compaction again:"
            f" with {other_tokens} of other texts the limit of {limit_tokens} is nearly reached;"
            " raise the limit, shorten the components or keep fewer messages"
        )


class RefusalReason(StrEnum):
    """The reason why a summary of a conversation is not accepted."""

    EMPTY = "empty"
    TOO_LONG = "too_long"
    NOT_TEXT = "not_text"
    ROLE_MARKUP = "role_markup"
    ECHO = "echo"
    GAINS_NOTHING = "gains_nothing"


class SummaryRefused(EvenniaAIError):  # noqa: N818 - a decision about a text, not a fault of the program
    """The error for a summary that is not accepted. The history stays unchanged."""

    def __init__(self, reason: RefusalReason, detail: str) -> None:
        self.reason = reason
        self.detail = detail
        super().__init__(f"the summary is refused ({reason}): {detail}; nothing was changed")


class TranscriptTooLongError(EvenniaAIError):
    """The error for a conversation that is too long to be summarised in one request."""

    def __init__(self, texts: int, tokens: int, most_tokens: int) -> None:
        self.texts = texts
        self.tokens = tokens
        self.most_tokens = most_tokens
        super().__init__(
            f"{texts} texts need {tokens} tokens even when each is shortened, and the request for"
            f" a summary may have {most_tokens}; make the summary by extraction, or allow more"
        )


class StoreError(EvenniaAIError):
    """The error for a failure of the database. Nothing was written."""


class HistoryConflictError(StoreError):
    """The error for a write to a conversation to which another process appended first."""

    def __init__(self, conversation: str) -> None:
        self.conversation = conversation
        super().__init__(
            f"another writer changed {conversation} at the same time; nothing was"
            " written: read the history again and repeat"
        )


class StaleError(StoreError):
    """The error for the result of a job whose subject changed while the job ran."""

    def __init__(self, changed: str) -> None:
        self.changed = changed
        super().__init__(changed)


class TurnClosedError(StoreError):
    """The error for a change of a turn that already finished, failed or was interrupted."""


class PageConflictError(EditConflictError):
    """The error for a save of a page that somebody else changed after it was loaded."""


class NotStoredError(StoreError):
    """The error for a name or number that the store does not have."""

    def __init__(self, what: str, wanted: object, known: Sequence[str] = ()) -> None:
        self.what = what
        self.wanted = wanted
        near = f"; there are {', '.join(known)}" if known else ""
        super().__init__(f"there is no {what} {wanted!r}{near}")
