"""What an NPC heard: what was committed of an event, and the conversation it belongs to.

A conversation is told apart by a `ConversationKey` before it is opened; a `CommittedEvent` is what
a turn answers. What an NPC lately lived through are its conversations in rooms, newest first: what
one person whispered is shown to nobody else, and to that person it is the conversation itself.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from django.utils.timezone import get_default_timezone
from evennia.utils import gametime

from evennia_ai.engine.history.projection import MINUTE, record_of
from evennia_ai.engine.history.records import GUISE, NewRecord, Record, RecordKind
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.names import guise_in
from evennia_ai.npc.senses.events import Event
from evennia_ai.npc.senses.presence import NPC, object_of
from evennia_ai.npc.senses.text import plain_name
from evennia_ai.services.settings.kinds import TimeSuffix
from evennia_ai.store.history import conversations
from evennia_ai.store.history.record_rows import ConversationKind, ConversationRef
from evennia_ai.store.history.windows import windows


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
    is committed, the newest message of the history, and not said yet. Who comes is greeted after
    it, and `before` has no greeting.
    """

    event: Event
    conversation: ConversationRef
    record: Record
    before: History
    greeting: str = ""
    hint: str = ""
    """What a builder asks of this answer alone, "" for nothing."""


def key_of(event: Event) -> ConversationKey:
    """The conversation an event belongs to: private with its speaker, else that of the room."""
    if event.private:
        return ConversationKey(kind="private", partner_ref=event.known_ref)
    return ConversationKey(kind="room", place_ref=event.room_ref or "nowhere")


def opened(npc_ref: str, talk: ConversationKey) -> ConversationRef:
    """The conversation, opened when it is new."""
    return conversations.get_or_open_conversation(
        npc_ref,
        kind=talk.kind,
        partner_ref=talk.partner_ref,
        place_ref=talk.place_ref,
    )


def read(npc_ref: str, talk: ConversationKey) -> ConversationRef:
    """The conversation, opened when it is new, with its history in memory."""
    conversation = opened(npc_ref, talk)
    windows(conversation.id)
    return conversation


def read_already(npc_ref: str, talk: ConversationKey) -> ConversationRef | None:
    """The same where nothing has to be read or written for it."""
    known = conversations.conversation_in_memory(
        npc_ref, kind=talk.kind, partner_ref=talk.partner_ref, place_ref=talk.place_ref
    )
    return known if known is not None and windows.get_committed(known.id) is not None else None


def found(npc_ref: str, talk: ConversationKey) -> ConversationRef | None:
    """The conversation if it was ever opened; nothing is written."""
    wanted = (talk.kind, talk.partner_ref, talk.place_ref)
    for known in conversations.conversations_of(npc_ref):
        if (known.kind, known.partner_ref, known.place_ref) == wanted:
            return known
    return None


def real_minute() -> str:
    """The date and the minute, in UTC."""
    return f"{datetime.fromtimestamp(time.time(), tz=UTC):%Y-%m-%d %H:%M} UTC"


def game_time() -> datetime | None:
    """The moment of Evennia's game time, None for one that no calendar has."""
    try:
        return datetime.fromtimestamp(gametime.gametime(absolute=True), tz=get_default_timezone())
    except (OSError, OverflowError, ValueError):
        return None


def game_minute() -> str:
    """The date and the minute of it, "" for one that no calendar has."""
    now = game_time()
    return "" if now is None else f"{now:%Y-%m-%d %H:%M}"


def game_moment() -> str:
    """The moment of game time as ISO 8601 with its zone, "" for one that no calendar has."""
    now = game_time()
    return "" if now is None else now.isoformat(timespec="seconds")


def minute_of(suffix: TimeSuffix) -> str:
    """The minute as the setting wants it beside what is said, "" for none."""
    if not suffix:
        return ""
    return real_minute() if suffix == "real" else game_minute()


def event_record(event: Event, *, minute: str = "") -> NewRecord:
    """What is written down of an event: who, and what was said or done, and the minute if told.

    Somebody's own words are a record of kind `user` and of their name. What happened is one of kind
    `event` and of nobody's, so that a prompt shows it without a label: nobody can say it.
    """
    body = f"*{event.text}*" if event.kind == "pose" else event.text
    meta = {"event": event.kind, "speaker": event.speaker_ref, "hops": event.hops}
    told = {
        GUISE: guise_in(event.known_ref) if event.known_ref != event.speaker_ref else "",
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


MOST_ROOMS: Final = 5
"""Conversations that are looked at; their histories stay in memory."""


def newest_rooms(npc_ref: str) -> tuple[ConversationRef, ...]:
    """The conversations in rooms that an NPC is to remember, the newest first."""
    return conversations.newest_rooms(npc_ref, most=MOST_ROOMS)


class Lately:
    """The rooms that one NPC was in lately. Warm, none of it asks the database."""

    def __init__(self, npc_ref: str) -> None:
        self._npc_ref: Final = npc_ref
        self.read: tuple[ConversationRef, ...] | None = None
        """The rooms, None as long as they were not read."""
        self._gone: Final[set[str]] = set()

    def rooms(self) -> tuple[ConversationRef, ...]:
        """The conversations in rooms, the newest first."""
        if self.read is None:
            self.read = newest_rooms(self._npc_ref)
        return self.read

    def heard(self, conversation: ConversationRef) -> None:
        """Something was recorded in this conversation."""
        if self.read is None or conversation.kind != "room":
            return
        if self.read[:1] != (conversation,):
            others = (one for one in self.read if one.id != conversation.id)
            self.read = (conversation, *others)[:MOST_ROOMS]

    def place_name(self, npc: NPC, place_ref: str) -> str:
        """What `npc` calls the room of a conversation, "" where there is none any more."""
        room = None if place_ref in self._gone else object_of(place_ref)
        if room is None:
            self._gone.add(place_ref)
            return ""
        return plain_name(str(room.get_display_name(npc)))


def records_of_room(room: ConversationRef) -> Iterator[Record]:
    """What was said and done in a conversation and is kept in memory, the newest first."""
    history = windows(room.id).history
    for index in range(history.stop - 1, history.earlier - 1, -1):
        record = record_of(history[index])
        if record is not None and not history[index].stays:
            yield record
