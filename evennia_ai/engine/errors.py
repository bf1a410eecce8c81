"""Every error this package raises on purpose.

A message says what is wrong, where, what was wanted and what to do; the facts are attributes
too. A class exists only where a caller would catch it alone. Authors' mistakes met during a turn
(a bad template, an entry that cannot be evaluated) are verdicts, not exceptions.

Between a finished prompt and a reply, a caller that only wants to go on catches `ModelError`; the
classes below it differ in what the caller should do. No message ever holds a key.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final


class EvenniaAIError(Exception):
    """Base of all errors of evennia_ai."""


class ComponentValueError(EvenniaAIError):
    """A field of a prompt component has a value it cannot have."""

    def __init__(self, field: str, value: object, wanted: str) -> None:
        self.field = field
        self.value = value
        self.wanted = wanted
        super().__init__(self.in_words(field))

    def in_words(self, called: str) -> str:
        """The message for those who know the field by this name."""
        return f"{called} {_shown(self.value)} is not allowed: it must be {self.wanted}"


class UnknownComponentError(EvenniaAIError):
    """No component has this key or id."""

    def __init__(self, wanted: object, known: Sequence[str] = (), *, where: str = "") -> None:
        self.wanted = wanted
        self.where = where
        scope = f" of the scope {where}" if where else ""
        near = f"; known keys are {', '.join(known)}" if known else ""
        super().__init__(f"there is no component {_shown(wanted)}{scope}{near}")


class DuplicateComponentError(EvenniaAIError):
    """Two components of one scope want the same key or the same registry ID."""

    def __init__(self, field: str, value: object, taken_by: str) -> None:
        self.field = field
        self.value = value
        self.taken_by = taken_by
        super().__init__(self.in_words(field))

    def in_words(self, called: str) -> str:
        """The message for those who know the field by this name."""
        taken = f"is already taken by component '{self.taken_by}'; choose another"
        return f"{called} {_shown(self.value)} {taken}"


class StaticComponentError(EvenniaAIError):
    """A static component would be removed, renumbered or renamed."""

    def __init__(self, key: str, action: str) -> None:
        self.key = key
        self.action = action
        super().__init__(
            f"component '{key}' is static and cannot be {action};"
            " it can be disabled or given other content"
        )


class EditConflictError(EvenniaAIError):
    """Somebody else changed the thing since the editor looked at it."""

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
    """Somebody may not do what they asked for; nothing was changed."""

    def __init__(self, doing: str, why: str) -> None:
        self.doing = doing
        self.why = why
        super().__init__(f"{doing} was refused: {why}. Nothing was changed")


class TemplateError(EvenniaAIError):
    """A template cannot be compiled or rendered."""

    def __init__(self, problem: str, *, line: int | None = None) -> None:
        self.problem = problem
        self.line = line
        super().__init__(problem if line is None else f"line {line}: {problem}")


class BudgetError(EvenniaAIError):
    """What is required does not fit; names every required piece and its tokens."""

    def __init__(self, limit_tokens: int, required: Sequence[tuple[str, int]]) -> None:
        self.limit_tokens = limit_tokens
        self.required = tuple(required)
        total = sum(tokens for _, tokens in required)
        pieces = ", ".join(f"{origin} {tokens}" for origin, tokens in required)
        super().__init__(
            f"the required pieces need {total} tokens and the limit is {limit_tokens}: {pieces};"
            " shorten one, make one not required, or raise the limit"
        )


class ContextError(EvenniaAIError):
    """A context (profile) or its layering is wrong."""


class FormatError(EvenniaAIError):
    """Foreign data (scenario, card, book) cannot be read; `kind` is one word, the text one line.

    Where a member of an entry is wrong, `path` are the steps from the entry down to it and
    `problem` is what is wrong with it, for those who did not write the file.
    """

    def __init__(
        self, kind: str, message: str, *, path: Sequence[str | int] = (), problem: str = ""
    ) -> None:
        self.kind = kind
        self.message = message
        self.path = tuple(path)
        self.problem = problem
        super().__init__(message)


class NotYetError(FormatError):
    """The data asks for something this version does not do yet; it is refused, never ignored."""

    def __init__(self, what: str, where: str) -> None:
        self.what = what
        self.where = where
        super().__init__("unsupported", f"{where}: {what} is not supported yet; take it out")


def _shown(value: object) -> str:
    """`value` for a message: quoted text, cut to a length that fits a line."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


MAX_CHARACTERS: Final = 1_000
"""Of what went wrong; a server may answer with a whole page."""


