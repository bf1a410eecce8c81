"""`ai/memory` shows and changes what an NPC remembers. `ai/forget` erases it.

`ai/memory <npc>/<page>` is a page of the list and `<npc>/#<id>` is one memory with its changes.
With "=" a memory is added, rewritten, made more or less important, or removed. `ai/forget` is for
Admins and asks before it erases. It erases what a player whispered and what NPCs remember of the
player, or what was said in a room and what NPCs learnt from it.
"""

import re
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, Final

from evennia_ai.commands.base import CommandError, and_more, counted, name_of, revision_in_words
from evennia_ai.commands.forgetting import Asked
from evennia_ai.commands.naming import npc_and_number, npc_named, place_named, player_called
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.memory.memories import MAX_TEXT, USUAL_IMPORTANCE, Memory
from evennia_ai.engine.prompt.components import Scope
from evennia_ai.engine.text.columns import WIDTH, clip_text, escape_controls, wrap_text
from evennia_ai.npc.inputs.facts import hours_now
from evennia_ai.npc.mind.memory_list import ListedMemory, list_memories, visible_memory
from evennia_ai.npc.mind.own_data import counts_in_words
from evennia_ai.npc.mind.viewers import seer_for
from evennia_ai.npc.senses.presence import NPC
from evennia_ai.npc.upkeep.remembering import is_about_the_npc_itself, keep_memory, plain_text
from evennia_ai.npc.views.visibility import Seer
from evennia_ai.services.settings.conf import conf
from evennia_ai.store import memories as store
from evennia_ai.store.erasing import (
    erasable_room,
    forget_room,
    npcs_of_room,
    people,
    private_partners,
    room_refs,
)
from evennia_ai.store.memories import MemoryChange, changes_of

USAGE: Final = "ai/memory <npc>[/<page>], ai/memory <npc>/#<id>, each with '= ...' to write"
FORGET_USAGE: Final = "ai/forget [<npc>] = <player>, or ai/forget here | room:<room>"
PAGE: Final = 12
_MOST_NAMES: Final = 8
_ONE: Final = re.compile(r"(?P<npc>.+)/\s*#(?P<id>[0-9]{1,15})\s*")
_ABOUT: Final = re.compile(r"about\s+(?P<who>[^:]{1,80}):\s*(?P<text>.+)", re.IGNORECASE)
_IMPORTANCE: Final = re.compile(r"importance\s+(?P<number>-?[0-9]{1,4})", re.IGNORECASE)
_REMOVE: Final = ("remove", "off")
_DAY_HOURS: Final = 24


def memory_lines(caller: Any, text: str) -> list[str]:
    """Return a page of what the NPC remembers, or one memory with its changes."""
    one = _ONE.fullmatch(text)
    if one is not None:
        return _one_lines(caller, npc_named(caller, one["npc"].strip()), int(one["id"]))
    npc, page = npc_and_number(caller, text, what="page")
    return _list_lines(caller, npc, page or 1)


def write_memory(caller: Any, text: str, words: str, *, by: Actor) -> str:
    """Add or change a memory as typed to the right of "=". Return a line about it."""
    if not words:
        raise CommandError(f"There is no text after '='; nothing was changed. Usage: {USAGE}")
    one = _ONE.fullmatch(text)
    if one is None:
        return _add_memory(caller, npc_named(caller, text), words, by=by)
    npc, number = npc_named(caller, one["npc"].strip()), int(one["id"])
    _refuse_hidden(caller, npc, number)
    return _change_memory(npc, number, words, by=by)


def _refuse_hidden(caller: Any, npc: NPC, memory_id: int) -> None:
    """Raise CommandError if a memory is hidden from the caller: the answer would quote its text."""
    memory = store.held_by(npc.ai.ref).find(memory_id)
    mark = seer_for(caller, npc.ai.ref).memory(memory) if memory is not None else ""
    if mark:
        raise CommandError(f"Memory #{memory_id} of {npc.key}: {mark} Nothing was changed.")


