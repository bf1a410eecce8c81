"""Report the steps of a turn, and cause a trouble at one of them.

A step is a written row, a commit, a request to the model, or a line that a player reads. Each step
is reported before the trouble, so the test knows which step was reached. The steps are observed
from outside, at Django's connection, the model and the players' screens.
"""

import os
import re
import resource
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from threading import Lock
from typing import Any, Final

import psycopg
from django.db.backends.signals import connection_created

Tell = Callable[..., None]

THE_END: Final = "the end of the scene"
"""The name of the step after the last act, at which a process kills itself."""

_UNANSWERED: Final = """
SELECT count(*) FROM evennia_ai_record AS said WHERE said.kind = 'user' AND NOT EXISTS (
    SELECT 1 FROM evennia_ai_turn AS turn WHERE turn.event_record_id = said.id AND (
        turn.state NOT IN ('open', 'interrupted') OR EXISTS (
            SELECT 1 FROM evennia_ai_record AS act
            WHERE act.conversation_id = turn.conversation_id AND act.created_at >= turn.created_at
            AND act.created_at <= coalesce(turn.ended_at, act.created_at)
            AND act.kind IN ('assistant', 'fallback', 'spoken', 'tool_call')
        )
    )
)
"""

_OF_ONE_PROCESS: Final = re.compile(
    r"[0-9a-f]{32,}|\d{4}-\d\d-\d\d[ T][\d:.]+|\d+\.\d+(?:e[+-]\d+)?|(?<=at )\d+(?= past)"
)
_END_OTHERS: Final = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
_WRITES: Final = ("INSERT", "UPDATE", "DELETE")


class Steps:
    """A counter of steps from 1, which causes the trouble at step `at`, a number or a name.

    The reactor's thread and the writer's thread may reach steps at the same time. Each step
    gets its own number.
    """

    def __init__(self, tell: Tell, trouble: Callable[[], None], *, at: int | str) -> None:
        self._tell = tell
        self._trouble = trouble
        self._at = at
        self._number = 0
        self._counting = Lock()

    def reached(self, what: str) -> None:
        with self._counting:
            self._number += 1
            number = self._number
            self._tell(step=number, what=what)
        if self._at in (number, what):
            self._tell(trouble=what)
            self._trouble()


class Troubles:
    """The troubles of a process, by name. `heal` ends those that do not kill it."""

    def __init__(self, tell: Tell, wait: Callable[[], object], *, database: str) -> None:
        self._tell = tell
        self._wait = wait
        self._database = database
        self._lock: sqlite3.Connection | None = None
        self.is_paused = False

    def kill(self) -> None:
        """Kill this process as `kill -9` does: no handler runs, and nothing is flushed."""
        os.kill(os.getpid(), signal.SIGKILL)

    def fill(self) -> None:
        """Make every write to a file fail, as on a full disk."""
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, most))

    def lock(self) -> None:
        """Lock the database from another connection, unless this process is already writing."""
        other = sqlite3.connect(
            self._database, timeout=0, isolation_level=None, check_same_thread=False
        )
        try:
            other.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            other.close()
            self._tell(came_too_late=True)
        else:
            self._lock = other

    def disconnect(self) -> None:
        """End all connections to the PostgreSQL database, as a restart of PostgreSQL does."""
        with psycopg.connect(self._database, autocommit=True) as other:
            other.execute(_END_OTHERS)

    def pause(self) -> None:
        """Pause the world until the test sends a line."""
        self.is_paused = True
        self._tell(paused=True)
        self._wait()
        self.is_paused = False

    def nothing(self) -> None:
        """Cause no trouble."""

    def heal(self) -> None:
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def watch(connection: Any, steps: Steps, tell: Tell, *, database: str) -> None:
    """Report writes and commits of Django's connections as steps, and the committed records.

    This connection is watched, and each connection that any thread opens later.
    """
    newest = [0]

    def executed(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith(_WRITES):
            steps.reached(f"before {' '.join(sql.replace(chr(34), '').split()[:3])}")
        return execute(sql, params, many, context)

    def opened(connection: Any, **_: Any) -> None:
        def committed() -> None:
            steps.reached("before a commit")
            commit()
            stored = committed_records(database, after=newest[0])
            tell(stored=stored)
            newest[0] = max([newest[0], *(record_id for record_id, *_ in stored)])
            steps.reached("after a commit")

        commit, connection._commit = connection._commit, committed
        connection.execute_wrappers.append(executed)

    opened(connection)
    connection_created.connect(opened, weak=False)


def committed_records(database: str, *, after: int = 0) -> list[list[Any]]:
    """Return ID, hash, role and body of the committed records after an ID."""
    sql = "SELECT id, sha256, role, body FROM evennia_ai_record WHERE id > ? ORDER BY id"
    return [list(row) for row in _rows(database, sql, after)]


def committed_open_turns(database: str) -> int:
    """Return how many committed turns are still open."""
    sql = "SELECT count(*) FROM evennia_ai_turn WHERE state = 'open'"
    return int(_rows(database, sql)[0][0])


def committed_unanswered(database: str) -> int:
    """Return how many lines of players no turn has answered or acted on."""
    return int(_rows(database, _UNANSWERED)[0][0])


def committed_state(database: str) -> str:
    """Return all rows of the database as SQL, without what differs in each process.

    Hashes, times, and the process number in the NPC's replies are left out.
    """
    with closing(sqlite3.connect(database, timeout=5)) as reader:
        rows = (line for line in reader.iterdump() if line.startswith("INSERT INTO"))
        return _OF_ONE_PROCESS.sub("", "\n".join(rows))


def is_address(database: object) -> bool:
    """True for the address of a PostgreSQL database, False for a file."""
    return str(database).startswith("postgres://")


def _rows(database: str, sql: str, *values: object) -> list[Any]:
    """Return the rows of a query over a new connection to either kind of database."""
    if is_address(database):
        with psycopg.connect(str(database)) as connection:
            return connection.execute(sql.replace("?", "%s"), values).fetchall()
    with closing(sqlite3.connect(database, timeout=5)) as reader:
        return reader.execute(sql, values).fetchall()
