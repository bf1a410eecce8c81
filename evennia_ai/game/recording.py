"""Recording: what an NPC perceived is committed before anything is answered.

An NPC that opens a conversation speaks first in it, so its greeting is committed before the event
that made it speak, both or neither: records are never put in another order later.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evennia_ai.errors import HistoryConflictError
from evennia_ai.game.committed import CommittedEvent, event_record, key_of, opened
from evennia_ai.game.events import Event
from evennia_ai.history.records import NewRecord
from evennia_ai.store.core.state import one_transaction
from evennia_ai.store.history import conversations
from evennia_ai.store.history.conversations import ConversationRef

Opening = Callable[[ConversationRef], NewRecord | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """An event that can be committed without reading anything more.

    `minute` is the time that prompts show with it, "" for none.
    """

    conversation: ConversationRef
    event: Event
    greeting: NewRecord | None
    minute: str = ""

    @property
    def record(self) -> NewRecord:
        """What is written down of the event."""
        return event_record(self.event, minute=self.minute)


def recorded(npc_ref: str, event: Event, *, opening: Opening, minute: str = "") -> CommittedEvent:
    """The event, committed; `opening` tells the greeting that goes before it, if one does.

    StoreError: nothing was committed.
    """
    try:
        return committed(prepared(npc_ref, event, opening=opening, minute=minute))
    except HistoryConflictError:  # another process was first; who spoke is asked anew
        return committed(prepared(npc_ref, event, opening=opening, minute=minute))


def prepared(npc_ref: str, event: Event, *, opening: Opening, minute: str = "") -> Prepared:
    """The event, with its conversation opened and read and the greeting that goes before it.

    Read before the transaction: on SQLite one that reads first may not get to write.
    """
    conversation = opened(npc_ref, key_of(event))
    conversations.history(conversation)
    return Prepared(
        conversation=conversation, event=event, greeting=opening(conversation), minute=minute
    )


def committed(ready: Prepared) -> CommittedEvent:
    """The event as what the NPC heard, in a transaction of its own or the current one."""
    if ready.greeting is None:
        return _appended(ready)
    with one_transaction(f"opening {ready.conversation} with a greeting"):
        conversations.append(ready.conversation, [ready.greeting])
        return _appended(ready, greeting=ready.greeting.body)


def committed_each(ready: Sequence[Prepared]) -> list[CommittedEvent]:
    """The same for events in different conversations, all of them or none."""
    if any(one.greeting is not None for one in ready):
        with one_transaction("recording what NPCs perceived"):
            return [committed(one) for one in ready]
    appended = conversations.append_each([(one.conversation, one.record) for one in ready])
    return [
        CommittedEvent(event=one.event, conversation=one.conversation, record=record, before=before)
        for one, (before, record) in zip(ready, appended, strict=True)
    ]


def _appended(ready: Prepared, *, greeting: str = "") -> CommittedEvent:
    before = conversations.history(ready.conversation)
    (record,) = conversations.append(ready.conversation, [ready.record])
    return CommittedEvent(
        event=ready.event,
        conversation=ready.conversation,
        record=record,
        before=before,
        greeting=greeting,
    )
