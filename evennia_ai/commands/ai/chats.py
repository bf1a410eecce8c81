"""`ai/import` and `ai/export` for chats, conversations that other programs had with a character.

The command first says what a chat would become and imports it only after a "yes". Transcripts, the
files that this program writes itself, are handled by `evennia_ai.commands.ai.history`.
"""

import io
import re
from collections.abc import Generator
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from evennia_ai.commands.ai.history import (
    SUFFIX,
    exportable,
    exported,
    file_read,
    files,
    imported,
)
from evennia_ai.commands.ai.memory import player_named
from evennia_ai.commands.base import CommandError, Run, StrictCommand, counted, name_of
from evennia_ai.commands.folder import new_file, shown_path
from evennia_ai.commands.naming import npc_and_number, npc_named
from evennia_ai.engine.actors import Actor
from evennia_ai.formats.chats.chat import Chat, is_chat, list_import_losses, read_chat
from evennia_ai.formats.chats.chat_records import ChatSource, find_played
from evennia_ai.formats.file_kinds import describe_file
from evennia_ai.npc.senses.presence import NPC
from evennia_ai.npc.views.view import char_name_of
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.history.chats import exported_chat, import_chat
from evennia_ai.store.history.record_rows import ConversationRef

ADMIN_LOCK: Final = "perm(Admin)"
USAGE: Final = "ai/import <npc> = <file> [with <player>] [as <name in the chat>]"
# What may follow the name of the file: the player of the chat, and the NPC's name in it.
_BEHIND: Final = re.compile(r"(?: +with +(?P<player>.+?))?(?: +as +(?P<played>.+?))?\s*", re.I)
_MOST_OTHERS: Final = 8


class FileSwitches(StrictCommand):
    """The switches `ai/export` and `ai/import`."""

    @property
    def _admin(self) -> Actor:
        """Return the caller as an actor with the right of an Admin. An import needs this right."""
        return self.acting_under(f"cmd:{ADMIN_LOCK}")

    def export(self) -> None:
        usage = "ai/export <npc>[/<conversation>] [= <name>]"
        npc, number = npc_and_number(self.caller, self.wanted(usage), what="conversation")
        if self.rhs is None:
            self.say(exported(self.caller, npc, number))
            return
        if not self.rhs:
            raise CommandError(f"Usage: {usage}. Nothing was written.")
        self.say(_export_chat(npc, exportable(self.caller, npc, number), self.rhs))

    def import_file(self) -> Run:
        refuse_all_but_admins(self.caller, "import")
        npc = npc_named(self.caller, self.wanted(USAGE))
        if not self.rhs:
            self.show(files())
            return None
        name, rest = _file_and_rest(self.rhs)
        path, content = file_read(name)
        if is_chat(content):
            return self._chat_imported(npc, path, content, rest)
        if told := describe_file(content, wanted="chat"):
            raise CommandError(f"{path.name}: {told}. Nothing was imported.")
        if rest.strip():
            raise CommandError(
                f"{path.name} is a transcript and names its speakers itself; type only the file"
                " name. Nothing was imported."
            )
        self.say(imported(npc, path, content, by=self._admin))
        return None

    def _chat_imported(
        self, npc: NPC, path: Path, content: bytes, rest: str
    ) -> Generator[Any, Any, None]:
        chat, source = _read_chat(self.caller, npc, path, content, rest, by=self._admin)
        if not (yield from self.agreed(f"{_explain_import(chat, source, npc)} Import it?")):
            self.say("Nothing was imported.")
            return
        made = import_chat(chat, source, npc_ref=npc.ai.ref)
        self.say(
            f"Imported it as conversation {made.id} of {npc.key}. ai/history {npc.key} shows it,"
            f" ai/verify {npc.key} checks it, ai/export {npc.key}/{made.id} = <name> writes it as"
            " a chat."
        )


def refuse_all_but_admins(caller: Any, switch: str) -> None:
    """Raise CommandError unless the caller is an Admin."""
    if not caller.locks.check_lockstring(caller, ADMIN_LOCK):
        raise CommandError(f"ai/{switch} is for Admins. Nothing was changed.")


def _file_and_rest(text: str) -> tuple[str, str]:
    """Split what was typed into the name of the file and the rest after it."""
    name, suffix, rest = text.partition(SUFFIX)
    return f"{name}{suffix}", rest


def _read_chat(
    caller: Any, npc: NPC, path: Path, content: bytes, rest: str, *, by: Actor
) -> tuple[Chat, ChatSource]:
    """Return the chat of a file and where it comes from. `rest` was typed after the file's name."""
    told = _BEHIND.fullmatch(rest)
    if told is None:
        raise CommandError(f"Usage: {USAGE}. Nothing was imported.")
    chat = read_chat(io.BytesIO(content).readline, where=path.name)
    names = (npc.key, char_name_of(npc.key, npc.ai.ref))
    source = ChatSource(
        file=path.name,
        sha256=sha256(content).hexdigest(),
        played=find_played(chat, names, wanted=told["played"] or ""),
        speaker_ref=player_named(caller, told["player"]) if told["player"] else "",
        by=by,
    )
    return chat, source


def _export_chat(npc: NPC, conversation: ConversationRef, name: str) -> str:
    """Write a conversation as a chat into a new file of the card folder. Return a line about it.

    The caller has already checked that nothing in the conversation is hidden from the builder.
    """
    partner = name_of(conversation.partner_ref).partition(" (#")[0]
    pieces = exported_chat(conversation, npc_name=npc.key, partner_name=partner)
    content = b"".join(pieces)
    plain = name.strip().removesuffix(SUFFIX)
    path = new_file(conf().card_folder, plain, content, suffix=SUFFIX)
    return (
        f"Wrote conversation {conversation.id} of {npc.key} as a chat, {len(content)} bytes, to"
        f" {path.name} in {shown_path(conf().card_folder)}. Anyone who has the file can read all"
        " of it."
    )


def _explain_import(chat: Chat, source: ChatSource, npc: NPC) -> str:
    """Return sentences that say what a chat contains and what it would become."""
    hidden = sum(message.is_hidden for message in chat.messages)
    swiped = sum(message.swipes > 1 for message in chat.messages)
    others = [name for name in chat.characters if name != source.played]
    user = f"'{chat.user}'" if chat.user else "a user without a name"
    has = (
        f"{source.file} (sha256 {source.sha256[:12]}) has"
        f" {counted(len(chat.messages), 'message')} of a chat with {user}, in which {npc.key} is"
        f" '{source.played}'"
    )
    of_swipes = "with several answers, of which only the shown one is imported"
    facts = [
        has,
        f"{counted(hidden, 'message')} that SillyTavern hides from prompts" if hidden else "",
        f"{counted(swiped, 'message')} {of_swipes}" if swiped else "",
        f"other speakers: {', '.join(others[:_MOST_OTHERS])}" if others else "",
        *list_import_losses(chat),
    ]
    becomes = (
        f"It becomes the private conversation of {npc.key} and {name_of(source.speaker_ref)},"
        " which they continue."
        if source.speaker_ref
        else f"It becomes a conversation of its own that {npc.key} does not go on with; 'with"
        " <player>' behind the file makes it that player's."
    )
    return f"{'; '.join(filter(None, facts))}. {becomes}"