def _add_memory(caller: Any, npc: NPC, words: str, *, by: Actor) -> str:
    given = _ABOUT.fullmatch(words)
    about = ""
    if given is not None:
        about = player_called(caller, given["who"].strip(), known=()).ref
    text, now = _checked_text(given["text"] if given else words), hours_now()
    new = Memory(
        id=store.NEW,
        text=text,
        about=about,
        importance=USUAL_IMPORTANCE,
        created_at=now,
        recalled_at=now,
        place_ref=str(npc.location.id) if npc.location else "",
        author=by.name,
    )
    done = keep_memory(npc.ai.ref, new, by=by, most=conf().memory.kept)
    assert done.memory is not None
    advice = ""
    if is_about_the_npc_itself(npc.ai.ref, text, about=about):
        advice = (
            " It says what the NPC is or has to do. Write that in its card or in the component"
            " character_context instead: they are never forgotten."
        )
    what = "knew this already, and it counts more now" if done.is_merged else "remembers this now"
    return f"{npc.key} {what}: {_title(done.memory)}.{advice}"


def _change_memory(npc: NPC, memory_id: int, words: str, *, by: Actor) -> str:
    if words.lower() in _REMOVE:
        gone = store.remove_memory(npc.ai.ref, memory_id, by=by)
        return f"{npc.key} no longer remembers {_title(gone)}: {gone.text}"
    importance = _IMPORTANCE.fullmatch(words)
    if importance is not None:
        number = int(importance["number"])
        memory = store.change_memory(npc.ai.ref, memory_id, by=by, importance=number)
    else:
        memory = store.change_memory(npc.ai.ref, memory_id, by=by, text=_checked_text(words))
    return f"{npc.key}: {_title(memory)}, revision {memory.revision}: {memory.text}"


def _checked_text(words: str) -> str:
    text = plain_text(words)
    if not text:
        raise CommandError("Without its markup this text is empty; nothing was changed.")
    if len(text) > MAX_TEXT:
        raise CommandError(
            f"A memory has at most {MAX_TEXT} characters, this text has {len(text)}; write one"
            " fact in each. Nothing was changed."
        )
    return text


def _title(memory: Memory) -> str:
    about = f" about {name_of(memory.about)}" if memory.about else ""
    return f"memory #{memory.id}{about}, importance {memory.importance}"


