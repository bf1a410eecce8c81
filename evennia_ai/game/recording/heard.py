"""What was committed of an event, and the conversation it belongs to.

A conversation is told apart by a `ConversationKey` before it is opened; a `CommittedEvent` is what
a turn answers.
"""

from dataclasses import dataclass

from evennia_ai.game.senses.events import Event
from evennia_ai.history.projection import MINUTE
from evennia_ai.history.records import NewRecord, Record, RecordKind
from evennia_ai.prompt.history import History
from evennia_ai.store.history import conversations
from evennia_ai.store.history.conversations import ConversationKind, ConversationRef


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationKey:
    """Which conversation is meant, by what tells it apart."""

    kind: ConversationKind
    partner_ref: str = ""
    place_ref: str = ""

    @property
    def seed(self) -> str:
        """What its dice are seeded with, the same before it is opened and after."""
        return f"{self.kind}/{self.partner_ref or self.place_ref}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedEvent:
    """An event that is committed: its record, and the history as it was before it.

    `greeting` is what the NPC opened the conversation with because of it, "" where it did not; it
    is committed, the newest message of the history, and not said yet.
    """

    event: Event
    conversation: ConversationRef
    record: Record
    before: History
    greeting: str = ""


def key_of(event: Event) -> ConversationKey:
    """The conversation an event belongs to: private with its speaker, else that of the room."""
    if event.private:
        return ConversationKey(kind="private", partner_ref=event.speaker_ref)
    return ConversationKey(kind="room", place_ref=event.room_ref or "nowhere")


def opened(npc_ref: str, talk: ConversationKey) -> ConversationRef:
    """The conversation, opened when it is new."""
    return conversations.conversation(
        npc_ref,
        kind=talk.kind,
        partner_ref=talk.partner_ref,
        place_ref=talk.place_ref,
    )


def found(npc_ref: str, talk: ConversationKey) -> ConversationRef | None:
    """The conversation if it was ever opened; nothing is written."""
    wanted = (talk.kind, talk.partner_ref, talk.place_ref)
    for known in conversations.conversations_of(npc_ref):
        if (known.kind, known.partner_ref, known.place_ref) == wanted:
            return known
    return None


def event_record(event: Event, *, minute: str = "") -> NewRecord:
    """What is written down of an event: who, and what was said or done, and when if that is told.

    Somebody's own words are a record of kind `user` and of their name. What happened is one of kind
    `event` and of nobody's, so that a prompt shows it without a label: nobody can say it.
    """
    body = f"*{event.text}*" if event.kind == "pose" else event.text
    meta = {"event": event.kind, "speaker": event.speaker_ref, "hops": event.hops}
    told = {
        "to": event.to_ref,
        "language": event.language,
        "volume": event.volume,
        "item": event.item,
        "data": dict(event.data),
        MINUTE: minute,
    }
    return NewRecord(
        kind=RecordKind.EVENT if event.is_happening else RecordKind.USER,
        role="user",
        name="" if event.is_happening else event.speaker_name,
        body=body,
        meta=meta | {name: value for name, value in told.items() if value},
    )