def on_one_line(error: BaseException) -> str:
    """What went wrong, on one short line of letters that are seen, whoever wrote it."""
    return _short_line(str(error))


def _short_line(text: str) -> str:
    letters = filter(str.isprintable, " ".join(text[: 4 * MAX_CHARACTERS].split()))
    return "".join(letters)[:MAX_CHARACTERS]


class EndpointError(EvenniaAIError):
    """An endpoint is configured with a value it cannot have."""

    def __init__(self, endpoint: str, field: str, problem: str) -> None:
        self.endpoint = endpoint
        self.field = field
        super().__init__(f"endpoint '{endpoint}': {field} {problem}")


class Fault(StrEnum):
    """Who is to blame where a call gives no usable reply; it decides what is done next."""

    TEMPORARY = "temporary"
    """The server is away, overloaded or broken."""
    ACCOUNT = "account"
    """The address, the key, the credit or the model's name, whatever is asked."""
    PROMPT = "prompt"
    """This request: its roles, its tools, one of its fields."""
    TOO_LONG = "too_long"
    """The prompt and the reply together are more than the model takes."""
    POLICY = "policy"
    """The provider or the model does not want to say this."""
    MALFORMED = "malformed"
    """What came is no reply."""

    @property
    def is_worth_a_retry(self) -> bool:
        """True if the same request may succeed in a moment."""
        return self is Fault.TEMPORARY

    @property
    def is_asked_elsewhere(self) -> bool:
        """True if the next profile of the role is asked."""
        return self not in (Fault.PROMPT, Fault.POLICY)

    @property
    def opens_the_breaker(self) -> bool:
        """True if other requests would most likely fail too."""
        return self is Fault.TEMPORARY


class ModelError(EvenniaAIError):
    """A model gave no usable reply; `endpoint` is the name of the one that was asked.

    `was_sent` is false where nothing left this process: it was refused here. `fault` is None where
    a person or this program stopped the call.
    """

    fault: Fault | None = None

    def __init__(self, endpoint: str, message: str, *, was_sent: bool = True) -> None:
        self.endpoint = endpoint
        self.was_sent = was_sent
        super().__init__(_short_line(f"model '{endpoint}' {message}"))


class ModelTimeout(ModelError):  # noqa: N818 - reads as what happened, like TimeoutError's peers
    """No complete reply came in time."""

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
    """The server cannot be reached, is overloaded or broken; later may be better.

    `retry_in_seconds` is set where the server said when, or where nothing was sent because the
    circuit breaker is open.
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


class ModelRefused(ModelError):  # noqa: N818
    """The server understood the request and turned it down: the same request is no use.

    `status` is None where the server named none. `window_tokens` is how many tokens of prompt and
    reply the server says it takes, `counted_tokens` how many it counted; None where it named none.
    `refused` are the fields that it refuses by name, each with the field to send instead or "".
    `wants_past_thoughts` says that earlier calls of tools lack a field of their own turn.
    """

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
    ) -> None:
        self.status = status
        self.fault = fault
        self.advice = advice
        self.window_tokens = window_tokens
        self.counted_tokens = counted_tokens
        self.refused = refused or {}
        self.wants_past_thoughts = wants_past_thoughts
        by = "" if status is None else f" with status {status}"
        super().__init__(endpoint, f"refused the request{by}: {reason}; {advice}")


class ModelRubbish(ModelError):  # noqa: N818
    """The server answered with something that is not a reply.

    `too_much` says that the reply was given up because of its size.
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


class StoreError(EvenniaAIError):
    """The database did not do what was asked; nothing was written."""


class HistoryConflictError(StoreError):
    """Another writer appended to the conversation first; nothing was written."""

    def __init__(self, conversation: str) -> None:
        self.conversation = conversation
        super().__init__(
            f"somebody else wrote to {conversation} at the same moment; nothing of this was"
            " written: read the history again and repeat"
        )


class StaleError(StoreError):
    """What was worked out beside the game is about something that has changed since."""

    def __init__(self, changed: str) -> None:
        self.changed = changed
        super().__init__(changed)


class TurnClosedError(StoreError):
    """The turn was already finished, failed or interrupted."""


class PageConflictError(EditConflictError):
    """A page has another revision than the one that was edited; nothing was written."""


class NotStoredError(StoreError):
    """There is no card, lorebook, knowledge base, page, revision or turn of this name or number."""

    def __init__(self, what: str, wanted: object, known: Sequence[str] = ()) -> None:
        self.what = what
        self.wanted = wanted
        near = f"; there are {', '.join(known)}" if known else ""
        super().__init__(f"there is no {what} {wanted!r}{near}")
