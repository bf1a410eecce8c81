"""Points of a process's work at which it dies, or its connection does.

One counts what is asked of the database for jobs and for what comes of them: point 0 is before the
first statement, 1 behind it, 2 before the second, and so on; a commit is a statement too. What is
asked because time passes, signs of life and looks for what was offered, is not counted, nor is what
a connection begins with: how much of it there is hangs on how fast the machine is. The process
prints the point that it came to.
"""

import json
import os
import re
import signal
from contextvars import ContextVar, copy_context

import psycopg

FOR_WORK = ContextVar("FOR_WORK", default="")
"""What the statements of this task or thread are for; "": nothing that is counted."""

OF_CONNECTIONS = ("", "SELECT 1", "SELECT set_config('TimeZone', %s, false)")
"""What makes a connection ready, or asks whether it is still there."""


def end_at(given):
    """Have this process do what it is given: {"dies_at": 4}, or {"cut_at": 4}, or neither.

    A point is a number, or the beginning of what is told of it: "job: behind COMMIT" is the first
    commit of a job. Numbers move: a worker asks more in a new minute than in an old one.
    """
    if "dies_at" in given:
        _count(given["dies_at"], _die)
    elif "cut_at" in given:
        _count(given["cut_at"], _cut)


def _die(_):
    os.kill(os.getpid(), signal.SIGKILL)


def _cut(connection):
    """End this connection at the server's side, as a lost cable does."""
    info = connection.info
    where = {"host": info.host, "port": info.port, "dbname": info.dbname, "user": info.user}
    with psycopg.connect(**where) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [info.backend_pid])


def _count(point, end):
    passed = _Passed(point, end)
    for cursor in (psycopg.Cursor, psycopg.AsyncCursor):
        is_async = cursor is psycopg.AsyncCursor
        cursor.execute = passed.each(cursor.execute, _of_statement, is_async=is_async)
    psycopg.Connection.commit = passed.each(psycopg.Connection.commit, _of_commit, is_async=False)


def _of_statement(cursor, query, *_, **__):
    return cursor.connection, query.decode() if isinstance(query, bytes) else str(query)


def _of_commit(connection):
    return connection, "COMMIT"


class _Passed:
    """The points that were passed."""

    def __init__(self, point, end):
        self._point, self._end, self._at, self._has_ended = point, end, 0, False

    def each(self, do, what, *, is_async):
        """`do` between two points; `what` makes of what it is given a connection and a text."""

        def one(*given, **named):
            connection, text = what(*given, **named)
            self._come_to("before", text, connection)
            done = do(*given, **named)
            self._come_to("behind", text, connection)
            return done

        async def one_async(*given, **named):
            connection, text = what(*given, **named)
            self._come_to("before", text, connection)
            done = await do(*given, **named)
            self._come_to("behind", text, connection)
            return done

        return one_async if is_async else one

    def _come_to(self, side, text, connection):
        work = FOR_WORK.get()
        if not work or text in OF_CONNECTIONS:
            return
        at, self._at = self._at, self._at + 1
        shown = re.sub(r'"s\d+_x\d+"', "", " ".join(text.split()))  # names of savepoints
        told = f"{work}: {side} {shown}"
        named = isinstance(self._point, str)
        if told.startswith(self._point) and not self._has_ended if named else at == self._point:
            self._has_ended = True
            print(json.dumps({"point": told}), flush=True)
            self._end(connection)


def of_workers(living):
    """Count what a worker asks from a job's beginning to the end of the task it is done in."""
    do, run = living.Doer.do, living.Threads.run

    async def begun(*given, **named):
        FOR_WORK.set("job")
        return await do(*given, **named)

    async def in_thread(threads, work, *values):
        return await run(threads, copy_context().run, work, *values)

    living.Doer.do, living.Threads.run = begun, in_thread


GAME_WORK = {"_put_in": "submitting", "read_offer": "taking up", "apply_proposal": "applying"}
"""What the writer of a game does for its jobs, by the names of the functions it is given."""


def of_games(writer, queued):
    """Count what a game's writer asks for jobs, one of them in a transaction.

    How many it takes together hangs on time, and how many offers a look finds does too: it takes up
    one, the oldest.
    """
    unhandled = queued.proposals.unhandled_proposals

    def marked(do):
        def doing(job):
            write = getattr(job._write, "func", job._write)
            FOR_WORK.set(GAME_WORK.get(write.__name__, ""))
            return do(job)

        return doing

    for name in ("do", "do_alone"):
        setattr(writer._Job, name, marked(getattr(writer._Job, name)))
    writer.MOST_TOGETHER = 1
    queued.proposals.unhandled_proposals = lambda: unhandled(1)
    queued.LOOK_SECONDS = 0.1
