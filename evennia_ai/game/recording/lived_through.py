"""What an NPC lately lived through: its conversations in rooms, newest first, and their records.

A conversation in private is none of them: what one person whispered is shown to nobody else, and
to that person it is the conversation itself. Which rooms there are is read once and kept in step
with what the NPC hears; the records are those that the store keeps in memory for its histories.
"""

from collections.abc import Iterator
from typing import Final

from evennia.objects.models import ObjectDB

from evennia_ai.game.character import NPC
from evennia_ai.game.text import plain_name
from evennia_ai.history.projection import record_of
from evennia_ai.history.records import Record
from evennia_ai.store.history import conversations
from evennia_ai.store.history.conversations import ConversationRef

MOST_ROOMS: Final = 5
"""Conversations that are looked at; their histories stay in memory."""


class Lately:
    """The rooms that one NPC was in lately. Warm, none of it asks the database."""

    def __init__(self, npc_ref: str) -> None:
        self._npc_ref: Final = npc_ref
        self._rooms: tuple[ConversationRef, ...] | None = None
        self._gone: Final[set[str]] = set()

    def rooms(self) -> tuple[ConversationRef, ...]:
        """The conversations in rooms, the newest first."""
        if self._rooms is None:
            self._rooms = conversations.newest_rooms(self._npc_ref, most=MOST_ROOMS)
        return self._rooms

    def heard(self, conversation: ConversationRef) -> None:
        """Something was recorded in this conversation."""
        if self._rooms is None or conversation.kind != "room":
            return
        if self._rooms[:1] != (conversation,):
            others = (one for one in self._rooms if one.id != conversation.id)
            self._rooms = (conversation, *others)[:MOST_ROOMS]

    def place_name(self, npc: NPC, place_ref: str) -> str:
        """What `npc` calls the room of a conversation, "" where there is none any more."""
        if place_ref in self._gone or not place_ref.isdecimal():
            return ""
        try:
            room = ObjectDB.objects.get(id=int(place_ref))  # from memory, where it is there
        except ObjectDB.DoesNotExist:
            self._gone.add(place_ref)
            return ""
        return plain_name(str(room.get_display_name(npc)))


def records_of_room(room: ConversationRef, *, before: int | None = None) -> Iterator[Record]:
    """What was said and done in a conversation, the newest first.

    `before` is the index in its history before which it was; None for all that is kept in memory.
    """
    history = conversations.history(room)
    stop = history.stop if before is None else min(before, history.stop)
    for index in range(stop - 1, history.earlier - 1, -1):
        record = record_of(history[index])
        if record is not None and not history[index].stays:
            yield record
