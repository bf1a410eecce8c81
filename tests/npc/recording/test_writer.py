"""The writer commits jobs in a thread, in order and several together. Failures stay separate."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from threading import Event, get_ident
from typing import Any

import pytest
from django.db import OperationalError, connection, connections
from django.db.backends.signals import connection_created
from twisted.internet.task import Clock

from evennia_ai.engine.errors import StoreError
from evennia_ai.models import StateRevision
from evennia_ai.npc.recording import writer as module
from evennia_ai.npc.recording.writer import Writer
from evennia_ai.store.core.snapshots import one_transaction
from tests.threaded_clock import ThreadedClock

NAMES = ("a", "b")


class Reactor(ThreadedClock):
    """A clock with `callFromThread`, in place of the reactor."""

    def hear_all(self, writer: Writer) -> None:
        """Run the reactor's calls until all Deferreds of the writer have fired."""
        while writer.is_at_work:
            assert self.hear(at_most_seconds=20)


@pytest.fixture(autouse=True)
def _database(tmp_path: Path) -> Iterator[None]:
    """A database file that two threads can open, with the table in which the tests count."""
    if connection.vendor != "sqlite":
        yield
        StateRevision.objects.filter(name__in=NAMES).delete()
        return
    in_memory, settings = connections["default"], connections.databases["default"]
    before = dict(settings)
    settings["NAME"] = str(tmp_path / "game.db3")
    settings["OPTIONS"] = {"init_command": "PRAGMA journal_mode=WAL"}
    del connections["default"]
    with connection.schema_editor() as editor:
        editor.create_model(StateRevision)
    yield
    connection.close()
    settings.clear()
    settings.update(before)
    connections["default"] = in_memory


@pytest.fixture
def reactor() -> Reactor:
    return Reactor()


@pytest.fixture
def commits() -> Iterator[list[int]]:
    """The ids of the threads of all commits, in order."""
    made: list[int] = []

    def opened(connection: Any, **_: Any) -> None:
        def committed() -> None:
            commit()
            made.append(get_ident())

        commit, connection._commit = connection._commit, committed

    connection_created.connect(opened)
    yield made
    connection_created.disconnect(opened)


@pytest.fixture
def writer(reactor: Reactor) -> Iterator[Writer]:
    made = Writer(reactor)
    made.begin()
    yield made
    made.end()


def increment(name: str) -> int:
    """Increment the counter of this name in a transaction of the store. Return its value."""
    with one_transaction(f"counting {name}"):
        row, _ = StateRevision.objects.get_or_create(name=name, defaults={"number": 0})
        StateRevision.objects.filter(pk=row.pk).update(number=row.number + 1)
    return row.number + 1


def counted() -> dict[str, int]:
    rows = StateRevision.objects.filter(name__in=NAMES)
    return dict(rows.values_list("name", "number"))


class Held:
    """A job that blocks the writer until `open`, so that later jobs wait together."""

    def __init__(self, writer: Writer) -> None:
        self._gate = Event()
        writer.write(self._wait)

    def _wait(self) -> None:
        assert self._gate.wait(20)

    def open(self) -> None:
        self._gate.set()


def outcomes(given: list[Any]) -> list[object]:
    """Return a list that gets the results and errors of these Deferreds as they fire."""
    told: list[object] = []
    for one in given:
        one.addBoth(lambda outcome: told.append(getattr(outcome, "value", outcome)))
    return told


def test_job_runs_in_another_thread_and_its_deferred_fires_in_this_one(writer, reactor):
    threads: list[int] = []
    done = writer.write(lambda: threads.append(get_ident()))
    done.addCallback(lambda _: threads.append(get_ident()))
    reactor.hear_all(writer)
    assert threads[1] == get_ident() != threads[0]


def test_waiting_jobs_are_written_in_order_in_one_transaction(
    writer, reactor, commits, monkeypatch
):
    monkeypatch.setattr(module, "TOGETHER_SECONDS", 60.0)
    held = Held(writer)
    told = outcomes([writer.write(partial(increment, "a")) for _ in range(5)])
    held.open()
    reactor.hear_all(writer)
    assert told == [1, 2, 3, 4, 5]
    assert len(commits) == 1
    assert counted() == {"a": 5}


