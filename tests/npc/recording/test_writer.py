"""The writer: jobs are committed in a thread, in order, some together, none because of another."""

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
    """What the writer needs of a reactor."""

    def hear_all(self, writer: Writer) -> None:
        """Until everybody was told."""
        while writer.is_at_work:
            assert self.hear(at_most_seconds=20)


@pytest.fixture(autouse=True)
def _database(tmp_path: Path) -> Iterator[None]:
    """A database of which two threads can have connections, with the rows that are counted."""
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
    """The threads that committed something, in order."""
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


def raised(name: str) -> int:
    """Count one more of this name, in a transaction as the store has them."""
    with one_transaction(f"counting {name}"):
        row, _ = StateRevision.objects.get_or_create(name=name, defaults={"number": 0})
        StateRevision.objects.filter(pk=row.pk).update(number=row.number + 1)
    return row.number + 1


def counted() -> dict[str, int]:
    rows = StateRevision.objects.filter(name__in=NAMES)
    return dict(rows.values_list("name", "number"))


class Held:
    """A job that holds the writer up until what is to be written with it was given."""

    def __init__(self, writer: Writer) -> None:
        self._gate = Event()
        writer.write(self._wait)

    def _wait(self) -> None:
        assert self._gate.wait(20)

    def open(self) -> None:
        self._gate.set()


def outcomes(given: list[Any]) -> list[object]:
    """What came of each job; what it failed with is handled by that."""
    told: list[object] = []
    for one in given:
        one.addBoth(lambda outcome: told.append(getattr(outcome, "value", outcome)))
    return told


def test_jobs_are_done_in_another_thread_and_told_of_in_this_one(writer, reactor):
    threads: list[int] = []
    done = writer.write(lambda: threads.append(get_ident()))
    done.addCallback(lambda _: threads.append(get_ident()))
    reactor.hear_all(writer)
    assert threads[1] == get_ident() != threads[0]


def test_what_waits_is_written_in_order_and_in_one_transaction(
    writer, reactor, commits, monkeypatch
):
    monkeypatch.setattr(module, "TOGETHER_SECONDS", 60.0)
    held = Held(writer)
    told = outcomes([writer.write(partial(raised, "a")) for _ in range(5)])
    held.open()
    reactor.hear_all(writer)
    assert told == [1, 2, 3, 4, 5]
    assert len(commits) == 1
    assert counted() == {"a": 5}


@pytest.mark.req("S2-27")
def test_what_reads_is_done_in_its_place_between_two_transactions(
    writer, reactor, commits, monkeypatch
):
    def fails() -> None:
        raise StoreError("no")

    def read() -> tuple[bool, dict[str, int]]:
        return connection.in_atomic_block, counted()

    monkeypatch.setattr(module, "TOGETHER_SECONDS", 60.0)
    held, count = Held(writer), partial(raised, "a")
    given = [writer.write(count), writer.read(read), writer.read(fails), writer.write(count)]
    told = outcomes(given)
    held.open()
    reactor.hear_all(writer)
    first, seen, refused, last = told
    assert (first, seen, last) == (1, (False, {"a": 1}), 2)
    assert str(refused) == "no"
    assert len(commits) == 2


def test_more_than_belong_together_are_several_transactions(writer, reactor, commits, monkeypatch):
    monkeypatch.setattr(module, "MOST_TOGETHER", 3)
    monkeypatch.setattr(module, "TOGETHER_SECONDS", 60.0)
    held = Held(writer)
    told = outcomes([writer.write(partial(raised, "a")) for _ in range(5)])
    held.open()
    reactor.hear_all(writer)
    assert told == [1, 2, 3, 4, 5]
    assert len(commits) == 2


def test_a_job_that_fails_takes_back_its_own_rows_and_no_others(writer, reactor):
    def fails() -> None:
        raised("b")
        raise StoreError("no")

    held = Held(writer)
    told = outcomes(
        [writer.write(job) for job in (partial(raised, "a"), fails, partial(raised, "a"))]
    )
    held.open()
    reactor.hear_all(writer)
    assert [str(one) for one in told] == ["1", "no", "2"]
    assert counted() == {"a": 2}


def test_a_job_that_fails_by_itself_is_tried_once(writer, reactor, monkeypatch):
    tries: list[str] = []

    def fails() -> None:
        tries.append("tried")
        raised("b")
        raise StoreError("no")

    monkeypatch.setattr(module, "TOGETHER_SECONDS", 60.0)
    held = Held(writer)
    told = outcomes([writer.write(job) for job in (partial(raised, "a"), fails)])
    held.open()
    reactor.hear_all(writer)
    assert [str(one) for one in told] == ["1", "no"]
    assert (tries, counted()) == (["tried"], {"a": 1})


