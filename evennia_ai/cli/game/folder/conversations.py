"""Chats of a folder: each becomes the history of the NPC that plays its character."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from hashlib import file_digest
from pathlib import Path
from typing import Final

from evennia_ai.cli.game.cast import which
from evennia_ai.cli.game.folder.authored import Taking
from evennia_ai.cli.game.folder.judged import Judged, left_out
from evennia_ai.cli.game.folder.places import FolderFile
from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import decode_text, one_line, read_bytes, read_json
from evennia_ai.engine.text.columns import clip_text
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


def judged_group(file: FolderFile, taking: Taking) -> Iterator[Judged]:
    """Judge a group: here its members are the NPCs in one room. Its chats keep its file."""
    content = decode_text(read_bytes(file.path, kind="group"), kind="group", where=file.where)
    group = read_json(content, kind="group", where=file.where)
    members = group.get("members") if isinstance(group, dict) else None
    if not isinstance(members, list):
        raise FormatError("group", "it has no list of members")
    chats = group.get("chats")
    for chat in chats if isinstance(chats, list) else ():
        if isinstance(chat, str):
            taking.groups[chat] = group
    stems = [Path(one).stem for one in members if isinstance(one, str)]
    cards = {stem: taking.card_names.get(stem, ("",))[0] for stem in stems}
    cast = [f"card/spawn {name}" for name in cards.values() if name]
    notices = [
        f"{one_line(stem)[:60]} has no card in the folder"
        for stem, name in cards.items()
        if not name
    ]
    muted = group.get("disabled_members")
    names = [cards.get(Path(one).stem, "") for one in muted or () if isinstance(one, str)]
    if quiet := [name for name in names if name]:
        notices.append(f"it mutes {', '.join(quiet)}: ai/pause does the same")
    notices += [words for key, words in _OF_GROUP.items() if group.get(key)]
    metadata = group.get("chat_metadata")
    scenario = metadata.get("scenario") if isinstance(metadata, dict) else None
    if isinstance(scenario, str) and scenario.strip():
        shown = clip_text(one_line(scenario), _SHOWN_SCENARIO)
        notices.append(f"its own scenario, in place of those of its cards: {shown}")
    told = (
        f"type in one room, after card/approve: {'; '.join(cast)}"
        if cast
        else "nobody of it is here"
    )
    yield Judged(
        kind="group",
        where=file.where,
        fate="left out",
        why=f"here the NPCs in one room are a group; {told}. Its chats keep its file",
        notices=tuple(notices),
    )


_SHOWN_SCENARIO: Final = 120
# Settings of a group without a counterpart. Here an NPC speaks if it is addressed or wins a bid.
_OF_GROUP: Final = {
    "activation_strategy": "its rule for the next speaker: here NPCs answer if they are meant",
    "generation_mode": "its joined cards: here each NPC has its own prompt with its own card",
    "allow_self_responses": "its members answer themselves: here NPCs do not",
}


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
    source = ChatSource(
        file=file.where,
        sha256=digest,
        played=played,
        by=taking.by,
        group=taking.groups.get(file.path.stem) if kind == "group chat" else None,
    )
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
