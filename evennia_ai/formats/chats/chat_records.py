"""Chats as records: a conversation that was held elsewhere, as one NPC remembers it, and back.

The first record tells where all that follows is from: the file, its hash, who took it in. Each
message is a record after it: what the NPC's character said is said by the NPC, all else is of role
user, for a file proves nothing. What the app keeps out of prompts is kept out of ours, too, and is
a record all the same. A record has the values of its line beside its text, so that the way out
gives what came in. What was said in the game since is written as the app would have.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.history.corrections import CORRECTS
from evennia_ai.engine.history.records import CONVERSATION, NewRecord, Record, RecordKind
from evennia_ai.engine.prompt.names import bare_name, is_word_of_the_game, mark_name
from evennia_ai.formats.chats.chat import KIND, NARRATOR, Chat, ChatMessage, values_sha256

OF_CHAT: Final = "chat"
"""In the meta of the record before the messages: what it is of."""
VALUES: Final = "values_sha256"
"""In its meta: the hash of what the chat says, whatever the bytes of its file."""
LINE: Final = "line"
"""In the meta of a record: the values of its line in the file of the chat."""
# What is no letter in any writing, but for the ends of lines; they become one kind.
_CONTROL: Final = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")
_LINE_END: Final = re.compile("\r\n|[\n\r\x0b\x0c\x85\u2028\u2029]")
_BLANKS: Final = re.compile(r"[^\S\n]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatSource:
    """Where a chat is from and whom it is told of."""

    file: str
    sha256: str
    played: str
    """The name in the chat of the character that the NPC is."""
    speaker_ref: str = ""
    """The reference of the player's character who was the user, "" for a name alone."""
    by: Actor
    """Who imports it."""


def played_in(chat: Chat, names: Iterable[str], *, wanted: str = "") -> str:
    """Return the name of the character in the chat that an NPC of these names is.

    `wanted` is which one it shall be. In a chat with one character it is that one, whatever the NPC
    is called. A name counts only if somebody speaks under it. FormatError names those there are.
    """
    known = chat.characters
    looked_for = [wanted] if wanted else [*names]
    by_fold = {name.casefold().strip(): name for name in reversed(known)}
    for name in looked_for:
        if found := by_fold.get(name.casefold().strip()):
            return found
    if not wanted and len(known) == 1:
        return known[0]
    there = ", ".join(f"'{name[:60]}'" for name in known[:12])
    told = f"there are {there}" if there else "nobody but the user speaks in it"
    raise FormatError(KIND, f"'{looked_for[0][:60]}' says nothing in this chat; {told}")


def records_of_chat(chat: Chat, source: ChatSource) -> Iterator[NewRecord]:
    """The records of a chat, in its order; the first one tells where it is from."""
    yield NewRecord(
        kind=RecordKind.SNAPSHOT,
        role="system",
        meta={
            "of": OF_CHAT,
            "file": source.file,
            "sha256": source.sha256,
            VALUES: values_sha256(chat),
            "by": source.by.name,
            "user": chat.user,
            "played": source.played,
            "messages": len(chat.messages),
            "header": None if chat.header is None else dict(chat.header),
        },
    )
    for message in chat.messages:
        yield _record(message, chat, source)


def is_source(record: NewRecord | Record) -> bool:
    """Whether it is the record that tells where a chat is from."""
    return record.kind is RecordKind.SNAPSHOT and record.meta.get("of") == OF_CHAT


def source_in_words(record: Record) -> str:
    """Where a chat is from, for a line."""
    meta = record.meta
    return (
        f"imported from {meta.get('file')}, sha256 {str(meta.get('sha256'))[:12]}: "
        f"{meta.get('messages')} messages of a chat with {meta.get('user') or 'somebody'}"
    )


def _record(message: ChatMessage, chat: Chat, source: ChatSource) -> NewRecord:
    said_by = message.name or ("" if message.is_user else chat.character)
    is_own = not message.is_user and not message.is_narrator and said_by == source.played
    text = _readable(message.text) if is_own else " ".join(_readable(message.text).split())
    meta: dict[str, Any] = {LINE: _beside(message, text)}
    if message.is_hidden:
        return NewRecord(kind=RecordKind.SNAPSHOT, role="system", body=text, meta=meta)
    if is_own:
        return NewRecord(kind=RecordKind.ASSISTANT, role="assistant", body=text, meta=meta)
    if message.is_narrator:
        return NewRecord(kind=RecordKind.EVENT, role="user", body=text, meta=meta)
    if message.is_user and source.speaker_ref:
        meta["speaker"] = source.speaker_ref
    name = label_of_name(said_by or chat.user)
    return NewRecord(kind=RecordKind.USER, role="user", name=name, body=text, meta=meta)


def _beside(message: ChatMessage, text: str) -> dict[str, Any]:
    """The values of the line, but for a text that the record says as it is."""
    return {k: v for k, v in message.raw.items() if k != "mes" or v != text}


def label_of_name(name: str) -> str:
    """What somebody is called who is known by a name in a file alone."""
    plain = bare_name(" ".join(_readable(name).split()))
    return mark_name(plain, 1, is_word=is_word_of_the_game(plain))


def _readable(text: str) -> str:
    lines = _LINE_END.sub("\n", _CONTROL.sub("", text)).split("\n")
    return "\n".join(_BLANKS.sub(" ", line).strip() for line in lines).strip()


def chat_of_records(
    records: Iterable[Record], *, npc_name: str, partner_name: str
) -> tuple[Mapping[str, Any] | None, Iterator[Mapping[str, Any]]]:
    """The header of a chat and its messages, of all that was said in a conversation.

    What was taken in is what it was; words that were corrected are the newer ones. The records of a
    game that are no messages of anybody are left out: texts of prompts, tools, summaries.
    """
    said: dict[str, Record] = {}
    header: Mapping[str, Any] | None = {
        "user_name": partner_name,
        "character_name": npc_name,
        "create_date": "",
        "chat_metadata": {},
    }
    for record in records:
        if is_source(record):
            header = record.meta["header"]
            npc_name, partner_name = record.meta["played"], record.meta["user"] or partner_name
        elif LINE in record.meta or record.kind in _TOLD:
            said[str(record.meta.get(CORRECTS) or record.place)] = record
    names = _Names(npc=npc_name, partner=partner_name)
    return header, (_line(record, names) for record in said.values() if not record.is_erased)


_TOLD: Final = CONVERSATION - {
    RecordKind.TOOL_CALL,
    RecordKind.TOOL_RESULT,
    RecordKind.SUMMARY,
    RecordKind.REMINDER,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    npc: str
    partner: str


def _line(record: Record, names: _Names) -> Mapping[str, Any]:
    if (kept := record.meta.get(LINE)) is not None:
        is_corrected = CORRECTS in record.meta
        return {**kept, "mes": record.body if is_corrected else kept.get("mes", record.body)}
    is_told = record.kind is RecordKind.EVENT
    is_user = record.role == "user" and not is_told
    speaker = (record.name or names.partner) if is_user else "" if is_told else names.npc
    return {
        "name": speaker or "System",
        "is_user": is_user,
        "is_system": False,
        "send_date": int(record.created_at * 1000),
        "mes": record.body,
        "extra": {"type": NARRATOR} if is_told else {},
    }
