"""The scheduler: whose turn runs when.

At most one turn of an NPC is in flight, at most so many of the whole game; NPCs take turns in
starting, and each rests a moment between two starts. What waits is bounded.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from twisted.internet.defer import Deferred, maybeDeferred
from twisted.python.failure import Failure

from evennia_ai.llm.resilience import Clock

Work = Callable[[], "Deferred[None] | None"]
OnError = Callable[[str, Failure], None]


class Scheduler:
    """Starts work of many keys (NPCs), in order for each key, fairly over the keys.

    Nothing starts inside `offer`: what is being said reaches everybody before anybody answers.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        max_running: int,
        queue_limit: int,
        cooldown_seconds: float,
        on_error: OnError,
    ) -> None:
        self._clock: Final = clock
        self._max_running: Final = max_running
        self._queue_limit: Final = queue_limit
        self._cooldown_seconds: Final = cooldown_seconds
        self._on_error: Final = on_error
        # In the order in which the keys may start next.
        self._queues: dict[str, deque[Work]] = {}
        self._running: set[str] = set()
        self._rests_until: dict[str, float] = {}
        self._wake: Any = None

    def offer(self, key: str, work: Work) -> bool:
        """Queue `work`; false where too much of this key waits already."""
        queue = self._queues.setdefault(key, deque())
        if len(queue) >= self._queue_limit:
            return False
        queue.append(work)
        self._wake_in(0)
        return True

    def put_back(self, key: str, work: Work, *, delay_seconds: float) -> None:
        """Queue `work` again before all other of its key, to start not before the delay."""
        self._queues.setdefault(key, deque()).appendleft(work)
        self._rests_until[key] = self._clock.seconds() + delay_seconds
        self._wake_in(delay_seconds)

    def drop(self, key: str) -> int:
        """Forget what waits of this key; how much that was."""
        return len(self._queues.pop(key, ()))

    def waiting(self, key: str) -> int:
        """How much of this key waits."""
        return len(self._queues.get(key, ()))

    def in_flight(self, key: str) -> bool:
        """Whether work of this key has started and not ended."""
        return key in self._running

    def stop(self) -> None:
        """Start nothing any more."""
        self._queues.clear()
        if self._wake is not None and self._wake.active():
            self._wake.cancel()

    def _start_what_may(self) -> None:
        now = self._clock.seconds()
        for key in [k for k in self._queues if k not in self._running]:
            if len(self._running) >= self._max_running:
                return
            if self._rests_until.get(key, now) <= now:
                self._start(key, now)
        rests = [self._rests_until.get(k, now) for k in self._queues if k not in self._running]
        if rests:
            self._wake_in(max(0.0, min(rests) - now))

    def _start(self, key: str, now: float) -> None:
        queue = self._queues.pop(key)
        work = queue.popleft()
        if queue:  # to the end of the line
            self._queues[key] = queue
        self._running.add(key)
        self._rests_until[key] = now + self._cooldown_seconds
        done = maybeDeferred(work)
        done.addErrback(lambda failure: self._on_error(key, failure))
        done.addBoth(lambda _: self._ended(key))

    def _ended(self, key: str) -> None:
        self._running.discard(key)
        if self._queues:
            self._wake_in(0)
        elif key not in self._queues:
            self._forget_rests()

    def _forget_rests(self) -> None:
        now = self._clock.seconds()
        self._rests_until = {k: until for k, until in self._rests_until.items() if until > now}

    def _wake_in(self, seconds: float) -> None:
        """Look again after `seconds`, or when it was planned, whichever is sooner."""
        if self._wake is not None and self._wake.active():
            if self._wake.getTime() <= self._clock.seconds() + seconds:
                return
            self._wake.cancel()
        self._wake = self._clock.callLater(seconds, self._start_what_may)
