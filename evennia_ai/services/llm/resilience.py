"""Protect the game from slow or dead servers with a queue, a time limit and a circuit breaker.

A breaker is closed in normal operation. A number of failures within a window open it: requests then
fail at once, without a connection. After a rest it is half open: one request is sent as a probe,
and its outcome closes or opens the breaker. Times come from the caller's clock.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, Literal, Protocol, TypeVar

from twisted.internet.defer import Deferred, fail, maybeDeferred
from twisted.python.failure import Failure

from evennia_ai.engine.errors import ModelError, ModelTimeout, ModelUnavailable
from evennia_ai.services.llm.chat import ChatModel, ChatReply, ChatRequest, Listener

T = TypeVar("T")
BreakerState = Literal["closed", "open", "half_open"]


class Clock(Protocol):
    """The part of Twisted's `IReactorTime` that this module uses."""

    def seconds(self) -> float: ...

    def callLater(  # noqa: N802 - Twisted's own name
        self, delay: float, call: Callable[..., Any], /, *args: Any, **options: Any
    ) -> Any: ...


class CircuitBreaker:
    """A circuit breaker: it counts failures and decides whether a request may be sent."""

    def __init__(
        self,
        *,
        seconds: Callable[[], float],
        failures: int = 3,
        window_seconds: float = 60.0,
        rest_seconds: float = 30.0,
    ) -> None:
        self._seconds = seconds
        self._window_seconds = window_seconds
        self._rest_seconds = rest_seconds
        # Each failure: its time, and whose request failed
        self._failures: deque[tuple[float, str]] = deque(maxlen=failures)
        self._opened_at: float | None = None
        self._probing = False

    @property
    def state(self) -> BreakerState:
        if self._opened_at is None:
            return "closed"
        return "half_open" if self.retry_in_seconds <= 0 else "open"

    @property
    def retry_in_seconds(self) -> float:
        """Seconds until a request may be sent again; 0 if it may be sent now."""
        if self._opened_at is None:
            return 0.0
        return max(0.0, self._opened_at + self._rest_seconds - self._seconds())

    @property
    def admits(self) -> bool:
        """True if a request may be sent now. Nothing is changed."""
        return self.state == "closed" or (self.state == "half_open" and not self._probing)

    def begin(self) -> bool:
        """Return True if a request may be sent. The caller must then report its outcome.

        In the half-open state, this request is the probe.
        """
        if not self.admits:
            return False
        self._probing = self.state == "half_open"
        return True

    def succeeded(self) -> None:
        """Report that the server answered.

        A late answer while the breaker is open does not count.
        """
        if self.state != "open":
            self._failures.clear()
            self._opened_at = None
            self._probing = False

    def failed(self, *, asker: str = "") -> None:
        """Report that the server did not answer or is broken.

        Args:
            asker: Whose request failed, if the request itself may be the cause. The breaker does
                not open if all failures come from the same asker.
        """
        state, now = self.state, self._seconds()
        if state == "open":
            return
        self._failures.append((now, asker))
        full = len(self._failures) == self._failures.maxlen
        in_window = now - self._failures[0][0] <= self._window_seconds
        askers = {whose for _, whose in self._failures}
        is_down = full and in_window and (len(askers) > 1 or askers == {""})
        if state == "half_open" or is_down:
            self._opened_at = now
            self._probing = False

    def abandoned(self) -> None:
        """Report that the probe was cancelled. The next request becomes the probe."""
        self._probing = False


class Slots:
    """A limited number of slots for requests, with a queue.

    A free slot goes to the first in the queue.

    Slots are handed out in a loop. If each release called the next request instead, a long queue of
    requests that fail at once would overflow the stack.
    """

    def __init__(self, limit: int) -> None:
        self.limit: Final = limit
        self.taken = 0
        self.waiting: deque[Deferred[None]] = deque()
        self._handing_out = False

    def acquire(self) -> Deferred[None]:
        """Return a Deferred that fires when the caller gets a slot.

        Until then it may be cancelled.
        """
        slot: Deferred[None] = Deferred(self.waiting.remove)
        self.waiting.append(slot)
        self._hand_out()
        return slot

    def release(self) -> None:
        """Return a slot, which goes to the first in the queue."""
        self.taken -= 1
        self._hand_out()

    def _hand_out(self) -> None:
        if self._handing_out:
            return
        self._handing_out = True
        while self.waiting and self.taken < self.limit:
            self.taken += 1
            self.waiting.popleft().callback(None)
        self._handing_out = False


