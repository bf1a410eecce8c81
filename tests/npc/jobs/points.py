"""Points between SQL statements at which a test kills a process or cuts its connection.

Only statements for jobs and their results are counted, and commits count as statements: point 0
is before the first statement, 1 after it, 2 before the second, and so on. Heartbeats, looks for
proposals and the first statements of a connection are not counted, because their number depends
on the speed of the machine. The process prints the point that it reached.
"""

import json
import os
import re
import signal
from contextvars import ContextVar, copy_context

import psycopg

FOR_WORK = ContextVar("FOR_WORK", default="")
"""The purpose of the statements of this task or thread; "" if they are not counted."""

OF_CONNECTIONS = ("", "SELECT 1", "SELECT set_config('TimeZone', %s, false)")
"""Statements that prepare a connection or test whether it is alive."""


def end_at(given):
    """Kill this process at a point, {"dies_at": 4}, or cut its connection there, {"cut_at": 4}.

    A point is a number, or the start of its description: "job: behind COMMIT" is the point after
    the first commit of a job. Numbers vary, because a worker makes more queries in a new minute.
    """
    if "dies_at" in given:
        _count(given["dies_at"], _die)
    elif "cut_at" in given:
        _count(given["cut_at"], _cut)


def _die(_):
    os.kill(os.getpid(), signal.SIGKILL)


def _cut(connection):
    """Close this connection from the server, as if the network failed."""
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
    """Counts the points of a process. At the wanted point it ends the process or its connection."""

    def __init__(self, point, end):
        self._point, self._end, self._at, self._has_ended = point, end, 0, False

    def each(self, do, what, *, is_async):
        """Return `do` with a point before and after it.

        `what` returns the connection and the SQL text from the arguments of `do`.
        """

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
        # The names of savepoints are random.
        shown = re.sub(r'"s\d+_x\d+"', "", " ".join(text.split()))
        told = f"{work}: {side} {shown}"
        named = isinstance(self._point, str)
        if told.startswith(self._point) and not self._has_ended if named else at == self._point:
            self._has_ended = True
            print(json.dumps({"point": told}), flush=True)
            self._end(connection)


def of_workers(living):
    """Count a worker's statements from the beginning of a job to the end of its task."""
    do, run = living.Doer.do, living.Threads.run

    async def begun(*given, **named):
        FOR_WORK.set("job")
        return await do(*given, **named)

    async def in_thread(threads, work, *values):
        return await run(threads, copy_context().run, work, *values)

    living.Doer.do, living.Threads.run = begun, in_thread


GAME_WORK = {"_put_in": "submitting", "read_offer": "taking up", "apply_proposal": "applying"}
"""The purpose of the functions that the game's writer runs for jobs, by function name."""


def of_games(writer, queued):
    """Count the statements that a game's writer makes for jobs.

    The writer is limited to one job per transaction, and each look to the oldest proposal. Without
    these limits the numbers would depend on the speed of the machine.
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