def test_a_job_that_goes_on_after_a_refusal_is_done_again_alone(writer, reactor, monkeypatch):
    def goes_on() -> int:
        try:
            with one_transaction("counting b"):
                raised("b")
                raise StoreError("no")
        except StoreError:
            return raised("a")

    monkeypatch.setattr(module, "TOGETHER_SECONDS", 60.0)
    held = Held(writer)
    told = outcomes([writer.write(job) for job in (partial(raised, "a"), goes_on)])
    held.open()
    reactor.hear_all(writer)
    assert told == [1, 2]
    assert counted() == {"a": 2}


def test_jobs_that_are_written_together_set_no_savepoints(writer, reactor, monkeypatch):
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
def test_where_the_transaction_breaks_each_is_written_once_alone(
    writer, reactor, commits, monkeypatch
):
    tries = iter(range(2))

    def breaks() -> str:
        if next(tries) == 0:
            connection.connection.execute("ROLLBACK")  # as SQLite does itself on a full disk
            raise OperationalError("database or disk is full")
        return "written"

    monkeypatch.setattr(module, "TOGETHER_SECONDS", 60.0)
    held = Held(writer)
    told = outcomes(
        [writer.write(job) for job in (partial(raised, "a"), breaks, partial(raised, "a"))]
    )
    held.open()
    reactor.hear_all(writer)
    assert told == [1, "written", 2]
    assert counted() == {"a": 2}
    assert len(commits) > 1


def test_a_lock_of_another_process_is_waited_for(writer, reactor, logged, monkeypatch):
    monkeypatch.setattr(module, "LOCKED_SECONDS", 0.0)
    tries = iter(range(4))

    def locked() -> int:
        if next(tries) < 3:
            busy = sqlite3.OperationalError("database is locked")
            busy.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise StoreError("not written") from busy
        return raised("a")

    told = outcomes([writer.write(locked), writer.write(partial(raised, "a"))])
    reactor.hear_all(writer)
    assert told == [1, 2]
    assert [line.partition(": ")[2] for line in logged] == [
        "another process has locked the database; we wait",
        "the database is not locked any more",
    ]


@contextmanager
def locked_by_another() -> Iterator[None]:
    """The rows that are counted, which another connection alone may read or write meanwhile."""
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
def test_log_names_a_real_lock_at_both_ends_and_each_job_is_done_once_when_it_is_gone(
    is_together, writer, reactor, logged
):
    writer.write(partial(raised, "a"))
    reactor.hear_all(writer)
    held = Held(writer) if is_together else None
    with locked_by_another():
        told = outcomes(
            [
                writer.write(partial(raised, "a")),
                writer.write(partial(raised, "b")),
                writer.read(counted),
                writer.write(partial(raised, "a")),
            ]
        )
        if held is not None:
            held.open()
        for _ in range(200):
            if logged:
                break
            time.sleep(0.1)
        assert logged == ["evennia_ai: another process has locked the database; we wait"]
        assert told == []
    reactor.hear_all(writer)
    assert told == [2, 1, {"a": 2, "b": 1}, 3]
    assert counted() == {"a": 3, "b": 1}
    assert logged[1:] == ["evennia_ai: the database is not locked any more"]


def test_what_is_written_in_the_thread_is_seen_by_the_games_own(writer, reactor):
    writer.write(partial(raised, "a"))
    reactor.hear_all(writer)
    assert counted() == {"a": 1}


def test_the_end_commits_what_waits_and_what_comes_of_it(writer):
    told: list[object] = []
    writer.write(partial(raised, "a")).addCallback(
        lambda _: writer.write(partial(raised, "b")).addCallback(told.append)
    )
    writer.end()
    assert told == [1]
    assert counted() == {"a": 1, "b": 1}


def test_after_the_end_jobs_are_done_where_they_are_given(writer):
    writer.end()
    threads: list[int] = []
    writer.write(lambda: threads.append(get_ident()))
    assert threads == [get_ident()]


def test_the_end_gives_up_what_a_lock_keeps_from_being_written(writer, monkeypatch):
    monkeypatch.setattr(module, "STOPPING_SECONDS", 0.3)

    def locked() -> None:
        busy = sqlite3.OperationalError("database is locked")
        busy.sqlite_errorcode = sqlite3.SQLITE_BUSY
        raise busy

    told = outcomes([writer.write(locked)])
    writer.end()
    assert isinstance(told[0], StoreError | OperationalError | sqlite3.OperationalError)


def test_without_a_reactor_there_is_no_thread():
    writer = Writer(Clock())
    writer.begin()
    threads: list[int] = []
    writer.write(lambda: threads.append(get_ident()))
    assert threads == [get_ident()]
    assert not writer.is_at_work
