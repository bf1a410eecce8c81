"""The steps of a turn as seen from outside, and the trouble that comes at one of them.

A step is a row that is written, a commit, a question to the model, a line that a player reads. All
are told before the trouble, so whoever reads along knows what was reached. Nothing of the game is
made for this: Django's connection, the model and the players' screens are watched.
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
"""The last step of a life that dies at its end."""

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
    """Counts the steps from 1, and makes trouble at number `at`, or each time it is called so.

    The reactor's thread and the writer's may reach one at the same time: each has its number.
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
    """What can happen to the process, by name; what it did not die of is over with `heal`."""

    def __init__(self, tell: Tell, wait: Callable[[], object], *, database: str) -> None:
        self._tell = tell
        self._wait = wait
        self._database = database
        self._lock: sqlite3.Connection | None = None
        self.is_paused = False

    def kill(self) -> None:
        """`kill -9`: no handler runs, nothing is flushed."""
        os.kill(os.getpid(), signal.SIGKILL)

    def fill(self) -> None:
        """No file may be written any more, as on a disk that is full."""
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, most))

    def lock(self) -> None:
        """Another connection begins to write, and goes on; where ours has begun to, it cannot."""
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
        """PostgreSQL ends all connections to the game's database, as when it is started again."""
        with psycopg.connect(self._database, autocommit=True) as other:
            other.execute(_END_OTHERS)

    def pause(self) -> None:
        """Wait until the reader says to go on, and let all the world wait."""
        self.is_paused = True
        self._tell(paused=True)
        self._wait()
        self.is_paused = False

    def nothing(self) -> None:
        """Go on."""

    def heal(self) -> None:
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def watch(connection: Any, steps: Steps, tell: Tell, *, database: str) -> None:
    """Make steps of what a Django connection writes, and tell which records are committed.

    Of this one, and of each that is opened from now on, by whatever thread.
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
    """Id, hash, role and body of the records that everybody can read."""
    sql = "SELECT id, sha256, role, body FROM evennia_ai_record WHERE id > ? ORDER BY id"
    return [list(row) for row in _rows(database, sql, after)]


def committed_open_turns(database: str) -> int:
    """How many turns everybody can see as begun and not ended."""
    sql = "SELECT count(*) FROM evennia_ai_turn WHERE state = 'open'"
    return int(_rows(database, sql)[0][0])


def committed_unanswered(database: str) -> int:
    """How much everybody can see that somebody said, and about which nothing was said or done."""
    return int(_rows(database, _UNANSWERED)[0][0])


def committed_state(database: str) -> str:
    """All that a next life finds: the rows, but for what is another in each process.

    That are hashes, times, and the number of the process in what the NPC says.
    """
    with closing(sqlite3.connect(database, timeout=5)) as reader:
        rows = (line for line in reader.iterdump() if line.startswith("INSERT INTO"))
        return _OF_ONE_PROCESS.sub("", "\n".join(rows))


def is_address(database: object) -> bool:
    """Whether it is a database of PostgreSQL's, and no file."""
    return str(database).startswith("postgres://")


def _rows(database: str, sql: str, *values: object) -> list[Any]:
    """What another connection finds, of whatever database."""
    if is_address(database):
        with psycopg.connect(str(database)) as connection:
            return connection.execute(sql.replace("?", "%s"), values).fetchall()
    with closing(sqlite3.connect(database, timeout=5)) as reader:
        return reader.execute(sql, values).fetchall()
