"""Proposals: results that workers offer. Each is applied exactly once.

All functions run in the writer's thread. One transaction locks, checks, applies and marks a
proposal. If the game dies at any point, the proposal is applied after its next start, and never
twice.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction

from evennia_ai.engine.errors import StaleError
from evennia_ai.models.work import APPLIED, FAILED, LAPSED, OFFERED, POISONED, STALE
from evennia_ai.npc.background.applying import Ending, GameKind
from evennia_ai.npc.jobs.job import Job
from evennia_ai.npc.jobs.wire import JobError, job_of
from evennia_ai.store import model_calls
from evennia_ai.store.model_calls import NewCall
from evennia_ai.store.work import proposals
from evennia_ai.store.work.proposals import Offer

ENDINGS: Final[Mapping[str, Ending]] = {
    APPLIED: "applied",
    STALE: "stale",
    FAILED: "failed",
    LAPSED: "lapsed",
    POISONED: "poisoned",
}
"""How the job of a handled proposal ended, by the proposal's state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handled:
    """How the game handled one proposal: its job, and how the job ended."""

    name: str
    job: Job | None
    """The job of the proposal, None if it cannot be read."""
    ending: Ending
    reason: str
    calls: tuple[NewCall, ...] = ()
    worker: str = ""


def read_offer(number: int) -> tuple[Job, Mapping[str, Any]] | None:
    """Return the job and the body of a proposal, None if there is nothing to apply."""
    offer = proposals.proposal_or_none(number)
    if offer is None or offer.state != OFFERED:
        return None
    try:
        return job_of(offer.job), json.loads(offer.body)
    except JobError:
        return None  # `apply_proposal` reports the error


def apply_proposal(
    number: int, kinds: Mapping[str, GameKind], prepared: Mapping[str, Any] | None = None
) -> Handled | None:
    """Apply a proposal in the current transaction. Return None if it was handled before.

    Args:
        prepared: The result of `GameKind.prepares` for the body of the proposal; None to apply the
            body unchanged.
    """
    offer = proposals.lock_proposal(number)
    if offer is None:
        return None
    for call in offer.calls:
        model_calls.add_call(call)
    job: Job | None = None
    state, reason = offer.state, offer.reason
    try:
        job = job_of(offer.job)
        if state == OFFERED:
            state, reason = _apply_offer(offer, job, kinds, prepared)
    except JobError as error:
        state, reason = FAILED, str(error)
    proposals.mark_handled(number, state, reason=reason)
    return Handled(
        name=offer.idempotency,
        job=job,
        ending=ENDINGS[state],
        reason=reason,
        calls=offer.calls,
        worker=offer.worker,
    )


def set_aside(number: int, reason: str) -> Handled | None:
    """Mark a proposal that cannot be applied as poisoned, so that a person looks at it."""
    offer = proposals.lock_proposal(number)
    if offer is None:
        return None
    proposals.mark_handled(number, POISONED, reason=reason)
    return Handled(name=offer.idempotency, job=job_of(offer.job), ending="poisoned", reason=reason)


def _apply_offer(
    offer: Offer,
    job: Job,
    kinds: Mapping[str, GameKind],
    prepared: Mapping[str, Any] | None,
) -> tuple[str, str]:
    kind = kinds.get(job.kind)
    if kind is None:
        return FAILED, f"this game has no kind of work {job.kind!r}"
    try:
        with transaction.atomic():  # roll back what a stale job has written
            kind.applies.apply(job, json.loads(offer.body) if prepared is None else prepared)
    except StaleError as error:
        return STALE, str(error)
    return APPLIED, ""
