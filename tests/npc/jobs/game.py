"""A process for these tests that submits jobs like a game, without a world.

It gets {"address": ..., "settings": {...}}, the jobs to submit (fields of `Job`), and the most
`seconds` to run. It may also get a point at which to kill itself: {"die_at": "before commit" or
"after commit", "after": a number of applied jobs}, or the options of `points`. It prints a line of
JSON for each job that ended, in order, and "ready" once all jobs are in the queue.
"""

import json
import os
import signal
import sys

from tests.forking import use_database
from tests.npc.jobs import points


def prepare():
    import django

    django.setup()
    import evennia

    evennia._init()
    from django.db import connections

    from evennia_ai.npc import runtime  # noqa: F401
    from evennia_ai.store.work import queue  # noqa: F401
    from tests.npc.jobs import ledger  # noqa: F401

    connections.close_all()


def live(given):
    from django.conf import settings
    from twisted.internet import reactor
    from twisted.python import log

    reactor.__init__()  # otherwise it would share its wake-up sockets with earlier forks
    log.startLogging(sys.stderr, setStdout=False)
    from evennia_ai.npc.background import queued
    from evennia_ai.npc.background.applying import GameKind
    from evennia_ai.npc.background.work import Work
    from evennia_ai.npc.jobs.job import Job
    from evennia_ai.npc.recording import writer
    from evennia_ai.npc.runtime import runtime_of
    from evennia_ai.services.settings.conf import conf
    from tests.npc.jobs.ledger import LEDGER

    use_database(given["address"])
    for name, value in given["settings"].items():
        setattr(settings, name, value)
    conf.cache_clear()
    lives = runtime_of(conf(), clock=reactor)
    work = Work(
        conf().workers,
        lives.calls,
        in_thread=lambda do, *values: _in_thread(reactor, do, values),
        game_id=lambda: "0" * 32,
    )
    work.add(GameKind(does=LEDGER, applies=LEDGER))
    die_at(given.get("die_at", ""), given.get("after", 1))
    if {"dies_at", "cut_at"} & given.keys():
        points.of_games(writer, queued)
        points.end_at(given)
    jobs = [Job(kind="ledger", **fields) for fields in given.get("jobs", [])]
    left = {job.idempotency for job in jobs}
    at_least = given.get("lives_seconds", 0)

    def ended(how, job):
        ending, reason = how
        print(json.dumps({"name": job.idempotency, "ending": ending, "reason": reason}), flush=True)
        left.discard(job.idempotency)
        if not left and not at_least:
            reactor.callLater(0, reactor.stop)

    def begin():
        lives.writer.begin()
        work.begin()
        for job in jobs:
            work.submit(job).addCallback(ended, job)
        lives.writer.read(lambda: print("ready", flush=True))

    reactor.callWhenRunning(begin)
    reactor.callLater(at_least or given.get("seconds", 60), reactor.stop)
    reactor.run()
    status = work.status
    print(
        json.dumps(
            {
                "left": sorted(left),
                "workers": [one.name for one in status.workers] if status else [],
                "over": dict(status.over) if status else {},
            }
        ),
        flush=True,
    )
    lives.writer.end()
    work.close()


def die_at(point, after):
    """Kill this process when it applies a result for the `after`-th time, at this point."""
    from django.db import transaction

    from evennia_ai.store.work import proposals

    if not point:
        return
    handled, times = proposals.mark_handled, []

    def die():
        os.kill(os.getpid(), signal.SIGKILL)

    def doomed(number, state, **said):
        handled(number, state, **said)
        times.append(number)
        if len(times) >= after:
            if point == "before commit":
                die()
            transaction.on_commit(die)

    proposals.mark_handled = doomed


def _in_thread(reactor, do, values):
    from twisted.internet.threads import deferToThreadPool

    return deferToThreadPool(reactor, reactor.getThreadPool(), do, *values)
