"""Errands: what NPCs began and have to be told of when it is done, kept over a stop of the server.

The result of one stands here and in no event: an NPC that is told of the end asks for it.
"""

import json
import time
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from django.db.models import Max

from evennia_ai import models
from evennia_ai.engine.errors import NotStoredError
from evennia_ai.engine.history.records import make_storable
from evennia_ai.engine.prompt.messages import ToolCall
from evennia_ai.store.core.snapshots import one_transaction, value_of
from evennia_ai.store.history.record_rows import ConversationRef, ref_of

ErrandState = Literal["open", "done", "failed", "lost"]
LOST: Final = "It was given up when the server stopped; what of it was done is not known."


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """One errand."""

    id: int
    npc_ref: str
    number: int
    conversation: ConversationRef
    turn: int
    """The number of the turn it began in."""
    call: ToolCall
    state: ErrandState
    result: str
    """What came of it, "" while it is open."""


def begin(conversation: ConversationRef, call: ToolCall, *, turn: int) -> Errand:
    """Write down that an errand began. StoreError: it is not written down."""
    npc_ref = conversation.npc_ref
    with one_transaction(f"beginning an errand of NPC {npc_ref}"):
        newest = models.Errand.objects.filter(npc_ref=npc_ref).aggregate(newest=Max("number"))
        row = models.Errand.objects.create(
            npc_ref=npc_ref,
            number=(newest["newest"] or 0) + 1,
            conversation_id=conversation.id,
            turn=turn,
            call=json.dumps(asdict(call)),
            begun_at=time.time(),
        )
    row = _rows().get(pk=row.pk)
    return _errand_from(row)


def end(errand: Errand, result: str, *, state: ErrandState) -> bool:
    """Write down what came of an errand; false where it had ended already and stays as it is."""
    with one_transaction(f"ending errand {errand.number} of NPC {errand.npc_ref}"):
        return bool(
            models.Errand.objects.filter(pk=errand.id, state="open").update(
                state=state, result=make_storable(result), ended_at=time.time()
            )
        )


def errand(npc_ref: str, number: int) -> Errand:
    """One errand of an NPC; NotStoredError: it had none of this number."""
    row = _rows().filter(npc_ref=npc_ref, number=number).first()
    if row is None:
        raise NotStoredError(f"errand of NPC {npc_ref}", number)
    return _errand_from(row)


def left_open(*, begun_before: float) -> tuple[Errand, ...]:
    """The errands that an earlier process left open."""
    with one_transaction("looking for lost errands"):
        rows = _rows().filter(state="open", begun_at__lt=begun_before).order_by("pk")
        return tuple(map(_errand_from, rows))


def erase(conversation_id: int) -> int:
    """The current transaction erases what the errands of a conversation say; how many there are."""
    rows = models.Errand.objects.filter(conversation_id=conversation_id)
    rows.filter(state="open").update(state="lost", ended_at=time.time())
    erased: int = rows.update(call="", result="")
    return erased


def _rows() -> Any:
    return models.Errand.objects.select_related("conversation")


def _errand_from(row: models.Errand) -> Errand:
    told = json.loads(row.call) if row.call else {"id": "", "name": "erased", "arguments": "{}"}
    return value_of(Errand, row, conversation=ref_of(row.conversation), call=ToolCall(**told))