def _list_lines(caller: Any, npc: NPC, page: int) -> list[str]:
    """Return a page of memories, those that best fit what was said last in the NPC's room first."""
    ranked = list_memories(npc.ai.ref, seer_for(caller, npc.ai.ref))
    if not ranked:
        return wrap_text(
            f"{npc.key} remembers nothing yet; write something: ai/memory {npc.key} = <text>", WIDTH
        )
    pages = -(-len(ranked) // PAGE)
    if page > pages:
        raise CommandError(f"There is no page {page}; the last one is {pages}.")
    most, switched = conf().memory.kept, "" if conf().memory.enabled else " Memory is off."
    head = (
        f"What {npc.key} remembers, {len(ranked)} of at most {most}, page {page} of {pages};"
        f" scores say how well each fits what was said last in its room.{switched}"
    )
    lines = wrap_text(head, WIDTH)
    for memory in ranked[(page - 1) * PAGE : page * PAGE]:
        lines += _row(memory)
    if page < pages:
        lines.append(clip_text(f"More: ai/memory {npc.key}/{page + 1}", WIDTH))
    return lines


def _row(memory: ListedMemory) -> Iterator[str]:
    yield from wrap_text(f"#{memory.id}  {memory.score_explained}", WIDTH)
    for line in wrap_text(escape_controls(memory.text), WIDTH - 6):
        yield f"      {line}"
    if memory.about:
        told = ", WHISPERED: recalled in private with them alone" if memory.private else ""
        yield clip_text(escape_controls(f"      (about {name_of(memory.about)}{told})"), WIDTH)


def _one_lines(caller: Any, npc: NPC, memory_id: int) -> list[str]:
    """Return one memory and its changes. A removed memory still has its changes."""
    changes = changes_of(npc.ai.ref, memory_id)
    if not changes:
        raise CommandError(f"{npc.key} never had a memory #{memory_id}.")
    memory, seer = store.held_by(npc.ai.ref).find(memory_id), seer_for(caller, npc.ai.ref)
    lines = [clip_text(f"{npc.key} no longer remembers #{memory_id}.", WIDTH)]
    if memory is not None:
        lines = [*wrap_text(f"{npc.key}: {_title(memory)}, {_times(memory)}.", WIDTH)]
        text = escape_controls(visible_memory(seer, memory).text)
        lines += [f"    {line}" for line in wrap_text(text, WIDTH - 4)]
    return [*lines, "Changes:", *_change_lines(changes, seer)]


def _times(memory: Memory) -> str:
    now = hours_now()
    where = f" in {name_of(memory.place_ref)}" if memory.place_ref else ""
    turn = f", turn {memory.turn}" if memory.turn else ""
    how = "whispered" if memory.learnt == "private" else "learnt"
    return (
        f"{how} {_ago(now - memory.created_at)}{where}{turn}, recalled last"
        f" {_ago(now - memory.recalled_at)}, by {memory.author}"
    )


def _ago(hours: float) -> str:
    if hours < _DAY_HOURS:
        return f"{max(0, int(hours))} hours of game time ago"
    return f"{int(hours // _DAY_HOURS)} days of game time ago"


def _change_lines(changes: Sequence[MemoryChange], seer: Seer) -> Iterator[str]:
    for change in changes:
        yield clip_text(escape_controls(revision_in_words(change)), WIDTH)
        if change.value is not None:
            then = visible_memory(seer, Memory(id=change.memory_id, **change.value))
            text = f"importance {then.importance}: {then.text}"
            yield clip_text(escape_controls(f"         {text}"), WIDTH)


def player_named(caller: Any, name: str) -> str:
    """Return the ID of a player. A deleted player can be named by number, such as #12."""
    known = {Scope(kind="player", ref=ref) for ref in (*private_partners(), *people())}
    return player_called(caller, name, known=known).ref


def forget_room_after_yes(
    caller: Any, text: str, *, by: Actor, agreed: Callable[[str], Asked]
) -> Generator[Any, Any, str]:
    """Ask, then erase what all NPCs heard and learnt in a room. Return a line about it."""
    place_ref = _room_ref(caller, text)
    what = f"what was said in {name_of(place_ref)} and what NPCs learnt from it"
    found = erasable_room(place_ref)
    if not (found.said.conversations or found.memories):
        return f"There is nothing to erase of {what}."
    npcs = npcs_of_room(place_ref)
    names = ", ".join(and_more(list(map(name_of, npcs)), most=_MOST_NAMES, more="{} more"))
    lost = f"{counted(len(npcs), 'NPC')} ({names}), {counts_in_words(found)}"
    if not (yield from agreed(f"Erase {what}: {lost}? This cannot be undone.")):
        return "Nothing was erased."
    done = forget_room(place_ref, by=by)
    return (
        f"Erased {what}: {counts_in_words(done)}. What was whispered stays (ai/forget = <player>),"
        " as do memories that builders wrote, exported files and backups."
    )


def _room_ref(caller: Any, text: str) -> str:
    """Return the ID of the room that `here` or `room:<room>` names."""
    if text.lower() != "here" and not text.lower().startswith("room:"):
        raise CommandError(f"Usage: {FORGET_USAGE}. Nothing was erased.")
    known = {Scope(kind="room", ref=ref) for ref in room_refs()}
    return place_named(caller, text, kinds=("here", "room"), known=known, what="ai/forget").ref
