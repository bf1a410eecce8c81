"""Import chats of another program as conversations of an NPC, and export conversations as chats.

An imported chat is never mixed with what the NPC heard in the game. A chat with a player's
character becomes their private conversation, if that has no messages that count. A chat with any
other name becomes a conversation that nobody continues. In both cases the first record says where
the chat comes from. The records are chained and verified as usual.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from evennia_ai import models
from evennia_ai.engine.errors import StoreError
from evennia_ai.engine.history.records import NewRecord, Record, RecordKind
from evennia_ai.formats.chats.chat import Chat, dump_chat, values_sha256
from evennia_ai.formats.chats.chat_records import (
    OF_CHAT,
    VALUES,
    ChatSource,
    chat_to_records,
    records_to_chat,
)
from evennia_ai.store.core.snapshots import one_change
from evennia_ai.store.history import conversations
from evennia_ai.store.history.record_rows import ConversationRef, End, record_from, ref_of
from evennia_ai.store.history.windows import windows

_CHUNK: Final = 500
_OF_NAME: Final = "chat-"
_HASH_CHARACTERS: Final = 16


def is_of_name_alone(conversation: ConversationRef) -> bool:
    """True if the user of an imported chat is only a name and no character of the game."""
    return conversation.partner_ref.startswith(_OF_NAME)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedChat:
    """A conversation that was imported from a chat, with its source."""

    conversation: ConversationRef
    file: str
    sha256: str
    played: str
    group: Mapping[str, Any] | None
    """The JSON object of the group whose chat it is."""


def all_imported() -> Iterator[ImportedChat]:
    """Yield all imported chats in the order of their import."""
    for row in _sources().order_by("pk").iterator(chunk_size=_CHUNK):
        meta = json.loads(row.meta)
        yield ImportedChat(
            conversation=ref_of(row.conversation),
            file=meta["file"],
            sha256=meta["sha256"],
            played=meta["played"],
            group=meta.get("group"),
        )


def imported_chat(npc_ref: str, chat: Chat) -> ConversationRef | None:
    """Return the NPC's conversation that has the same content as `chat`, from whatever file.

    Return None if there is none or it was erased.
    """
    rows = _sources().filter(
        conversation__npc_ref=npc_ref, meta__contains=f'"{VALUES}":"{values_sha256(chat)}"'
    )
    row = rows.order_by("-pk").first()
    return None if row is None else ref_of(row.conversation)


def import_chat(chat: Chat, source: ChatSource, *, npc_ref: str) -> ConversationRef:
    """Import a chat as a conversation of this NPC, completely or not at all.

    Raises:
        StoreError: the chat was imported already, or the NPC and the player have a private
            conversation with messages.
        HistoryConflictError: another process wrote to the conversation.
    """
    if (known := imported_chat(npc_ref, chat)) is not None:
        raise StoreError(f"{source.file} was imported already, as {known}; nothing was imported")
    partner_ref = source.speaker_ref or f"{_OF_NAME}{source.sha256[:_HASH_CHARACTERS]}"
    _refuse_where_more_counts(npc_ref, partner_ref)
    with one_change(f"importing {source.file} for NPC {npc_ref}", by=source.by):
        where = conversations.get_or_open_conversation(
            npc_ref, kind="private", partner_ref=partner_ref
        )
        _write(where, chat_to_records(chat, source))
        conversations.note_written(where)
    return where


def exported_chat(
    conversation: ConversationRef, *, npc_name: str, partner_name: str
) -> Iterator[bytes]:
    """Yield a conversation in parts, in SillyTavern's format for chats.

    Args:
        partner_name: The name that the export gives the player in a conversation of the game.
    """
    header, messages = records_to_chat(
        _records(conversation), npc_name=npc_name, partner_name=partner_name
    )
    return dump_chat(header, messages)


def _sources() -> Any:
    """Return the records that say where a chat comes from."""
    rows = models.Record.objects.filter(
        kind=RecordKind.SNAPSHOT.value, meta__contains=f'"of":"{OF_CHAT}"'
    )
    return rows.select_related("conversation")


def _refuse_where_more_counts(npc_ref: str, partner_ref: str) -> None:
    rows = models.Conversation.objects.filter(
        npc_ref=npc_ref, kind="private", partner_ref=partner_ref
    )
    row = rows.first()
    if row is not None and len(windows(row.pk).history):
        raise StoreError(
            f"{ref_of(row)} has messages of the game, and a chat is never mixed with them; first"
            f" use ai/reset on conversation {row.pk}, or import the chat without a player;"
            " nothing was imported"
        )


def _write(where: ConversationRef, said: Iterable[NewRecord]) -> None:
    """Write the records to a new segment, in chunks."""
    end = windows(where.id).end
    end = end.next_segment() if end.seq else end
    left = iter(said)
    while some := list(islice(left, _CHUNK)):
        end = _after(end, conversations.write_records(where, end, some))


def _after(end: End, written: Iterable[Record]) -> End:
    totals, seq, digest = end.totals, end.seq, end.sha256
    for record in written:
        totals, seq, digest = totals.after(record), record.seq, record.sha256
    return End(segment=end.segment, seq=seq, sha256=digest, totals=totals)


def _records(conversation: ConversationRef) -> Iterator[Record]:
    rows = models.Record.objects.filter(conversation_id=conversation.id)
    for row in rows.order_by("segment", "seq").iterator(chunk_size=_CHUNK):
        yield record_from(row)
