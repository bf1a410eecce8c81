"""What an NPC remembers, as commands and pages show it to one viewer."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from evennia_ai.engine.memory.memories import Memory
from evennia_ai.engine.memory.recalling import Moment, Score, is_open, score_memories
from evennia_ai.engine.memory.scenes import words_said
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.memo import Memo
from evennia_ai.npc.inputs.facts import hours_now
from evennia_ai.npc.recording import heard
from evennia_ai.npc.senses.presence import object_of, room_ref_of
from evennia_ai.npc.views.visibility import Seer
from evennia_ai.services.settings.conf import conf
from evennia_ai.store import memories as store
from evennia_ai.store.history.windows import windows

NOBODY: Final = Moment()
"""A moment without a private partner. Only memories of things said aloud are open in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedMemory:
    """One memory as the viewer may see it, with its score."""

    id: int
    text: str
    """The text, or the mark that replaces it for this viewer."""
    about: str
    importance: int
    turn: int
    author: str
    private: bool
    """True if the NPC recalls it only in private with the person whom it is about."""
    score: float
    score_explained: str


def list_memories(ref: str, seer: Seer) -> tuple[ListedMemory, ...]:
    """Return what an NPC remembers, what best fits the last words in its room first.

    A score reveals which words a memory has, so hidden words do not count. Call this in the
    reactor's thread, which owns the history.
    """
    held = [visible_memory(seer, memory) for memory in store.held_by(ref).memories]
    npc = object_of(ref)
    place = room_ref_of(npc) if npc is not None else ""
    key = heard.ConversationKey(kind="room", place_ref=place or "nowhere")
    where = heard.find_conversation(ref, key)
    history = windows(where.id).history if where is not None else History()
    ranked = sorted(_scored(held, history), key=lambda pair: (-pair[1].total, pair[0].id))
    return tuple(
        ListedMemory(
            id=memory.id,
            text=memory.text,
            about=memory.about,
            importance=memory.importance,
            turn=memory.turn,
            author=memory.author,
            private=not is_open(memory, NOBODY),
            score=score.total,
            score_explained=str(score),
        )
        for memory, score in ranked
    )


def visible_memory(seer: Seer, memory: Memory) -> Memory:
    """Return the memory as the viewer may see it.

    Hidden words are removed, so they cannot score.
    """
    mark = seer.memory(memory)
    return replace(memory, text=mark, scene="", _memo=Memo()) if mark else memory


def _scored(held: list[Memory], history: History) -> Iterator[tuple[Memory, Score]]:
    """Yield memories with their scores.

    Whispered memories are scored separately: no prompt shows them together with the others.
    """
    rules = conf().memory.recall
    said = words_said(history, None, messages=rules.scan_messages)
    for is_said_aloud in (True, False):
        some = [memory for memory in held if is_open(memory, NOBODY) == is_said_aloud]
        scores = score_memories(some, hours=hours_now(), said=said, rules=rules)
        yield from zip(some, scores, strict=True)
