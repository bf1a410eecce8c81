"""What keeps one slow or dead server from being felt: a queue, a time limit, a circuit breaker.

A breaker is closed while all is well. So many failures within a window open it: requests then
fail at once, without a connection. After a rest it is half open: one request goes out as a probe,
and its outcome closes or opens it again. Time comes from the caller's clock.
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
    """Twisted's `IReactorTime`, as far as it is needed here."""

    def seconds(self) -> float: ...

    def callLater(  # noqa: N802 - Twisted's own name
        self, delay: float, call: Callable[..., Any], /, *args: Any, **options: Any
    ) -> Any: ...


class CircuitBreaker:
    """Counts failures and says whether another request makes sense now."""

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
        self._failures: deque[tuple[float, str]] = deque(maxlen=failures)  # when, and whose
        self._opened_at: float | None = None
        self._probing = False

    @property
    def state(self) -> BreakerState:
        if self._opened_at is None:
            return "closed"
        return "half_open" if self.retry_in_seconds <= 0 else "open"

    @property
    def retry_in_seconds(self) -> float:
        """Seconds until a request may go out again; 0 when one may now."""
        if self._opened_at is None:
            return 0.0
        return max(0.0, self._opened_at + self._rest_seconds - self._seconds())

    @property
    def admits(self) -> bool:
        """True if `begin` would let a request out."""
        return self.state == "closed" or (self.state == "half_open" and not self._probing)

    def begin(self) -> bool:
        """Let a request out, if it may: its outcome must be told. In half-open it is the probe."""
        if not self.admits:
            return False
        self._probing = self.state == "half_open"
        return True

    def succeeded(self) -> None:
        """The server answered; one that answers late, while the breaker rests, does not count."""
        if self.state != "open":
            self._failures.clear()
            self._opened_at = None
            self._probing = False

    def failed(self, *, asker: str = "") -> None:
        """The server did not answer, or is broken.

        An `asker` is named where the cause may be what it asked: failures of one asker alone do
        not open the breaker for all others.
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
        """The probe was given up before its outcome: another request may be it."""
        self._probing = False


class Slots:
    """So many at once; who waits gets a slot that is given back, first come first served.

    They are handed out in a loop, not by whoever gives one back: in a long queue where each fails
    at once, each would else stand on the stack of the one before.
    """

    def __init__(self, limit: int) -> None:
        self.limit: Final = limit
        self.taken = 0
        self.waiting: deque[Deferred[None]] = deque()
        self._handing_out = False

    def acquire(self) -> Deferred[None]:
        """Fires when there is a slot, which is then taken; may be cancelled until then."""
        slot: Deferred[None] = Deferred(self.waiting.remove)
        self.waiting.append(slot)
        self._hand_out()
        return slot

    def release(self) -> None:
        """Give a slot back."""
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
    """A model behind a queue, a time limit and a breaker; itself a `ChatModel`.

    At most `max_concurrent` requests are out, at most `max_waiting` wait, first come first served.
    A request's time limit includes its waiting. Models that are one and the same to their server
    share `slots` and a breaker.
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
        """How many requests may be at the server at one time, of all who share the slots."""
        return self._slots.limit

    @property
    def waiting(self) -> int:
        """How many requests have not been sent yet, of all who share the slots."""
        return len(self._slots.waiting)

    @property
    def out(self) -> int:
        """How many requests are at the server now, of all who share the slots."""
        return self._slots.taken

    def complete(
        self, request: ChatRequest, *, listener: Listener | None = None
    ) -> Deferred[ChatReply]:
        """The model's reply; fails at once where asking makes no sense."""
        if not self.breaker.admits:
            return fail(self._resting())
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
        """Give up what waits or is out, the newest first, then close the model."""
        for asked in reversed(tuple(self._asked)):
            asked.cancel()
        self._model.close()

    def _send(
        self, request: ChatRequest, deadline: float, listener: Listener | None
    ) -> Deferred[ChatReply]:
        """Ask the model, now that there is a slot; the breaker may have opened meanwhile."""
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
            sent = fail(self._resting())
        return sent.addBoth(self._released)

    def _seen_by_breaker(
        self, outcome: T | Failure, request: ChatRequest, is_probe: bool
    ) -> T | Failure:
        """The outcome, once the breaker knows of it.

        A refusal or rubbish is an answer, so the server is there. An answer with status 500 may
        be about this prompt alone, such as an error of its chat template in unknown words.
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

    def _resting(self) -> ModelUnavailable:
        seconds = self.breaker.retry_in_seconds
        when = f"in {seconds:.0f} seconds" if seconds else "as soon as the request under way ends"
        return ModelUnavailable(
            self.name,
            f"it failed repeatedly; trying again {when}",
            retry_in_seconds=seconds,
            was_sent=False,
        )


def _with_time(request: ChatRequest, left_seconds: float) -> ChatRequest:
    """The request with what is left of its time: the model's own retries must fit into it."""
    if request.timeout_seconds - left_seconds < 0.001:
        return request
    return replace(request, timeout_seconds=left_seconds)
