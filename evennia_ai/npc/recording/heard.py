"""What an NPC heard: committed events, their conversations and their records.

A `ConversationKey` identifies a conversation that may not be opened yet. A `CommittedEvent` is what
a turn answers. `Lately` has the rooms in which an NPC was recently. A whisper belongs to the
private conversation with its speaker and is shown in no other.
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
    """Kind, partner and place, which together identify a conversation of an NPC."""

    kind: ConversationKind
    partner_ref: str = ""
    place_ref: str = ""

    @property
    def seed(self) -> str:
        """The seed of the conversation's dice, the same before and after it is opened."""
        return f"{self.kind}/{self.partner_ref or self.place_ref}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedEvent:
    """An event with its record and the history before it.

    `greeting` is the greeting with which the event opened the conversation, "" for none. It is
    committed but not said yet. It is the newest message in `before`, except the greeting of a
    newcomer, which is committed after the event.
    """

    event: Event
    conversation: ConversationRef
    record: Record
    before: History
    greeting: str = ""
    hint: str = ""
    """A builder's instruction for this answer only, "" for none."""
    joined: tuple[Record, ...] = ()
    """Earlier lines of the speaker that the same answer is for, oldest first."""

    @property
    def lines(self) -> tuple[Record, ...]:
        """All lines that the answer is for, oldest first."""
        return (*self.joined, self.record)

    @property
    def words(self) -> str:
        """The text of all lines that this turn answers, joined by blanks."""
        return " ".join(one.body for one in self.lines)


def key_of(event: Event) -> ConversationKey:
    """Return the key of the conversation to which an event belongs.

    It is the private conversation with the speaker if the event is private, else that of the room.
    """
    if event.private:
        return ConversationKey(kind="private", partner_ref=event.known_ref)
    return ConversationKey(kind="room", place_ref=event.room_ref or "nowhere")


def open_conversation(npc_ref: str, talk: ConversationKey) -> ConversationRef:
    """Return the conversation with this key. Open it if it is new."""
    return conversations.get_or_open_conversation(
        npc_ref,
        kind=talk.kind,
        partner_ref=talk.partner_ref,
        place_ref=talk.place_ref,
    )


def read_conversation(npc_ref: str, talk: ConversationKey) -> ConversationRef:
    """Return the conversation with this key, with its history in memory. Open it if it is new."""
    conversation = open_conversation(npc_ref, talk)
    windows(conversation.id)
    return conversation


def cached_conversation(npc_ref: str, talk: ConversationKey) -> ConversationRef | None:
    """Return the conversation with this key if it and its history are in memory, else None."""
    known = conversations.conversation_in_memory(
        npc_ref, kind=talk.kind, partner_ref=talk.partner_ref, place_ref=talk.place_ref
    )
    return known if known is not None and windows.get_committed(known.id) is not None else None


def find_conversation(npc_ref: str, talk: ConversationKey) -> ConversationRef | None:
    """Return the conversation with this key if it was ever opened, else None. Write nothing."""
    wanted = (talk.kind, talk.partner_ref, talk.place_ref)
    for known in conversations.conversations_of(npc_ref):
        if (known.kind, known.partner_ref, known.place_ref) == wanted:
            return known
    return None


def real_minute() -> str:
    """Return the current date and minute in UTC."""
    return f"{datetime.fromtimestamp(time.time(), tz=UTC):%Y-%m-%d %H:%M} UTC"


def game_time() -> datetime | None:
    """Return the current game time of Evennia, None if it is outside the calendar."""
    try:
        return datetime.fromtimestamp(gametime.gametime(absolute=True), tz=get_default_timezone())
    except (OSError, OverflowError, ValueError):
        return None


def game_minute() -> str:
    """Return date and minute of the game time, "" if it is outside the calendar."""
    now = game_time()
    return "" if now is None else f"{now:%Y-%m-%d %H:%M}"


def game_moment() -> str:
    """Return the game time in ISO 8601 with its time zone, "" if it is outside the calendar."""
    now = game_time()
    return "" if now is None else now.isoformat(timespec="seconds")


def minute_of(suffix: TimeSuffix) -> str:
    """Return the minute to record with an event, of the clock in the setting. "" for none."""
    if not suffix:
        return ""
    return real_minute() if suffix == "real" else game_minute()


def event_record(event: Event, *, minute: str = "") -> NewRecord:
    """Return the record of an event: who said or did what, and the minute if given.

    Words of a character become a record of kind `user` with the character's name. A happening
    becomes one of kind `event` without a name. A prompt shows it without a label, so no speaker can
    imitate it.
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
"""How many room conversations an NPC remembers. Their histories stay in memory."""


def newest_rooms(npc_ref: str) -> tuple[ConversationRef, ...]:
    """Return the room conversations that an NPC remembers, newest first."""
    return conversations.newest_rooms(npc_ref, most=MOST_ROOMS)


class Lately:
    """The rooms in which an NPC was recently. After the first reading, no method makes a query."""

    def __init__(self, npc_ref: str) -> None:
        self._npc_ref: Final = npc_ref
        self.read: tuple[ConversationRef, ...] | None = None
        """The room conversations, newest first. None before the first reading."""
        self._gone: Final[set[str]] = set()

    def rooms(self) -> tuple[ConversationRef, ...]:
        """Return the room conversations, newest first."""
        if self.read is None:
            self.read = newest_rooms(self._npc_ref)
        return self.read

    def heard(self, conversation: ConversationRef) -> None:
        """Move this conversation to the front, because something was recorded in it."""
        if self.read is None or conversation.kind != "room":
            return
        if self.read[:1] != (conversation,):
            others = (one for one in self.read if one.id != conversation.id)
            self.read = (conversation, *others)[:MOST_ROOMS]

    def place_name(self, npc: NPC, place_ref: str) -> str:
        """Return what `npc` calls the room of a conversation, "" if the room was deleted."""
        room = None if place_ref in self._gone else object_of(place_ref)
        if room is None:
            self._gone.add(place_ref)
            return ""
        return plain_name(str(room.get_display_name(npc)))


def records_of_room(room: ConversationRef) -> Iterator[Record]:
    """Yield the records of a room conversation that are in memory, newest first."""
    history = windows(room.id).history
    for index in range(history.stop - 1, history.earlier - 1, -1):
        record = record_of(history[index])
        if record is not None and not history[index].stays:
            yield record
