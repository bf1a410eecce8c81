"""Convert SillyTavern chats to records of an NPC's history, and back.

The first record holds the source: the file, its hash, and the builder who imported the file. Each
message becomes one of the records after it. Lines of the character that the NPC plays become the
NPC's own lines. All other lines get the role user, because a file proves nobody's identity.
Messages that SillyTavern hides from prompts become records that prompts of this package leave out
too, and so do lines that are no messages. Records keep all values of their lines, so an export
equals the import. Messages that were said in the game after the import are exported in
SillyTavern's format.
"""

import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.history.corrections import CORRECTS
from evennia_ai.engine.history.records import CONVERSATION, NewRecord, Record, RecordKind
from evennia_ai.engine.prompt.names import bare_name, is_word_of_the_game, mark_name
from evennia_ai.formats.chats.chat import (
    KIND,
    NARRATOR,
    Chat,
    ChatMessage,
    UnreadLine,
    values_sha256,
)

OF_CHAT: Final = "chat"
"""The value of the key `of` in the `meta` of the record that holds a chat's source."""
VALUES: Final = "values_sha256"
"""The key in the `meta` of a chat's source record that holds the chat's hash."""
LINE: Final = "line"
"""The key in the `meta` of a message's record that holds the JSON values of its line."""
UNREAD: Final = "unread"
"""The key in the `meta` of a record that holds a line that is no message, as Base64."""
# Matches control characters except line ends, which `_LINE_END` replaces with newlines.
_CONTROL: Final = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")
_LINE_END: Final = re.compile("\r\n|[\n\r\x0b\x0c\x85\u2028\u2029]")
_BLANKS: Final = re.compile(r"[^\S\n]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatSource:
    """The origin of an imported chat: its file, who imports it, and who its speakers are."""

    file: str
    sha256: str
    played: str
    """The name of the character that the NPC plays, as the chat has it."""
    speaker_ref: str = ""
    """The reference of the player's character that spoke as the user.

    It is "" if only the user's name is known.
    """
    by: Actor
    """The builder who imports the chat."""
    group: Mapping[str, Any] | None = None
    """The JSON object of the group whose chat it is, for an export."""


def find_played(chat: Chat, names: Iterable[str], *, wanted: str = "") -> str:
    """Return the name of the character in a chat that an NPC plays.

    In a chat with one character it is that character, even if the NPC has another name.

    Args:
        names: the names of the NPC.
        wanted: the name of the character, if the builder gives one.

    Raises:
        FormatError: no character speaks under such a name; the message lists the characters.
    """
    known = chat.characters
    candidates = [wanted] if wanted else [*names]
    by_fold = {name.casefold().strip(): name for name in reversed(known)}
    for name in candidates:
        if found := by_fold.get(name.casefold().strip()):
            return found
    if not wanted and len(known) == 1:
        return known[0]
    there = ", ".join(f"'{name[:60]}'" for name in known[:12])
    speakers = f"there are {there}" if there else "only the user speaks in it"
    raise FormatError(KIND, f"'{candidates[0][:60]}' says nothing in this chat; {speakers}")


def chat_to_records(chat: Chat, source: ChatSource) -> Iterator[NewRecord]:
    """Yield the records of a chat: one for its source, then one for each line in order."""
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
            **({"group": dict(source.group)} if source.group else {}),
        },
    )
    lines: list[ChatMessage | UnreadLine] = [*chat.messages, *chat.unread]
    for line in sorted(lines, key=lambda one: one.line):
        if isinstance(line, UnreadLine):
            meta = {UNREAD: b64encode(line.content).decode()}
            yield NewRecord(kind=RecordKind.SNAPSHOT, role="system", meta=meta)
        else:
            yield _message_to_record(line, chat, source)


def is_chat_source(record: NewRecord | Record) -> bool:
    """True if a record holds the source of an imported chat."""
    return record.kind is RecordKind.SNAPSHOT and record.meta.get("of") == OF_CHAT


def describe_source(record: Record) -> str:
    """Return one line on the source of an imported chat: file, hash, number of messages."""
    meta = record.meta
    return (
        f"imported from {meta.get('file')}, sha256 {str(meta.get('sha256'))[:12]}: "
        f"{meta.get('messages')} messages of a chat with {meta.get('user') or 'somebody'}"
    )


