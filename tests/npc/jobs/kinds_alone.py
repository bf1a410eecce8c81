"""A program that does jobs like a worker, without Evennia, on a copy of the database.

Usage: python -m tests.npc.jobs.kinds_alone DATABASE JOBS. The file JOBS has one job as JSON per
line. The program prints the body of each job as a line of JSON. It fails if Evennia or Twisted's
reactor was imported.
"""

import asyncio
import json
import sys
from pathlib import Path


def main(database: str, jobs: str) -> None:
    import django
    from django.conf import settings

    from evennia_ai.services.settings.database import SQLITE

    settings.configure(
        INSTALLED_APPS=["evennia_ai"],
        DATABASES={"default": {"ENGINE": SQLITE, "NAME": database, "CONN_MAX_AGE": None}},
        USE_TZ=True,
        EVENNIA_AI_CONTEXT_TOKENS=1400,  # the same value as in the test's game
        EVENNIA_AI_REPLY_TOKENS=200,
    )
    django.setup()
    for line in asyncio.run(done(Path(jobs).read_text().splitlines())):
        print(line)
    known = {"evennia", "twisted.internet.reactor", "evennia_ai.npc.runtime"} & set(sys.modules)
    assert not known, known


async def done(lines: list[str]) -> list[str]:
    """Do these jobs one after the other and return their bodies."""
    from twisted.internet.defer import Deferred

    from evennia_ai.npc.jobs.registry import kinds_of
    from evennia_ai.npc.jobs.wire import job_of
    from evennia_ai.npc.jobs.worker.loop_clock import LoopClock
    from evennia_ai.npc.jobs.worker.tools import Threads, WorkerTools
    from evennia_ai.services.endpoints import Access, Models
    from evennia_ai.services.llm.quotas import Quota, Quotas
    from evennia_ai.services.settings.conf import conf
    from tests.npc.jobs.thinking import Thinking

    loop = asyncio.get_running_loop()
    models = Models(conf(), clock=LoopClock(loop), only=Access(model=Thinking()))
    kinds, threads, found = kinds_of(), Threads(1), []
    endless = Quotas(npc=Quota(), game=Quota())
    for job in map(job_of, lines):
        tools = WorkerTools(models, threads, endless)
        body = await Deferred.fromCoroutine(kinds[job.kind].run(job, tools)).asFuture(loop)
        found.append(json.dumps(body, separators=(",", ":")))
    threads.close()
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
