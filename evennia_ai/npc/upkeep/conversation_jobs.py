"""A job about a conversation: named by what it is made from, one at a time for each NPC."""

from collections.abc import Mapping
from typing import Final

from evennia_ai.npc.jobs.job import Job
from evennia_ai.npc.jobs.kinds.compact import CompactGiven
from evennia_ai.npc.jobs.kinds.forms import digest_of, plain
from evennia_ai.npc.jobs.kinds.observe import ObserveGiven

LAPSES_SECONDS: Final = 3600.0
"""So late no worker begins such a job any more: the game has long done without."""


def job_about(
    given: CompactGiven | ObserveGiven, *, kind: str, npc_limits: Mapping[str, int], now: float
) -> Job:
    """The job of this kind that is given this; `now` in epoch seconds."""
    head = given.head
    return Job(
        kind=kind,
        idempotency=f"{kind}:{head.conversation}:{head.place}:{digest_of(given)}",
        lock=f"npc:{given.npc_ref}",
        queueing_lock=f"{kind}:{head.conversation}",
        given=plain(given),
        limits=dict(npc_limits),
        deadline=now + LAPSES_SECONDS,
    )
