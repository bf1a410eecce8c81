"""Errands: tools that take long. The turn goes on; the NPC is told when the errand is done.

What it is told is an event like any other: that this errand has ended, and nothing of what came of
it. It looks that up with the tool `errand_result`, in the conversation where it began, so that
what it knows of the world is always the answer to a question it asked.
"""

from dataclasses import replace
from typing import Any, Final

from evennia.utils import logger
from twisted.internet.defer import Deferred

from evennia_ai.errors import StoreError
from evennia_ai.game.inputs.mind import Mind
from evennia_ai.game.recording.heard import event_record
from evennia_ai.game.recording.retrying import until_written
from evennia_ai.game.senses.events import ERRAND, Event
from evennia_ai.game.tools.toolbox import GIVEN_UP, Ran
from evennia_ai.llm.resilience import Clock
from evennia_ai.prompt.messages import ToolCall
from evennia_ai.store.core.state import one_transaction
from evennia_ai.store.history import conversations, errands
from evennia_ai.store.history.conversations import ConversationRef
from evennia_ai.store.history.errands import LOST, Errand

ERRAND_SECONDS: Final = 600.0
"""How long an errand may take."""

NOT_BEGUN: Final = "That did not work."


def sent_off(
    mind: Mind,
    later: "Deferred[Ran]",
    call: ToolCall,
    *,
    event: Event,
    where: ConversationRef,
    turn: int,
    clock: Clock,
) -> str:
    """Write an errand down and wait for its end; what the model is told of it now."""
    try:
        errand = errands.begin(where, call, turn=turn)
    except StoreError as error:
        logger.log_err(f"evennia_ai: NPC {mind.ref}: an errand is given up: {error}")
        later.cancel()
        return NOT_BEGUN
    reactor: Any = clock
    later.addTimeout(ERRAND_SECONDS, reactor, lambda *_: Ran(text=GIVEN_UP, ok=False))
    later.addCallback(lambda ran: _ended(mind, errand, ran, event, clock=clock))
    return f"Errand {errand.number} has begun: {call.name}. You will be told when it is done."


def close_lost(*, begun_before: float) -> int:
    """End the errands of a process that died, each told of in its conversation; how many.

    StoreError: some may still be open; none has ended without being told of.
    """
    lost = errands.left_open(begun_before=begun_before)
    for one in lost:
        where = one.conversation
        # Read before the transaction: on SQLite one that reads first may not get to write.
        conversations.history(where)
        with one_transaction(f"closing errand {one.number} of NPC {one.npc_ref}"):
            if errands.end(one, LOST, state="lost"):
                conversations.append(where, [event_record(_told(one, _nobodys(one)))])
    return len(lost)


def _ended(mind: Mind, errand: Errand, ran: Ran, event: Event, *, clock: Clock) -> None:
    """Write down what came of it, and tell the NPC; not of one that was erased or is lost."""
    doing = f"NPC {mind.ref}: errand {errand.number} is not closed"

    def write() -> None:
        is_news = errands.end(errand, ran.text, state="done" if ran.ok else "failed")
        if is_news and mind.npc.pk is not None:
            mind.hear(_told(errand, event))

    until_written(write, doing, clock=clock)


def _told(errand: Errand, event: Event) -> Event:
    """The event that says an errand has ended, in the conversation where it began.

    One that began because of another is one more thing without a person in between.
    """
    number = errand.number
    return replace(
        event,
        kind=ERRAND,
        text=f"Errand {number} ({errand.call.name}) has ended; errand_result tells the outcome.",
        to_ref=errand.npc_ref,
        hops=event.hops + (event.kind == ERRAND),
        data={"errand": number},
        wants_answer=True,
        item="",
        language="",
        volume="",
    )


def _nobodys(errand: Errand) -> Event:
    where = errand.conversation
    return Event(
        kind=ERRAND,
        speaker_ref=where.partner_ref,
        speaker_name="",
        text="",
        room_ref=where.place_ref,
        private=where.kind == "private",
    )
