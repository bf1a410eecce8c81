"""Recording: what an NPC perceived is committed before anything is answered.

An NPC that opens a conversation speaks first in it, so its greeting is committed before the event
that made it speak, both or neither: records are never put in another order later.
"""

from collections.abc import Callable

from evennia_ai.game import gather
from evennia_ai.game.events import Event
from evennia_ai.game.gather import Heard
from evennia_ai.history.records import NewRecord
from evennia_ai.store import conversations
from evennia_ai.store.conversations import ConversationRef
from evennia_ai.store.errors import HistoryConflictError
from evennia_ai.store.state import one_transaction

Opening = Callable[[ConversationRef], NewRecord | None]


def recorded(npc_ref: str, event: Event, *, opening: Opening) -> Heard:
    """The event, committed; `opening` tells the greeting that goes before it, if one does.

    StoreError: nothing was committed.
    """
    conversation = gather.opened(npc_ref, gather.talk_of(event))
    try:
        return _committed(conversation, event, opening(conversation))
    except HistoryConflictError:  # another process was first; who spoke is asked anew
        return _committed(conversation, event, opening(conversation))


def _committed(conversation: ConversationRef, event: Event, greeting: NewRecord | None) -> Heard:
    if greeting is None:
        return _appended(conversation, event)
    conversations.history(conversation)  # read before the transaction, see `conversations.append`
    with one_transaction(f"opening {conversation} with a greeting"):
        conversations.append(conversation, [greeting])
        return _appended(conversation, event, greeting=greeting.body)


def _appended(conversation: ConversationRef, event: Event, *, greeting: str = "") -> Heard:
    before = conversations.history(conversation)
    (record,) = conversations.append(conversation, [gather.record_of(event)])
    return Heard(
        event=event, conversation=conversation, record=record, before=before, greeting=greeting
    )
