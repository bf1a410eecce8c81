"""Run asyncio code in a daemon thread, and turn its results into Deferreds.

Libraries for asyncio run there for two reasons: the loop of a running Evennia is Twisted's and not
asyncio's, and their imports and calls must not block the game. Code in this thread must not touch
game objects. Django protects us from that, because it refuses database calls in a thread with a
running loop. The global reactor is imported on first use, because importing it installs it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import CancelledError as FutureCancelled
from concurrent.futures import Future
from threading import Thread
from typing import Any, Final, Generic, Protocol, TypeVar

from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

log: Final = logging.getLogger(__name__)
T = TypeVar("T")
P = TypeVar("P")
Closer = Callable[[], Awaitable[object]]
Hear = Callable[[P], None]

CLOSING_SECONDS: Final = 2.0
"""The time limit of each step when the loop stops."""


class CallsFromThread(Protocol):
    """The method of a reactor that the bridge needs."""

    def callFromThread(self, call: Callable[..., Any], /, *args: Any) -> object:  # noqa: N802
        """Run `call` on the reactor's thread. The name is Twisted's."""


class AsyncBridge:
    """A thread that runs coroutines. Their Deferreds fire on the reactor's thread.

    The thread starts with the first `run`, and again after a `stop`. Call `run` and `stop` on the
    reactor's thread, and `at_stop` on the bridge's.
    """

    def __init__(self, reactor: CallsFromThread | None = None) -> None:
        self._reactor = reactor
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Thread | None = None
        self._closers: dict[asyncio.AbstractEventLoop, list[Closer]] = {}

    @property
    def running(self) -> bool:
        """True if the thread is alive."""
        return self._thread is not None and self._thread.is_alive()

    def run(self, make_coroutine: Callable[[], Coroutine[Any, Any, T]]) -> Deferred[T]:
        """Run a coroutine, and return a Deferred of its result or error.

        The coroutine is created in the bridge's thread. Cancelling the Deferred cancels it.
        """
        future = asyncio.run_coroutine_threadsafe(_made(make_coroutine), self._started_loop())
        reactor = self._reactor_now()
        deferred: Deferred[T] = Deferred(lambda _: future.cancel())
        future.add_done_callback(lambda done: reactor.callFromThread(_deliver, done, deferred))
        return deferred

    def run_heard(
        self, make_coroutine: Callable[[Hear[P]], Coroutine[Any, Any, T]], listener: Hear[P]
    ) -> Deferred[T]:
        """Run a coroutine that reports values before it returns.

        The coroutine gets a function that it calls with each value. `listener` gets the values in
        order, on the reactor's thread. It gets none after the Deferred has fired or was cancelled.
        """
        reactor = self._reactor_now()

        def hear(piece: P) -> None:
            reactor.callFromThread(deliver, piece)

        def deliver(piece: P) -> None:
            if not deferred.called:
                listener(piece)

        deferred = self.run(lambda: make_coroutine(hear))
        return deferred

    def at_stop(self, closer: Closer) -> None:
        """Register a function that is awaited when the running loop is stopped."""
        self._closers.setdefault(asyncio.get_running_loop(), []).append(closer)

    def stop(self, timeout_seconds: float = CLOSING_SECONDS) -> None:
        """Cancel running tasks, close connections and end the thread.

        Waits at most `timeout_seconds`. If the thread is still alive then, it cannot prevent the
        exit of the process, because it is a daemon.
        """
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is None or thread is None or not thread.is_alive():
            return
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout_seconds)
        if thread.is_alive():
            log.warning("the thread for model calls did not end within %g seconds", timeout_seconds)

    def _reactor_now(self) -> CallsFromThread:
        if self._reactor is None:
            from twisted.internet import reactor

            self._reactor = reactor
        return self._reactor

    def _started_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None or not self.running:
            self._loop = asyncio.new_event_loop()
            self._thread = Thread(
                target=self._run_loop, args=(self._loop,), name="evennia-ai-models", daemon=True
            )
            self._thread.start()
        return self._loop

    def _run_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run the loop until it is stopped, then close everything."""
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
            loop.run_until_complete(_end_tasks(self._closers.pop(loop, [])))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()


class PerLoop(Generic[T]):
    """An object that belongs to one loop of the bridge, such as an HTTP client.

    A new loop gets a new object. `make` and `close` run in the bridge's thread; `close` also runs
    when the loop is stopped.
    """

    def __init__(
        self, bridge: AsyncBridge, make: Callable[[], T], close: Callable[[T], Awaitable[object]]
    ) -> None:
        self._bridge = bridge
        self._make = make
        self._close = close
        self._made: tuple[asyncio.AbstractEventLoop, T] | None = None

    def now(self) -> T:
        """Return the object of the current loop, made at first use.

        Call it in the bridge's thread.
        """
        loop = asyncio.get_running_loop()
        if self._made is None or self._made[0] is not loop:
            made = self._make()
            self._made = loop, made
            self._bridge.at_stop(lambda: self._close(made))
        return self._made[1]

    def close(self) -> None:
        """Close the object if it exists. Call it on the reactor's thread."""
        if self._bridge.running:
            # If the bridge is stopping, it cancels this call and closes the object itself.
            self._bridge.run(self.aclose).addErrback(lambda failure: failure.trap(CancelledError))

    async def aclose(self) -> None:
        """Close the object if it exists. Call it in the bridge's thread."""
        known, self._made = self._made, None
        if known is not None and known[0] is asyncio.get_running_loop():
            await self._close(known[1])


async def _made(make_coroutine: Callable[[], Coroutine[Any, Any, T]]) -> T:
    return await make_coroutine()


def _deliver(future: Future[T], deferred: Deferred[T]) -> None:
    """Fire `deferred` on the reactor's thread, unless it was cancelled and has fired already."""
    if deferred.called:
        return
    try:
        result = future.result(timeout=0)
    except (FutureCancelled, asyncio.CancelledError):
        deferred.errback(Failure(CancelledError("the thread for model calls was stopped")))
    except Exception as problem:  # Whoever waits for the Deferred gets any error of the coroutine.
        deferred.errback(Failure(problem))
    else:
        deferred.callback(result)


async def _end_tasks(closers: list[Closer]) -> None:
    """Cancel the remaining tasks, then run the closers. Each step has a time limit."""
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    if rest:
        await asyncio.wait(rest, timeout=CLOSING_SECONDS)
    for closer in closers:
        try:
            await asyncio.wait_for(closer(), CLOSING_SECONDS)
        except Exception:
            log.exception("closing a model's connections failed")
