"""What can go wrong between a finished prompt and a reply.

A caller that only wants to go on catches `ModelError`; the classes below it differ in what the
caller should do. No message ever holds an API key. The names say what the model was, as the
logs and the builders' status line show them.
"""

from typing import Final

from evennia_ai.errors import EvenniaAIError

MAX_CHARACTERS: Final = 1_000
"""Of what went wrong; a server may answer with a whole page."""


def told(error: BaseException) -> str:
    """What went wrong, on one short line of letters that are seen, whoever wrote it."""
    return _on_a_line(str(error))


def _on_a_line(text: str) -> str:
    letters = filter(str.isprintable, " ".join(text[: 4 * MAX_CHARACTERS].split()))
    return "".join(letters)[:MAX_CHARACTERS]


class EndpointError(EvenniaAIError):
    """An endpoint is configured with a value it cannot have."""

    def __init__(self, endpoint: str, field: str, problem: str) -> None:
        self.endpoint = endpoint
        self.field = field
        super().__init__(f"endpoint '{endpoint}': {field} {problem}")


class ModelError(EvenniaAIError):
    """A model gave no usable reply; `endpoint` is the name of the one that was asked.

    `was_sent` is false where nothing left this process: it was refused here.
    """

    def __init__(self, endpoint: str, message: str, *, was_sent: bool = True) -> None:
        self.endpoint = endpoint
        self.was_sent = was_sent
        super().__init__(_on_a_line(f"model '{endpoint}' {message}"))


class ModelTimeout(ModelError):  # noqa: N818 - reads as what happened, like TimeoutError's peers
    """No complete reply came in time."""

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
            " overloaded, or raise the time limit",
            was_sent=was_sent,
        )


class ModelUnavailable(ModelError):  # noqa: N818
    """The server cannot be reached, is overloaded or broken; later may be better.

    `retry_in_seconds` is set where the server said when, or where nothing was sent because the
    circuit breaker is open.
    """

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
    """The server understood the request and turned it down (status 4xx): asking again is no use."""

    def __init__(self, endpoint: str, status: int, reason: str) -> None:
        self.status = status
        super().__init__(
            endpoint,
            f"refused the request with status {status}: {reason}; check the endpoint's address,"
            " key and model name",
        )


class ModelRubbish(ModelError):  # noqa: N818
    """The server answered with something that is not a reply.

    `too_much` says that the reply was given up because of its size.
    """

    def __init__(self, endpoint: str, problem: str, *, too_much: bool = False) -> None:
        self.problem = problem
        self.too_much = too_much
        super().__init__(endpoint, f"gave no usable reply: {problem}")
