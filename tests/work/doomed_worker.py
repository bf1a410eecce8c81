"""A worker with the kinds of these tests, which may die, or be of another version.

Arguments: a worker's file, its name, and JSON: {"version": ..., "die_at": "offered", "mark": ...}.
"""

import asyncio
import json
import logging
import sys
from pathlib import Path

from tests.work.ledger import LEDGER, die_once


def main(file, name, given):
    from evennia_ai.work.worker import configured

    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    configured.configure(configured.read_file(Path(file).read_text(), where=file))
    from evennia_ai.store.work import proposals
    from evennia_ai.work import job, wire
    from evennia_ai.work.worker import living

    if "version" in given:
        job.VERSION = wire.VERSION = living.VERSION = given["version"]
    if given.get("any_queue"):
        living.VERSION = 1
    offer = proposals.offer

    def doomed(new):
        done = offer(new)
        if given.get("die_at") == "offered":
            die_once(given["mark"])
        return done

    proposals.offer = doomed
    options = living.WorkerOptions(
        name=name, at_once=given.get("at_once", 4), ends_when_idle=given.get("until_idle", False)
    )
    asyncio.run(living.live({"ledger": LEDGER}, options))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]) if len(sys.argv) > 3 else {})
