"""Chats of a folder: each becomes the history of the NPC that plays its character."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from hashlib import file_digest

from evennia_ai.cli.game.cast import which
from evennia_ai.cli.game.folder.authored import Taking
from evennia_ai.cli.game.folder.judged import Judged, left_out
from evennia_ai.cli.game.folder.places import FolderFile
from evennia_ai.engine.errors import FormatError
from evennia_ai.formats.chats.chat import Chat, list_import_losses, read_chat
from evennia_ai.formats.chats.chat_records import ChatSource, find_played
from evennia_ai.store.history.chats import import_chat, imported_chat
from evennia_ai.store.history.record_rows import ConversationRef


def judged_chat(file: FolderFile, taking: Taking) -> Iterator[Judged]:
    """Judge a chat with one character, after whom its folder is named."""
    chat = _read(file)
    folder = file.path.parent.name
    names = (*taking.card_names.get(folder, ()), chat.character, folder, *chat.characters[:1])
    names = tuple(dict.fromkeys(filter(None, names)))
    refs = taking.cast.npcs_called(names)
    if len(refs) != 1:
        yield left_out("chat", file.where, _nobody(names, refs))
        return
    yield _of_npc(file, chat, refs[0], taking=taking, played=find_played(chat, names))


def judged_group_chat(file: FolderFile, taking: Taking) -> Iterator[Judged]:
    """Judge a group chat: once for each speaker in it who is an NPC of the game."""
    chat = _read(file)
    by_name = {name: taking.cast.npcs_called([name]) for name in chat.characters}
    found = {name: refs[0] for name, refs in by_name.items() if len(refs) == 1}
    if not found:
        yield left_out("group chat", file.where, _nobody(chat.characters, ()))
    for name, ref in found.items():
        yield _of_npc(file, chat, ref, taking=taking, played=name)


def _read(file: FolderFile) -> Chat:
    try:
        with file.path.open("rb") as opened:
            return read_chat(opened.readline, where=file.path.name)
    except OSError as error:
        problem = f"{file.path.name}: cannot be read: {error.strerror}"
        raise FormatError("chat", problem) from error


def _of_npc(file: FolderFile, chat: Chat, ref: str, *, taking: Taking, played: str) -> Judged:
    """Judge a chat as the history of one NPC."""
    kind = file.kind
    with file.path.open("rb") as opened:
        digest = file_digest(opened, "sha256").hexdigest()
    where = f"{file.where} (as {played})" if kind == "group chat" else file.where
    name = f"#{ref}"
    if imported_chat(ref, chat) is not None:
        return Judged(kind=kind, where=where, name=name, fate="there")
    source = ChatSource(file=file.where, sha256=digest, played=played, by=taking.by)
    write: Callable[[], ConversationRef] = partial(import_chat, chat, source, npc_ref=ref)
    notices = list_import_losses(chat)
    told = f"becomes a conversation of NPC #{ref}, {len(chat.messages)} messages"
    return Judged(
        kind=kind, where=where, name=name, fate="take", why=told, notices=notices, write=write
    )


def _nobody(names: Sequence[str], refs: Sequence[str]) -> str:
    named = names[0][:60] if names else "its character"
    if refs:
        return f"{named} could be {which(refs)}; ai/import imports it for one of them"
    return (
        f"no NPC of the game is called or plays {named}; approve the card and card/assign it, then"
        " run this again: what is there already stays as it is"
    )
