"""A worker process with the kinds of these tests, which may die or have another version.

It gets {"address": ..., "settings": {...}, "name": ...}, and options for special behaviour:
"version", "any_queue", "at_once", "until_idle", "loses_cancellation", "die_at" (only "offered"),
"mark", and the options of `points`.
"""

import asyncio
import contextlib
import logging
import os
import sys
from pathlib import Path

from tests.forking import use_database
from tests.npc.jobs import points
from tests.npc.jobs.ledger import LEDGER, die_once

FILE = "EVENNIA_AI_TEST_WORKER_FILE"
"""The environment variable with the path of the worker's file."""


def prepare():
    from evennia_ai.npc.jobs.worker import configured

    file = Path(os.environ[FILE])
    configured.configure_django(configured.read_file(file.read_text(), where=str(file)))
    from evennia_ai.npc.jobs.worker import living  # noqa: F401


def live(given):
    from django.conf import settings

    from evennia_ai.npc.jobs import job, wire
    from evennia_ai.npc.jobs.worker import living
    from evennia_ai.services.settings.conf import conf
    from evennia_ai.store.work import proposals

    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    use_database(given["address"])
    for name, value in given["settings"].items():
        setattr(settings, name, value)
    conf.cache_clear()
    if "version" in given:
        job.VERSION = wire.VERSION = living.VERSION = given["version"]
    if given.get("any_queue"):
        living.VERSION = 1
    offer = proposals.store_offer

    def doomed(new, **more):
        done = offer(new, **more)
        if given.get("die_at") == "offered":
            die_once(given["mark"])
        return done

    async def losing(_life):
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    if given.get("loses_cancellation"):
        living._Life._tell_of_other_versions = losing
    proposals.store_offer = doomed
    points.of_workers(living)
    points.end_at(given)
    options = living.WorkerOptions(
        name=given["name"],
        at_once=given.get("at_once", 4),
        ends_when_idle=given.get("until_idle", False),
    )
    asyncio.run(living.run_worker({"ledger": LEDGER}, options))
