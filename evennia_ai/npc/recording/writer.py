"""The writer: what NPCs perceive and say is committed in a thread of its own, some of it together.

A database that another process has locked, and a disk that is slow, hold up who waits for their own
commit, and nobody else in the game. What is asked of a model and what is said waits for it as ever:
a Deferred fires when it is committed, on the reactor's thread.

A job is a function over plain values that calls the store, and touches no object of the game. Jobs
are done in the order in which they were given. Several that wait become one transaction without
savepoints, which on PostgreSQL were three statements of four. Where one of them fails, or the
transaction does, nothing of it was written, and each is done once more alone, but for one that
failed by itself: so no job fails because of another. A job that reads is done between two
transactions, in its place.

There is a thread while a server runs on a database that can be read while it is written. Else, and
in commands, scripts and tests, a job is done where it is given.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from threading import Thread
from traceback import clear_frames
from typing import Any, Final, Generic, TypeVar

from django.db import Error as DatabaseProblem
from django.db import IntegrityError, connection, transaction
from evennia.utils import logger
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.interfaces import IReactorFromThreads
from twisted.python.failure import Failure

from evennia_ai.engine.errors import StoreError
from evennia_ai.npc.recording.retrying import until_done
from evennia_ai.services.llm.resilience import Clock
from evennia_ai.store.core.locks import (
    LOCKED_SECONDS,
    LockedOut,
    is_lock,
    mark_game_thread,
    notice_locks,
    unmark_game_thread,
)
from evennia_ai.store.core.snapshots import all_or_nothing

T = TypeVar("T")

MOST_TOGETHER: Final = 32
TOGETHER_SECONDS: Final = 0.005
"""How long a transaction takes in more jobs."""

STOPPING_SECONDS: Final = 5.0
"""How long the stop of the server waits for what is not committed yet."""


class _Job(Generic[T]):
    """Something to write, who waits for it, and how it went."""

    def __init__(self, write: Callable[[], T], *, is_reading: bool = False) -> None:
        self.waiting: Final[Deferred[T]] = Deferred(lambda _: None)
        self.is_reading: Final = is_reading
        self._write: Final = write
        self._outcome: T | Failure
        self.has_failed_by_itself = False
        """True if it failed in a transaction of several as it would have failed alone."""

    def do(self) -> bool:
        """Read, or write in the current transaction, which is to be given up where this fails.

        Whether it did not fail.
        """
        try:
            self._outcome = self._write()
        except Exception as error:  # whatever it is belongs to who waits for it
            self._fail_with(error)
            self.has_failed_by_itself = not _was_refused(error)
            return False
        return True

    def do_alone(self) -> None:
        """Write in a transaction of its own, all or nothing."""
        try:
            with transaction.atomic():
                self._outcome = self._write()
        except Exception as error:  # whatever it is belongs to who waits for it
            self._fail_with(error)

    def _fail_with(self, error: Exception) -> None:
        """Keep the current exception as what came of it, with nothing that its frames had in hand.

        A frame of Django's keeps the error whose traceback refers to it; the prompt that was to be
        written would stay in memory until the collector finds the two.
        """
        clear_frames(error.__traceback__)
        self._outcome = Failure()

    @property
    def has_failed(self) -> bool:
        """True if the last try raised an error."""
        return isinstance(self._outcome, Failure)

    @property
    def is_locked_out(self) -> bool:
        """True if another process has locked what it writes or reads."""
        return isinstance(self._outcome, Failure) and is_lock(self._outcome.value)

    def fail(self, error: Exception) -> None:
        self._outcome = Failure(error)

    def tell(self) -> None:
        """Tell who waits for it, on the reactor's thread.

        The outcome is handed over, not kept: a failure's traceback refers to this job.
        """
        outcome = self._outcome
        del self._outcome
        if not self.waiting.called:  # else nobody waits any more
            self.waiting.callback(outcome)


class Writer:
    """Commits what the game loop of one process writes."""

    def __init__(self, clock: Clock) -> None:
        self.clock: Final = clock
        self._thread: Thread | None = None
        self._given: SimpleQueue[_Job[Any] | None] = SimpleQueue()
        self._done: SimpleQueue[_Job[Any]] = SimpleQueue()
        self._behind: _Job[Any] | None = None  # one that reads, behind what is being written
        self._under_way: Final[set[_Job[Any]]] = set()
        self._is_given_up = False
        self.locked_out: Final = LockedOut(_log_error)
        """True while it waits for a lock that another process has."""

    def begin(self) -> None:
        """Write in a thread from now on, where the database and the clock are made for it."""
        if self._thread is None and _is_read_while_written() and self._has_threads:
            self._is_given_up = False
            _begin_with_the_lock()
            self._thread = Thread(target=self._live, name="evennia-ai-writer", daemon=True)
            self._thread.start()
            mark_game_thread()

    @property
    def is_at_work(self) -> bool:
        """True if something is given that nobody was told of yet."""
        return bool(self._under_way)

    def write(self, job: Callable[[], T]) -> Deferred[T]:
        """What `job` returns once it is committed. It fails as `job` does, or with StoreError."""
        return self._taken_on(job)

    def read(self, job: Callable[[], T]) -> Deferred[T]:
        """What `job` reads once all that was given before it is committed; it holds no lock."""
        return self._taken_on(job, is_reading=True)

    def _taken_on(self, job: Callable[[], T], *, is_reading: bool = False) -> Deferred[T]:
        if self._thread is None:
            return maybeDeferred(job)
        given = _Job(job, is_reading=is_reading)
        self._under_way.add(given)
        self._given.put(given)
        return given.waiting

    def until_written(self, job: Callable[[], object], doing: str) -> "Deferred[None]":
        """Have `job` written, and again every few seconds as long as the store refuses."""
        return until_done(partial(self.write, job), doing, clock=self.clock)

    def end(self) -> None:
        """Commit what waits, and what comes of it; from now on jobs are done where they are given.

        For the stop of the server. What a lock keeps from being written is given up.
        """
        thread, until = self._thread, time.monotonic() + STOPPING_SECONDS
        if thread is None:
            return
        while self._under_way and (left := until - time.monotonic()) > 0:
            with suppress(Empty):
                self._tell(self._done.get(timeout=left))
        self._is_given_up = True
        self._given.put(None)
        thread.join(max(0.0, until - time.monotonic()))
        self._thread = None
        unmark_game_thread()
        while not self._done.empty():
            self._tell(self._done.get_nowait())
        for job in tuple(self._under_way):
            job.fail(StoreError("the server stops, and the database is still locked"))
            self._tell(job)

    # On the reactor's thread

    @property
    def _has_threads(self) -> bool:
        return IReactorFromThreads.providedBy(self.clock)

    def _tell_next(self) -> None:
        """Tell of one job, and of the next when everybody else had their turn."""
        with suppress(Empty):
            self._tell(self._done.get_nowait())
        if not self._done.empty():
            self.clock.callLater(0, self._tell_next)

    def _tell(self, job: _Job[Any]) -> None:
        self._under_way.discard(job)
        job.tell()

    # In the writer's thread

    def _live(self) -> None:
        """The thread's whole life."""
        notice_locks()
        _begin_with_the_lock()
        try:
            while (job := self._read_before_the_next()) is not None:
                self._write_with(job)
        finally:
            connection.close()

    def _read_before_the_next(self) -> _Job[Any] | None:
        """The next job to write, after those before it that read; None: the thread ends."""
        while (job := self._behind or self._given.get()) is not None and job.is_reading:
            self._behind = None
            self._until_unlocked(job, job.do)
            if job.has_failed and not connection.is_usable():  # it was away; another is opened
                connection.close()
            self._done.put(job)
            self._tell_from_thread()
        self._behind = None
        return job

    def _write_with(self, first: _Job[Any]) -> None:
        """Write a job, and with it those that wait behind it."""
        jobs: list[_Job[Any]] = []
        try:
            with all_or_nothing():
                for job in self._with_those_waiting(first):
                    jobs.append(job)
                    if not job.do() or connection.needs_rollback:
                        transaction.set_rollback(True)
                        break
                is_written = not connection.needs_rollback
        except Exception as error:  # whatever it is, each job is told of it by a try of its own
            if is_lock(error):
                self.locked_out.waits()
            if not connection.is_usable():  # the database was away; another connection is opened
                connection.close()
            is_written = False
        for job in jobs or [first]:
            if not is_written and not job.has_failed_by_itself:
                self._until_unlocked(job, job.do_alone)
            self._done.put(job)
        self._tell_from_thread()

    def _tell_from_thread(self) -> None:
        reactor: Any = self.clock
        reactor.callFromThread(self._tell_next)

    def _with_those_waiting(self, first: _Job[Any]) -> Iterator[_Job[Any]]:
        """It and what waits behind it, for a few milliseconds, up to a job that reads."""
        until = time.monotonic() + TOGETHER_SECONDS
        yield first
        for _ in range(MOST_TOGETHER - 1):
            if time.monotonic() > until:
                return
            try:
                job = self._given.get_nowait()
            except Empty:
                return
            if job is None:
                self._given.put(None)
                return
            if job.is_reading:
                self._behind = job
                return
            yield job

    def _until_unlocked(self, job: _Job[Any], attempt: Callable[[], object]) -> None:
        """Call `attempt`, which reads or writes `job`, until no other process locks it out."""
        attempt()
        while job.is_locked_out and not self._is_given_up:
            self.locked_out.waits()
            time.sleep(LOCKED_SECONDS)
            attempt()
        if not job.is_locked_out:
            self.locked_out.goes_on()


def _log_error(line: str) -> None:
    logger.log_err(line)


def _begin_with_the_lock() -> None:
    """Have the transactions of this thread's connection wait for the lock before they read.

    On SQLite one that reads first is refused where another connection writes meanwhile.
    """
    if connection.vendor == "sqlite":
        connection.transaction_mode = "IMMEDIATE"


def _is_read_while_written() -> bool:
    """True if a second connection can read while another writes."""
    if connection.vendor != "sqlite":
        return True
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA journal_mode")
        return bool(cursor.fetchone()[0] == "wal")


def _was_refused(error: BaseException | None) -> bool:
    """True if an error, or what it came from, is a statement that the database did not take.

    Also where somebody caught the first refusal and went on in a transaction that was lost. A row
    that is there already is no refusal: that is for whoever wrote to tell.
    """
    if is_lock(error):
        return True
    while error is not None:
        if isinstance(error, DatabaseProblem) and not isinstance(error, IntegrityError):
            return True
        error = error.__cause__ or error.__context__
    return False