class Guarded:
    """A `ChatModel` that protects another one with a queue, a time limit and a breaker.

    At most `max_concurrent` requests are at the server and `max_waiting` wait; the first to come is
    the first to be sent. A request's time limit includes its waiting. Models that are the same to
    their server share `slots` and a breaker.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        breaker: CircuitBreaker,
        clock: Clock,
        max_concurrent: int = 4,
        max_waiting: int = 64,
        slots: Slots | None = None,
    ) -> None:
        self.breaker = breaker
        self._model = model
        self._clock = clock
        self._slots: Final = Slots(max_concurrent) if slots is None else slots
        self._max_waiting = max_waiting
        self._asked: dict[Deferred[ChatReply], None] = {}

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def offline(self) -> bool:
        return self._model.offline

    @property
    def most_at_once(self) -> int:
        """How many requests may be at the server at once, from all models that share the slots."""
        return self._slots.limit

    @property
    def waiting(self) -> int:
        """How many requests wait in the queue, from all models that share the slots."""
        return len(self._slots.waiting)

    @property
    def out(self) -> int:
        """How many requests are at the server now, from all models that share the slots."""
        return self._slots.taken

    def complete(
        self, request: ChatRequest, *, listener: Listener | None = None
    ) -> Deferred[ChatReply]:
        """Send a request to the model, as soon as there is a slot.

        Fails at once if the breaker is open or too many requests wait.
        """
        if not self.breaker.admits:
            return fail(self._breaker_error())
        if self.out >= self._slots.limit and self.waiting >= self._max_waiting:
            why = f"{self.waiting} requests wait already"
            return fail(ModelUnavailable(self.name, why, was_sent=False))
        slot = self._slots.acquire()
        slot.addTimeout(request.timeout_seconds, self._clock, self._queued_too_long)
        deadline = self._clock.seconds() + request.timeout_seconds
        asked: Deferred[ChatReply] = slot.addCallback(
            lambda _: self._send(request, deadline, listener)
        )
        self._asked[asked] = None
        return asked.addBoth(self._forgotten, asked)

    def close(self) -> None:
        """Cancel all requests, the newest first, then close the model."""
        for asked in reversed(tuple(self._asked)):
            asked.cancel()
        self._model.close()

    def _send(
        self, request: ChatRequest, deadline: float, listener: Listener | None
    ) -> Deferred[ChatReply]:
        """Send a request that has a slot, unless the breaker has opened while it waited."""
        sent: Deferred[ChatReply]
        is_probe = self.breaker.state == "half_open"
        left_seconds = max(0.0, deadline - self._clock.seconds())
        if self.breaker.begin():
            sent = maybeDeferred(
                self._model.complete, _with_time(request, left_seconds), listener=listener
            )
            sent.addTimeout(
                left_seconds, self._clock, self._answers_too_slowly(request.timeout_seconds)
            )
            sent.addBoth(self._seen_by_breaker, request, is_probe)
        else:
            sent = fail(self._breaker_error())
        return sent.addBoth(self._released)

    def _seen_by_breaker(
        self, outcome: T | Failure, request: ChatRequest, is_probe: bool
    ) -> T | Failure:
        """Report the outcome of a request to the breaker, and return it unchanged.

        A refusal or an unreadable reply counts as success, because the server works. Status 500 may
        have a cause in this prompt only, such as an error in the chat template.
        """
        error = outcome.value if isinstance(outcome, Failure) else None
        fault = error.fault if isinstance(error, ModelError) else None
        if fault is not None and fault.opens_the_breaker:
            is_about_prompt = isinstance(error, ModelUnavailable) and error.status == 500
            self.breaker.failed(asker=(request.cache_key or "") if is_about_prompt else "")
        elif error is None or fault is not None:
            self.breaker.succeeded()
        elif is_probe:
            self.breaker.abandoned()
        return outcome

    def _released(self, outcome: T) -> T:
        self._slots.release()
        return outcome

    def _queued_too_long(self, _: object, timeout_seconds: float) -> Failure:
        why = "busy with other requests"
        return Failure(ModelTimeout(self.name, timeout_seconds, why, was_sent=False))

    def _answers_too_slowly(self, timeout_seconds: float) -> Callable[[object, float], Failure]:
        return lambda _outcome, _left: Failure(ModelTimeout(self.name, timeout_seconds))

    def _forgotten(self, outcome: T, asked: Deferred[ChatReply]) -> T:
        self._asked.pop(asked, None)
        return outcome

    def _breaker_error(self) -> ModelUnavailable:
        seconds = self.breaker.retry_in_seconds
        when = f"in {seconds:.0f} seconds" if seconds else "as soon as the running request ends"
        return ModelUnavailable(
            self.name,
            f"it failed repeatedly; trying again {when}",
            retry_in_seconds=seconds,
            was_sent=False,
        )


def _with_time(request: ChatRequest, left_seconds: float) -> ChatRequest:
    """Return the request with the time that is left, which the client's retries must not exceed."""
    if request.timeout_seconds - left_seconds < 0.001:
        return request
    return replace(request, timeout_seconds=left_seconds)