def _message_to_record(message: ChatMessage, chat: Chat, source: ChatSource) -> NewRecord:
    speaker = message.name or ("" if message.is_user else chat.character)
    is_own = not message.is_user and not message.is_narrator and speaker == source.played
    text = _clean_text(message.text)
    if not is_own:
        text = " ".join(text.split())
    # The body of the record already holds the text, so `meta` repeats the text only if cleaning
    # changed it.
    values = {name: value for name, value in message.raw.items() if name != "mes" or value != text}
    meta: dict[str, Any] = {LINE: values}
    if message.is_hidden:
        return NewRecord(kind=RecordKind.SNAPSHOT, role="system", body=text, meta=meta)
    if is_own:
        return NewRecord(kind=RecordKind.ASSISTANT, role="assistant", body=text, meta=meta)
    if message.is_narrator:
        return NewRecord(kind=RecordKind.EVENT, role="user", body=text, meta=meta)
    if message.is_user and source.speaker_ref:
        meta["speaker"] = source.speaker_ref
    name = name_label(speaker or chat.user)
    return NewRecord(kind=RecordKind.USER, role="user", name=name, body=text, meta=meta)


def name_label(name: str) -> str:
    """Return the label for a speaker of whom only the name in a file is known."""
    plain = bare_name(" ".join(_clean_text(name).split()))
    return mark_name(plain, 1, is_word=is_word_of_the_game(plain))


def _clean_text(text: str) -> str:
    """Remove control characters, replace all line ends with newlines and strip each line."""
    lines = _LINE_END.sub("\n", _CONTROL.sub("", text)).split("\n")
    return "\n".join(_BLANKS.sub(" ", line).strip() for line in lines).strip()


def records_to_chat(
    records: Iterable[Record], *, npc_name: str, partner_name: str
) -> tuple[Mapping[str, Any] | None, Iterator[Mapping[str, Any] | bytes]]:
    """Return the header and the lines of a chat from the records of a conversation.

    Imported lines are unchanged, except that corrected records have their new text. Records that
    nobody said, such as tool calls and summaries, are left out.
    """
    # by the record's place in the history, so that a correction replaces the record it corrects
    messages: dict[str, Record] = {}
    header: Mapping[str, Any] | None = {
        "user_name": partner_name,
        "character_name": npc_name,
        "create_date": "",
        "chat_metadata": {},
    }
    for record in records:
        if is_chat_source(record):
            header = record.meta["header"]
            npc_name, partner_name = record.meta["played"], record.meta["user"] or partner_name
        elif LINE in record.meta or UNREAD in record.meta or record.kind in _EXPORTED:
            messages[str(record.meta.get(CORRECTS) or record.place)] = record
    return header, (
        _record_to_line(record, npc_name=npc_name, partner_name=partner_name)
        for record in messages.values()
        if not record.is_erased
    )


_EXPORTED: Final = CONVERSATION - {
    RecordKind.TOOL_CALL,
    RecordKind.TOOL_RESULT,
    RecordKind.SUMMARY,
    RecordKind.REMINDER,
}


def _record_to_line(
    record: Record, *, npc_name: str, partner_name: str
) -> Mapping[str, Any] | bytes:
    if (unread := record.meta.get(UNREAD)) is not None:
        return b64decode(unread)
    if (kept := record.meta.get(LINE)) is not None:
        if CORRECTS not in record.meta:
            return {**kept, "mes": kept.get("mes", record.body)}
        line = {**kept, "mes": record.body}
        swipes, chosen = kept.get("swipes"), kept.get("swipe_id")
        if isinstance(swipes, list) and isinstance(chosen, int) and 0 <= chosen < len(swipes):
            # A line has the chosen answer twice. SillyTavern shows this one after a swipe.
            line["swipes"] = [*swipes[:chosen], record.body, *swipes[chosen + 1 :]]
        return line
    is_narrated = record.kind is RecordKind.EVENT
    is_user = record.role == "user" and not is_narrated
    speaker = (record.name or partner_name) if is_user else "" if is_narrated else npc_name
    return {
        "name": speaker or "System",
        "is_user": is_user,
        "is_system": False,
        "send_date": int(record.created_at * 1000),
        "mes": record.body,
        "extra": {"type": NARRATOR} if is_narrated else {},
    }
