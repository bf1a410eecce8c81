"""Store proposals, which are the results of workers' jobs.

The name of a job is unique, so it has one result. The game handles each proposal once, in the
transaction that writes its effects.
"""

import json
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final

from django.db import IntegrityError, connection, transaction

from evennia_ai import models
from evennia_ai.engine.errors import StaleError
from evennia_ai.models.work import FAILED, LAPSED, OFFERED, POISONED, STALE
from evennia_ai.store.model_calls import NewCall

MOST_AT_ONCE: Final = 32
ERASED: Final = "erased on request"
"""Replaces the reason why a job failed, because a reason may contain words to erase."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The result of a job that a worker offers.

    If the state is not OFFERED, it has only a `reason`.
    """

    idempotency: str
    kind: str
    job: str
    """The job as JSON."""
    state: str = OFFERED
    head_sha256: str = ""
    body: str = ""
    calls: tuple[NewCall, ...] = ()
    reason: str = ""
    worker: str = ""
    begun_at: float = 0.0
    offered_at: float = 0.0


def store_offer(new: Offer, *, refuse_stale: Callable[[], None] | None = None) -> bool:
    """Store the result of a job in its own transaction.

    If the sources of the job were erased, no word of the result is stored, and the job counts as
    failed. A lock ensures that an erasure happens either before or after.

    Args:
        refuse_stale: Raises StaleError if the sources were erased.

    Returns:
        False if the job has a result already.
    """
    values = asdict(new)
    values["calls"] = json.dumps([asdict(call) for call in new.calls], separators=(",", ":"))
    try:
        with transaction.atomic():
            row = models.Proposal.objects.create(**values)
            if refuse_stale is not None:
                _lock(_conversations_of(new.job))
                try:
                    refuse_stale()
                except StaleError as error:
                    row.state, row.reason, row.body = FAILED, str(error), ""
                    row.save()
    except IntegrityError:
        if models.Proposal.objects.filter(idempotency=new.idempotency).exists():
            return False
        raise
    return True


def offered_before(moment: float, names: Collection[str]) -> frozenset[str]:
    """Return the names of those jobs that already had a result before a time."""
    rows = models.Proposal.objects.filter(idempotency__in=names, offered_at__lt=moment)
    return frozenset(rows.values_list("idempotency", flat=True))


def unhandled_proposals(most: int = MOST_AT_ONCE) -> tuple[int, ...]:
    """Return the numbers of proposals that the game has not handled yet, oldest first."""
    rows = models.Proposal.objects.filter(handled_at=None).order_by("pk")
    return tuple(rows.values_list("pk", flat=True)[:most])


def lock_proposal(number: int) -> Offer | None:
    """Return a proposal and lock it until the end of this transaction.

    Return None if it was handled already.
    """
    return _offer(models.Proposal.objects.select_for_update(), number)


def proposal_or_none(number: int) -> Offer | None:
    """Return a proposal without locking it, or None if it was handled already."""
    return _offer(models.Proposal.objects, number)


def _offer(rows: Any, number: int) -> Offer | None:
    row = rows.filter(pk=number, handled_at=None).first()
    if row is None:
        return None
    names = Offer.__dataclass_fields__
    calls = tuple(NewCall(**call) for call in json.loads(row.calls))
    return Offer(**{name: getattr(row, name) for name in names if name != "calls"}, calls=calls)


def mark_handled(number: int, state: str, *, reason: str = "") -> None:
    """Store how the game handled a proposal, in the transaction of `lock_proposal`.

    The body of the proposal is removed. Its words are now where the game has written them, and can
    be erased there.
    """
    models.Proposal.objects.filter(pk=number).update(
        state=state, reason=reason, body="", calls="[]", handled_at=time.time()
    )


def _conversations_of(job: str) -> tuple[int, ...]:
    """Return the conversation that a job is about, in a list, or an empty list."""
    head = json.loads(job).get("given", {}).get("head")
    return (head["conversation"],) if head else ()


def _lock(conversations: Iterable[int]) -> None:
    """Lock conversations until the end of the transaction, against erasures and new proposals.

    SQLite needs no lock: it has one writer at a time, and a transaction that reads first may be
    refused the write.
    """
    if connection.features.has_select_for_update:
        rows = models.Conversation.objects.filter(pk__in=conversations).order_by("pk")
        list(rows.select_for_update(no_key=True).values_list("pk"))


def erase_proposals(conversations: Iterable[int]) -> None:
    """Erase the words in proposals about these conversations, in the current transaction.

    Unhandled proposals become stale; the game still counts their model calls. If a proposal is just
    being applied, the erasure waits. `store_offer` refuses later results. Jobs contain only numbers
    and hashes, so they need no erasure.
    """
    conversations = tuple(conversations)
    _lock(conversations)
    for number in conversations:
        of_it = models.Proposal.objects.filter(job__contains=f'"head":{{"conversation":{number},')
        of_it.filter(handled_at=None).update(
            state=STALE, body="", reason="the sources of the job were erased"
        )
        of_it.filter(state__in=(POISONED, FAILED)).update(reason=ERASED)


def forget_old_proposals(before: float) -> int:
    """Delete proposals that were handled before a time, and return their number."""
    return int(models.Proposal.objects.filter(handled_at__lt=before).delete()[0])


def state_of_job(idempotency: str) -> str:
    """Return the state of the proposal that a job has made; "" if there is none.

    A failed or lapsed proposal is deleted, so that the job can run again.
    """
    row = models.Proposal.objects.filter(idempotency=idempotency).first()
    if row is None:
        return ""
    if row.handled_at is not None and row.state in (FAILED, LAPSED):
        row.delete()
        return ""
    state: str = row.state
    return state


def poisoned_jobs(most: int = 20) -> tuple[tuple[str, str], ...]:
    """Return the jobs that were set aside after repeated failures, each with the reason."""
    rows = models.Proposal.objects.filter(state=POISONED).order_by("idempotency")
    return tuple(rows.values_list("idempotency", "reason")[:most])
