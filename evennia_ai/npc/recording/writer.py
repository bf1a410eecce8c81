"""The writer: commits what NPCs perceive and say, in a thread of its own.

A locked database or a slow disk then delays only callers that wait for their own commit. A Deferred
fires in the reactor's thread after each commit. Nothing is asked of a model or said before that.

A job is a function over plain values that calls the store and uses no object of the game. Jobs run
in the order in which they were given. Several waiting jobs share one transaction without
savepoints, which saves three of four statements on PostgreSQL. If a job or the transaction fails,
nothing is written. Then each job is repeated in its own transaction, except a job that raised an
error of its own. So no job fails because of another. Jobs that only read run between two
transactions.

The thread runs if there is a server, and a database that can be read during a write. Otherwise, and
in commands, scripts and tests, a job runs at once in the caller's thread.
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
"""The most jobs in one transaction."""
TOGETHER_SECONDS: Final = 0.005
"""How long a transaction takes in more jobs."""

STOPPING_SECONDS: Final = 5.0
"""How long the stop of the server waits for the writer."""


class _Job(Generic[T]):
    """A function to run in the writer's thread, with its Deferred and its outcome."""

    def __init__(self, write: Callable[[], T], *, is_reading: bool = False) -> None:
        self.waiting: Final[Deferred[T]] = Deferred(lambda _: None)
        self.is_reading: Final = is_reading
        self._write: Final = write
        self._outcome: T | Failure
        self.has_failed_by_itself = False
        """True if it raised an error of its own, not one of the database, in a shared
        transaction."""

    def do(self) -> bool:
        """Read, or write in the current transaction. Return False after an error.

        The caller must then roll the transaction back.
        """
        try:
            self._outcome = self._write()
        except Exception as error:  # the job's Deferred reports every error
            self._fail_with(error)
            self.has_failed_by_itself = not _is_database_refusal(error)
            return False
        return True

    def do_alone(self) -> None:
        """Write in a transaction of its own."""
        try:
            with transaction.atomic():
                self._outcome = self._write()
        except Exception as error:  # the job's Deferred reports every error
            self._fail_with(error)

    def _fail_with(self, error: Exception) -> None:
        """Keep the current exception as the outcome, and clear its frames.

        Django keeps the error in a frame to which its traceback refers. Without the clearing, the
        prompt to be written would stay in memory until the garbage collector runs.
        """
        clear_frames(error.__traceback__)
        self._outcome = Failure()

    @property
    def has_failed(self) -> bool:
        """True if the last attempt raised an error."""
        return isinstance(self._outcome, Failure)

    @property
    def is_locked_out(self) -> bool:
        """True if the job failed because another process holds a lock."""
        return isinstance(self._outcome, Failure) and is_lock(self._outcome.value)

    def fail(self, error: Exception) -> None:
        self._outcome = Failure(error)

    def tell(self) -> None:
        """Fire the Deferred with the outcome. Call this in the reactor's thread.

        The outcome is then deleted, because the traceback of a failure refers to this job.
        """
        outcome = self._outcome
        del self._outcome
        if not self.waiting.called:  # the caller may have cancelled it
            self.waiting.callback(outcome)


