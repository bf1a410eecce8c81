"""Store errands: long tool calls and their results, which survive a stop of the server.

The event that reports the end of an errand does not contain the result. The NPC asks for the
result, which is stored here.
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
LOST: Final = "The server stopped before it ended; nobody knows how much of it was done."


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """A tool call that takes longer than a turn."""

    id: int
    npc_ref: str
    number: int
    conversation: ConversationRef
    turn: int
    """The number of the turn in which the errand began."""
    call: ToolCall
    state: ErrandState
    result: str
    """The result; "" while the errand is running."""


def begin_errand(conversation: ConversationRef, call: ToolCall, *, turn: int) -> Errand:
    """Store a new errand.

    Raises:
        StoreError: it could not be stored.
    """
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


def end_errand(errand: Errand, result: str, *, state: ErrandState) -> bool:
    """Store the result of an errand.

    Returns:
        False if the errand had ended already. Then nothing is changed.
    """
    with one_transaction(f"ending errand {errand.number} of NPC {errand.npc_ref}"):
        return bool(
            models.Errand.objects.filter(pk=errand.id, state="open").update(
                state=state, result=make_storable(result), ended_at=time.time()
            )
        )


def get_errand(npc_ref: str, number: int) -> Errand:
    """Return one errand of an NPC.

    Raises:
        NotStoredError: the NPC has no errand with this number.
    """
    row = _rows().filter(npc_ref=npc_ref, number=number).first()
    if row is None:
        raise NotStoredError(f"errand of NPC {npc_ref}", number)
    return _errand_from(row)


def open_errands(*, begun_before: float) -> tuple[Errand, ...]:
    """Return the errands that an earlier process of the game left unfinished."""
    with one_transaction("looking for lost errands"):
        rows = _rows().filter(state="open", begun_at__lt=begun_before).order_by("pk")
        return tuple(map(_errand_from, rows))


def erase_errands(conversation_id: int) -> int:
    """Erase the calls and results of a conversation's errands, and return how many there are.

    Call it inside a transaction.
    """
    rows = models.Errand.objects.filter(conversation_id=conversation_id)
    rows.filter(state="open").update(state="lost", ended_at=time.time())
    erased: int = rows.update(call="", result="")
    return erased


def _rows() -> Any:
    return models.Errand.objects.select_related("conversation")


def _errand_from(row: models.Errand) -> Errand:
    call = json.loads(row.call) if row.call else {"id": "", "name": "erased", "arguments": "{}"}
    return value_of(Errand, row, conversation=ref_of(row.conversation), call=ToolCall(**call))
