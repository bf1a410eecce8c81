"""Workers that die one after the other, each at a later statement than the one before it.

    python -m tests.work.dying_workers FILE DEATHS

What all of them would import is imported once, then each is forked. One counts what is asked of the
database for its jobs, by itself and by the queue: the first dies before the first statement, the
second behind it, the third before the second, and so on. Its signs of life and its looks for
stalled jobs are not counted: how many there are hangs on how fast the machine is. Printed is a line
for each, the statement it died at.
"""

import asyncio
import logging
import os
import signal
import sys
from contextvars import ContextVar, copy_context
from pathlib import Path

import psycopg

from tests.work.ledger import LEDGER

IS_FOR_A_JOB = ContextVar("IS_FOR_A_JOB", default=False)
"""Set from a job's beginning to the end of the task it is done in, and in threads it asks."""


def main(file, deaths):
    from evennia_ai.work.worker import configured

    configured.configure(configured.read_file(Path(file).read_text(), where=file))
    from django.db import connections

    from evennia_ai.work.worker import living

    logging.basicConfig(level=logging.ERROR, stream=sys.stderr)
    connections.close_all()
    for number in range(deaths):
        pid = os.fork()
        if pid == 0:
            doomed(living, step=number)
        _, status = os.waitpid(pid, 0)
        assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, status


def doomed(living, *, step):
    """Be a worker that dies at this step; it does not return."""
    counted = Counted(step)
    living.Doer.do = for_a_job(living.Doer.do)
    living.Threads.run = with_context(living.Threads.run)
    for cursor in (psycopg.Cursor, psycopg.AsyncCursor):
        cursor.execute = counted.each(cursor.execute, is_async=cursor is psycopg.AsyncCursor)
    options = living.WorkerOptions(name=f"dies at {step}", at_once=1)
    try:
        asyncio.run(living.live({"ledger": LEDGER}, options))
    finally:
        os._exit(1)  # it should have died


def for_a_job(do):
    async def begun(*args, **kwargs):
        IS_FOR_A_JOB.set(True)
        return await do(*args, **kwargs)

    return begun


def with_context(run):
    async def in_thread(threads, work, *values):
        return await run(threads, copy_context().run, work, *values)

    return in_thread


class Counted:
    """The statements that a worker makes for its jobs."""

    def __init__(self, step):
        self.step = step
        self.at = 0

    def each(self, execute, *, is_async):
        def one(cursor, query, *args, **kwargs):
            self._passed(query)
            done = execute(cursor, query, *args, **kwargs)
            self._passed(query)
            return done

        async def one_async(cursor, query, *args, **kwargs):
            self._passed(query)
            done = await execute(cursor, query, *args, **kwargs)
            self._passed(query)
            return done

        return one_async if is_async else one

    def _passed(self, query):
        if not IS_FOR_A_JOB.get():
            return
        if self.at == self.step:
            text = query.decode() if isinstance(query, bytes) else str(query)
            print(" ".join(text.split()), flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        self.at += 1


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