class Writer:
    """Commits everything that the NPCs of one process write."""

    def __init__(self, clock: Clock) -> None:
        self.clock: Final = clock
        self._thread: Thread | None = None
        self._given: SimpleQueue[_Job[Any] | None] = SimpleQueue()
        self._done: SimpleQueue[_Job[Any]] = SimpleQueue()
        self._behind: _Job[Any] | None = None  # a read job to run after the current transaction
        self._under_way: Final[set[_Job[Any]]] = set()
        self._is_given_up = False
        self.locked_out: Final = LockedOut(_log_error)
        """Logs when the writer begins and ends to wait for a lock of another process."""

    def begin(self) -> None:
        """Start the thread, if the database and the clock allow one."""
        if self._thread is None and _is_read_while_written() and self._has_threads:
            self._is_given_up = False
            _begin_with_the_lock()
            self._thread = Thread(target=self._run_thread, name="evennia-ai-writer", daemon=True)
            self._thread.start()
            mark_game_thread()

    @property
    def is_at_work(self) -> bool:
        """True if some job has not ended yet."""
        return bool(self._under_way)

    def write(self, job: Callable[[], T]) -> Deferred[T]:
        """Run `job` in a transaction.

        Return a Deferred with its result, which fires after the commit.

        The Deferred fails with the error of `job`, or with StoreError.
        """
        return self._taken_on(job)

    def read(self, job: Callable[[], T]) -> Deferred[T]:
        """Run `job` without a transaction, after all earlier jobs are committed.

        Return a Deferred with its result.
        """
        return self._taken_on(job, is_reading=True)

    def _taken_on(self, job: Callable[[], T], *, is_reading: bool = False) -> Deferred[T]:
        if self._thread is None:
            return maybeDeferred(job)
        given = _Job(job, is_reading=is_reading)
        self._under_way.add(given)
        self._given.put(given)
        return given.waiting

    def until_written(self, job: Callable[[], object], doing: str) -> "Deferred[None]":
        """Run `job` in a transaction, and again every few seconds while the database refuses."""
        return until_done(partial(self.write, job), doing, clock=self.clock)

    def end(self) -> None:
        """Commit what waits and stop the thread. Later jobs run in the caller's thread.

        Called when the server stops. Jobs that still wait for a lock after a few seconds fail.
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
            job.fail(
                StoreError(
                    "not written: the server stops while another process has locked the database"
                )
            )
            self._tell(job)

    # These methods run in the reactor's thread.

    @property
    def _has_threads(self) -> bool:
        return IReactorFromThreads.providedBy(self.clock)

    def _tell_next(self) -> None:
        """Fire one job's Deferred now, and the next one after other work of the reactor."""
        with suppress(Empty):
            self._tell(self._done.get_nowait())
        if not self._done.empty():
            self.clock.callLater(0, self._tell_next)

    def _tell(self, job: _Job[Any]) -> None:
        self._under_way.discard(job)
        job.tell()

    # These methods run in the writer's thread.

    def _run_thread(self) -> None:
        """Run jobs until the end. The main function of the thread."""
        notice_locks()
        _begin_with_the_lock()
        try:
            while (job := self._read_before_the_next()) is not None:
                self._write_with(job)
        finally:
            connection.close()

    def _read_before_the_next(self) -> _Job[Any] | None:
        """Run read jobs until a write job comes, and return that. None: end the thread."""
        while (job := self._behind or self._given.get()) is not None and job.is_reading:
            self._behind = None
            self._until_unlocked(job, job.do)
            if job.has_failed and not connection.is_usable():
                connection.close()  # the connection is lost; the next job opens another
            self._done.put(job)
            self._tell_from_thread()
        self._behind = None
        return job

    def _write_with(self, first: _Job[Any]) -> None:
        """Write a job in one transaction with those that wait after it."""
        jobs: list[_Job[Any]] = []
        try:
            with all_or_nothing():
                for job in self._with_those_waiting(first):
                    jobs.append(job)
                    if not job.do() or connection.needs_rollback:
                        transaction.set_rollback(True)
                        break
                is_written = not connection.needs_rollback
        except Exception as error:  # each job is repeated below and reports its own error
            if is_lock(error):
                self.locked_out.waits()
            if not connection.is_usable():
                connection.close()  # the connection is lost; the next job opens another
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
        """Yield `first` and the write jobs after it, for some milliseconds or up to a read job."""
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
        """Call `attempt`, and again while another process holds a lock that the job needs."""
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
    """On SQLite, let transactions of this thread take the lock before they read.

    Otherwise a transaction that reads first would fail if another connection writes meanwhile.
    """
    if connection.vendor == "sqlite":
        connection.transaction_mode = "IMMEDIATE"


def _is_read_while_written() -> bool:
    """True if the database allows one connection to read while another writes."""
    if connection.vendor != "sqlite":
        return True
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA journal_mode")
        return bool(cursor.fetchone()[0] == "wal")


def _is_database_refusal(error: BaseException | None) -> bool:
    """True if this error, or one that led to it, is an error of the database.

    The job may also have caught the database's error and continued in the lost transaction. A
    duplicate row does not count, because the job itself must handle it.
    """
    if is_lock(error):
        return True
    while error is not None:
        if isinstance(error, DatabaseProblem) and not isinstance(error, IntegrityError):
            return True
        error = error.__cause__ or error.__context__
    return False