@pytest.mark.req("S2-27")
def test_read_job_runs_in_its_place_between_two_transactions(writer, reactor, commits, monkeypatch):
    def fails() -> None:
        raise StoreError("no")

    def read() -> tuple[bool, dict[str, int]]:
        return connection.in_atomic_block, counted()

    monkeypatch.setattr(module, "TOGETHER_SECONDS", 60.0)
    held, count = Held(writer), partial(increment, "a")
    given = [writer.write(count), writer.read(read), writer.read(fails), writer.write(count)]
    told = outcomes(given)
    held.open()
    reactor.hear_all(writer)
    first, seen, refused, last = told
    assert (first, seen, last) == (1, (False, {"a": 1}), 2)
    assert str(refused) == "no"
    assert len(commits) == 2


def test_jobs_beyond_the_limit_are_written_in_another_transaction(
    writer, reactor, commits, monkeypatch
):
    monkeypatch.setattr(module, "MOST_TOGETHER", 3)
    monkeypatch.setattr(module, "TOGETHER_SECONDS", 60.0)
    held = Held(writer)
    told = outcomes([writer.write(partial(increment, "a")) for _ in range(5)])
    held.open()
    reactor.hear_all(writer)
    assert told == [1, 2, 3, 4, 5]
    assert len(commits) == 2


def test_failed_job_rolls_back_only_its_own_rows(writer, reactor):
    def fails() -> None:
        increment("b")
        raise StoreError("no")

    held = Held(writer)
    told = outcomes(
        [writer.write(job) for job in (partial(increment, "a"), fails, partial(increment, "a"))]
    )
    held.open()
    reactor.hear_all(writer)
    assert [str(one) for one in told] == ["1", "no", "2"]
    assert counted() == {"a": 2}


def test_job_that_raises_an_error_is_not_repeated(writer, reactor, monkeypatch):
    tries: list[str] = []

    def fails() -> None:
        tries.append("tried")
        increment("b")
        raise StoreError("no")

    monkeypatch.setattr(module, "TOGETHER_SECONDS", 60.0)
    held = Held(writer)
    told = outcomes([writer.write(job) for job in (partial(increment, "a"), fails)])
    held.open()
    reactor.hear_all(writer)
    assert [str(one) for one in told] == ["1", "no"]
    assert (tries, counted()) == (["tried"], {"a": 1})


def test_job_that_catches_a_store_error_is_repeated_by_itself(writer, reactor, monkeypatch):
    def goes_on() -> int:
        try:
            with one_transaction("counting b"):
                increment("b")
                raise StoreError("no")
        except StoreError:
            return increment("a")

    monkeypatch.setattr(module, "TOGETHER_SECONDS", 60.0)
    held = Held(writer)
    told = outcomes([writer.write(job) for job in (partial(increment, "a"), goes_on)])
    held.open()
    reactor.hear_all(writer)
    assert told == [1, 2]
    assert counted() == {"a": 2}


def test_jobs_in_one_transaction_set_no_savepoints(writer, reactor, monkeypatch):
    statements: list[str] = []

    def noted() -> int:
        def note(execute: Any, sql: str, *rest: Any) -> Any:
            statements.append(sql.split(maxsplit=1)[0])
            return execute(sql, *rest)

        with connection.execute_wrapper(note), one_transaction("counting a"):
            rows = StateRevision.objects.filter(name="a")
            return rows.update(number=7)

    monkeypatch.setattr(module, "TOGETHER_SECONDS", 60.0)
    held = Held(writer)
    told = outcomes([writer.write(noted) for _ in range(2)])
    held.open()
    reactor.hear_all(writer)
    assert told == [0, 0]
    assert statements == ["UPDATE", "UPDATE"]


@pytest.mark.req("S2-27")
def test_each_job_is_written_by_itself_when_the_transaction_breaks(
    writer, reactor, commits, monkeypatch
):
    tries = iter(range(2))

    def breaks() -> str:
        if next(tries) == 0:
            connection.connection.execute("ROLLBACK")  # SQLite does this itself on a full disk
            raise OperationalError("database or disk is full")
        return "written"

    monkeypatch.setattr(module, "TOGETHER_SECONDS", 60.0)
    held = Held(writer)
    told = outcomes(
        [writer.write(job) for job in (partial(increment, "a"), breaks, partial(increment, "a"))]
    )
    held.open()
    reactor.hear_all(writer)
    assert told == [1, "written", 2]
    assert counted() == {"a": 2}
    assert len(commits) > 1


