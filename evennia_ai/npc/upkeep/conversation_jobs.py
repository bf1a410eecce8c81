"""Background jobs about a conversation. For each NPC, only one of them runs at a time."""

from collections.abc import Mapping
from typing import Final

from evennia_ai.npc.jobs.job import Job
from evennia_ai.npc.jobs.kinds.compact import CompactGiven
from evennia_ai.npc.jobs.kinds.forms import digest_of, form_to_json
from evennia_ai.npc.jobs.kinds.observe import ObserveGiven

LAPSES_SECONDS: Final = 3600.0
"""No worker starts a job that is older than this, because the game no longer needs its result."""


def job_about(
    given: CompactGiven | ObserveGiven, *, kind: str, npc_limits: Mapping[str, float], now: float
) -> Job:
    """Return a job with this input.

    Args:
        given: The input of the job.
        now: The time in epoch seconds.
    """
    head = given.head
    return Job(
        kind=kind,
        idempotency=f"{kind}:{head.conversation}:{head.place}:{digest_of(given)}",
        lock=f"npc:{given.npc_ref}",
        queueing_lock=f"{kind}:{head.conversation}",
        given=form_to_json(given),
        limits=dict(npc_limits),
        deadline=now + LAPSES_SECONDS,
    )
