"""What workers made of jobs, one row each, unique by the job's name: a second answer is none.

The game handles each row once, in the transaction that writes what came of it.
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
"""Instead of the reason of a job that failed or was set aside, which may tell of words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What came of a job; nothing but a `reason` where it is not OFFERED."""

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


def offer(new: Offer, *, refuse_stale: Callable[[], None] | None = None) -> bool:
    """Write down what came of a job, in a transaction of its own; False: somebody did before.

    `refuse_stale` raises StaleError where what the job was made from is erased; then no word of it
    is written, and the offer is one of a job that failed. Who erases comes before or after.
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
    """Those of these jobs that were offered before a moment, by name."""
    rows = models.Proposal.objects.filter(idempotency__in=names, offered_at__lt=moment)
    return frozenset(rows.values_list("idempotency", flat=True))


def unhandled(most: int = MOST_AT_ONCE) -> tuple[int, ...]:
    """The numbers of what workers offered and the game did not look at, the oldest first."""
    rows = models.Proposal.objects.filter(handled_at=None).order_by("pk")
    return tuple(rows.values_list("pk", flat=True)[:most])


def locked(number: int) -> Offer | None:
    """One of these, locked until the end of the transaction; None: it was handled meanwhile."""
    return _offer(models.Proposal.objects.select_for_update(), number)


def waiting(number: int) -> Offer | None:
    """The same without a lock."""
    return _offer(models.Proposal.objects, number)


def _offer(rows: Any, number: int) -> Offer | None:
    row = rows.filter(pk=number, handled_at=None).first()
    if row is None:
        return None
    names = Offer.__dataclass_fields__
    calls = tuple(NewCall(**call) for call in json.loads(row.calls))
    return Offer(**{name: getattr(row, name) for name in names if name != "calls"}, calls=calls)


def handled(number: int, state: str, *, reason: str = "") -> None:
    """Write down what the game made of it, in the transaction that `locked` it.

    The body goes: what came of it stands where it was written, and is erased there when somebody
    asks for it.
    """
    models.Proposal.objects.filter(pk=number).update(
        state=state, reason=reason, body="", calls="[]", handled_at=time.time()
    )


def _conversations_of(job: str) -> tuple[int, ...]:
    """The conversation that a job is about, where it is about one."""
    head = json.loads(job).get("given", {}).get("head")
    return (head["conversation"],) if head else ()


def _lock(conversations: Iterable[int]) -> None:
    """Let nobody else erase or offer words of these until the end of the transaction.

    Only where several may write at once: SQLite has one who writes, and one that reads first may
    not get to write.
    """
    if connection.features.has_select_for_update:
        rows = models.Conversation.objects.filter(pk__in=conversations).order_by("pk")
        list(rows.select_for_update(no_key=True).values_list("pk"))


def erase(conversations: Iterable[int]) -> None:
    """Take the words out of what workers offered of conversations, in the current transaction.

    What is offered later of them says that it is stale (`offer`).
    What the game did not apply yet is stale, and handled as ever: its calls are to be counted. A
    proposal that is being applied is waited for. Jobs themselves are numbers and hashes.
    """
    conversations = tuple(conversations)
    _lock(conversations)
    for number in conversations:
        of_it = models.Proposal.objects.filter(job__contains=f'"head":{{"conversation":{number},')
        of_it.filter(handled_at=None).update(
            state=STALE, body="", reason="what it was made from was erased"
        )
        of_it.filter(state__in=(POISONED, FAILED)).update(reason=ERASED)


def forget_old(before: float) -> int:
    """Forget jobs that were handled before a moment; how many."""
    return int(models.Proposal.objects.filter(handled_at__lt=before).delete()[0])


def ended(idempotency: str) -> str:
    """How a job of this name ended, "" where it did not. What may be asked again is forgotten."""
    row = models.Proposal.objects.filter(idempotency=idempotency).first()
    if row is None:
        return ""
    if row.handled_at is not None and row.state in (FAILED, LAPSED):
        row.delete()
        return ""
    state: str = row.state
    return state


def poisoned(most: int = 20) -> tuple[tuple[str, str], ...]:
    """The jobs that are set aside, with the reason of each."""
    rows = models.Proposal.objects.filter(state=POISONED).order_by("idempotency")
    return tuple(rows.values_list("idempotency", "reason")[:most])