def test_writer_waits_for_a_lock_of_another_process(writer, reactor, logged, monkeypatch):
    monkeypatch.setattr(module, "LOCKED_SECONDS", 0.0)
    tries = iter(range(4))

    def locked() -> int:
        if next(tries) < 3:
            busy = sqlite3.OperationalError("database is locked")
            busy.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise StoreError("not written") from busy
        return increment("a")

    told = outcomes([writer.write(locked), writer.write(partial(increment, "a"))])
    reactor.hear_all(writer)
    assert told == [1, 2]
    assert [line.partition(": ")[2] for line in logged] == [
        "another process has locked the database; waiting",
        "the database is not locked any more",
    ]


@contextmanager
def locked_by_another() -> Iterator[None]:
    """Lock the table of the counters through another connection meanwhile."""
    if connection.vendor == "sqlite":
        with closing(sqlite3.connect(connection.settings_dict["NAME"])) as other:
            other.isolation_level = None
            other.execute("BEGIN EXCLUSIVE")
            yield
            other.execute("ROLLBACK")
        return
    other = connection.copy()
    try:
        other.set_autocommit(False)
        with closing(other.cursor()) as cursor:
            cursor.execute(f'LOCK TABLE "{StateRevision._meta.db_table}"')
            yield
            other.rollback()
    finally:
        other.close()


@pytest.mark.parametrize("is_together", [False, True])
def test_begin_and_end_of_a_real_lock_are_logged_and_jobs_run_once_after_it(
    is_together, writer, reactor, logged
):
    writer.write(partial(increment, "a"))
    reactor.hear_all(writer)
    held = Held(writer) if is_together else None
    with locked_by_another():
        told = outcomes(
            [
                writer.write(partial(increment, "a")),
                writer.write(partial(increment, "b")),
                writer.read(counted),
                writer.write(partial(increment, "a")),
            ]
        )
        if held is not None:
            held.open()
        for _ in range(200):
            if logged:
                break
            time.sleep(0.1)
        assert logged == ["evennia_ai: another process has locked the database; waiting"]
        assert told == []
    reactor.hear_all(writer)
    assert told == [2, 1, {"a": 2, "b": 1}, 3]
    assert counted() == {"a": 3, "b": 1}
    assert logged[1:] == ["evennia_ai: the database is not locked any more"]


def test_rows_of_the_writer_thread_are_visible_in_the_game_thread(writer, reactor):
    writer.write(partial(increment, "a"))
    reactor.hear_all(writer)
    assert counted() == {"a": 1}


def test_end_commits_waiting_jobs_and_jobs_of_their_callbacks(writer):
    told: list[object] = []
    writer.write(partial(increment, "a")).addCallback(
        lambda _: writer.write(partial(increment, "b")).addCallback(told.append)
    )
    writer.end()
    assert told == [1]
    assert counted() == {"a": 1, "b": 1}


def test_jobs_run_in_the_thread_of_the_caller_after_the_end(writer):
    writer.end()
    threads: list[int] = []
    writer.write(lambda: threads.append(get_ident()))
    assert threads == [get_ident()]


def test_end_fails_a_job_that_stays_locked(writer, monkeypatch):
    monkeypatch.setattr(module, "STOPPING_SECONDS", 0.3)

    def locked() -> None:
        busy = sqlite3.OperationalError("database is locked")
        busy.sqlite_errorcode = sqlite3.SQLITE_BUSY
        raise busy

    told = outcomes([writer.write(locked)])
    writer.end()
    assert isinstance(told[0], StoreError | OperationalError | sqlite3.OperationalError)


def test_jobs_run_in_the_thread_of_the_caller_without_a_reactor():
    writer = Writer(Clock())
    writer.begin()
    threads: list[int] = []
    writer.write(lambda: threads.append(get_ident()))
    assert threads == [get_ident()]
    assert not writer.is_at_work
