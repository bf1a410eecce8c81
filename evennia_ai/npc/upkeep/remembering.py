"""Check and store what an NPC learns, and find what it recalls.

The tools and the idle time use this module. Texts that a builder writes as memories are not checked
by its rules, which protect the persona. What was learnt in private is marked as private to the
partner.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from evennia.utils import logger

from evennia_ai.engine.actors import Actor, trusted
from evennia_ai.engine.history.role_markup import neutralize_markup
from evennia_ai.engine.memory.learning import People, judge_text
from evennia_ai.engine.memory.memories import (
    MAX_TEXT,
    OF_NPC,
    USUAL_IMPORTANCE,
    Memory,
    comparison_words,
)
from evennia_ai.engine.memory.recalling import (
    MemorySettings,
    Moment,
    RecallRules,
    Score,
    is_open,
    score_memories,
)
from evennia_ai.engine.memory.scenes import scene_of
from evennia_ai.engine.prompt.messages import Message
from evennia_ai.engine.prompt.names import remove_mark
from evennia_ai.engine.text.word_forms import Languages
from evennia_ai.npc.inputs.facts import hours_now
from evennia_ai.npc.senses.labels import label_of
from evennia_ai.npc.senses.presence import bystanders, names_of, object_of, seen_here
from evennia_ai.npc.senses.text import one_line, plain_name, strip_markup
from evennia_ai.store import memories
from evennia_ai.store.core.snapshots import one_transaction
from evennia_ai.store.history.record_rows import ConversationRef
from evennia_ai.store.history.windows import windows

THE_NPC: Final = trusted(OF_NPC)
"""The actor of everything that an NPC remembers or forgets by itself."""
MOST_RECALLED: Final = 20
SCENE_MESSAGES: Final = 12
"""The number of newest messages from which a memory takes the words of its scene."""
LEAST_SHARE: Final = 1 / 3
"""A memory is found only if its own words score at least this share of the best memory's score."""

SWITCHED_OFF: Final = "nothing is remembered in this game (EVENNIA_AI_MEMORY)"
EMPTY: Final = "there is no text"
TOO_LONG: Final = f"it is over {MAX_TEXT} characters long; say one thing, shortly"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """The result of remembering. `refusal` says why nothing was stored, "" if something was.

    `dropped` is the number of other memories that were dropped to make room.
    """

    memory: Memory | None = None
    is_merged: bool = False
    dropped: int = 0
    refusal: str = ""

    def __str__(self) -> str:
        if self.memory is None:
            return f"Not remembered: {self.refusal}."
        known = " It was known already and counts more now." if self.is_merged else ""
        return f"Remembered: {self.memory.text}{known}"


def remember(
    npc_ref: str,
    text: str,
    *,
    importance: int = USUAL_IMPORTANCE,
    about: str = "",
    where: ConversationRef,
    source: int = 0,
    rules: MemorySettings,
    lines: Sequence[Message] | None = None,
) -> Remembered:
    """Store something that an NPC learnt in a conversation, if the rules allow it.

    Args:
        about: The reference of the person it is about, "" for the world. In private, it is always
            about the partner.
        source: The number of the turn.
        lines: The messages from which it was learnt; None: the newest ones.

    Raises:
        StoreError: Nothing was written.
    """
    new = judge_memory(
        npc_ref,
        text,
        importance=importance,
        about=about,
        where=where,
        source=source,
        rules=rules,
        lines=lines,
    )
    if isinstance(new, str):
        return Remembered(refusal=new)
    return keep_memory(npc_ref, new, by=THE_NPC, most=rules.kept)


def judge_memory(
    npc_ref: str,
    text: str,
    *,
    importance: int,
    about: str,
    where: ConversationRef,
    source: int,
    rules: MemorySettings,
    lines: Sequence[Message] | None = None,
) -> Memory | str:
    """Return the memory that the NPC would get, or the reason why it must not get it.

    The arguments are those of `remember`. This runs in the reactor's thread, because it uses
    objects of the game.
    """
    if not rules.enabled:
        return SWITCHED_OFF
    is_private = where.kind == "private"
    about = where.partner_ref if is_private else about
    plain = plain_text(text)
    if refusal := _text_problem(plain):
        return refusal
    found = judge_text(plain, people_of(npc_ref, about=about))
    told = _with_label(found.text, npc_ref, about=about)
    if refusal := found.refusal or _text_problem(told):
        return refusal
    now = hours_now()
    return Memory(
        id=memories.NEW,
        text=told,
        about=about,
        importance=importance,
        created_at=now,
        recalled_at=now,
        learnt="private" if is_private else "aloud",
        place_ref=where.place_ref,
        turn=source,
        author=OF_NPC,
        scene=_scene(told, npc_ref, where, lines, rules.recall.languages),
    )


def keep_memory(npc_ref: str, new: Memory, *, by: Actor, most: int) -> Remembered:
    """Store a memory that was checked. Log which other memories were dropped to make room."""
    added = memories.add_memory(npc_ref, new, by=by, most=most)
    if added.dropped:
        gone = ", ".join(memory.origin for memory in added.dropped)
        logger.log_info(
            f"evennia_ai: NPC {npc_ref} had too many memories; the least important were dropped:"
            f" {gone}"
        )
    return Remembered(memory=added.memory, is_merged=added.is_merged, dropped=len(added.dropped))


def recall(
    npc_ref: str,
    query: str,
    *,
    about: str | None = None,
    where: ConversationRef,
    limit: int = 5,
    rules: MemorySettings,
) -> list[Memory]:
    """Return the memories that match the words, the best first; without words, all memories.

    What a person whispered is found only in private with that person. Each result counts as
    recalled now.

    Args:
        about: The reference of a person, "" for the world; None: anything.
    """
    if not rules.enabled:
        return []
    moment = Moment(hours=hours_now(), confidant_ref=where.partner_ref)
    found = [
        memory
        for memory in memories.held_by(npc_ref).memories
        if is_open(memory, moment) and about in (None, memory.about)
    ]
    said = comparison_words(query, rules.recall.languages)
    ranked = _rank_memories(found, said, hours=moment.hours, rules=rules.recall)
    best = ranked[: max(0, min(limit, MOST_RECALLED))]
    with one_transaction(f"recalling memories of NPC {npc_ref}"):
        memories.mark_recalled(npc_ref, (memory.id for memory in best), at_hours=moment.hours)
    return best


def plain_text(text: str) -> str:
    """Return a text as a memory stores it: one line, without markup or forms of chat messages."""
    return neutralize_markup(one_line(strip_markup(text)))


def is_about_the_npc_itself(npc_ref: str, text: str, *, about: str) -> bool:
    """True if a text says what the NPC is or has to do. No model may add such a memory.

    Args:
        about: The person whom the memory is about, "" for nobody.
    """
    return bool(judge_text(text, people_of(npc_ref, about=about)).refusal)


def people_of(npc_ref: str, *, about: str = "") -> People:
    """Return the NPC's names, and the names of the people whom its memories may be about."""
    npc = object_of(npc_ref)
    if npc is None:
        return People(own_names=(f"NPC {npc_ref}",), is_about_somebody=bool(about))
    own = dict.fromkeys((*npc.ai.own_names, *names_of(npc)))
    others = [name for other in bystanders(npc) for name in names_of(other)]
    someone = object_of(about) if about else None
    return People(
        own_names=tuple(own),
        other_names=tuple(dict.fromkeys([*others, *(names_of(someone) if someone else ())])),
        is_about_somebody=bool(about),
    )


def _with_label(text: str, npc_ref: str, *, about: str) -> str:
    """Replace the bare name of a person by the full label, if another person has the bare name.

    Models leave out the mark of a label. Without it, the memory would be about the other person.
    """
    npc, person = object_of(npc_ref), object_of(about)
    label = label_of(npc, person) if npc is not None and person is not None else ""
    name = remove_mark(label)
    if name == label or label in text:
        return text
    return re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", lambda _: label, text, flags=re.IGNORECASE)


def _scene(
    text: str,
    npc_ref: str,
    where: ConversationRef,
    lines: Sequence[Message] | None,
    languages: Languages,
) -> str:
    """Return the scene of a memory: words of the place, the people present, and what was said.

    If `lines` are given, only their speakers count as present, because others may have come later.
    """
    npc, place = object_of(npc_ref), object_of(where.place_ref)
    there = [] if place is None else [plain_name(place.key)]
    if lines is None:
        history = windows(where.id).history
        lines = history.between(history.newest_from(SCENE_MESSAGES), history.stop)
        there += [plain_name(other.key) for other in (seen_here(npc) if npc is not None else ())]
    return scene_of(text, lines, there=there, languages=languages)


def _text_problem(text: str) -> str:
    if not text:
        return EMPTY
    return TOO_LONG if len(text) > MAX_TEXT else ""


def _rank_memories(
    found: Sequence[Memory], said: frozenset[str], *, hours: float, rules: RecallRules
) -> list[Memory]:
    """Return the memories that match the words, the best first; without words, sort all by score.

    A memory is left out if its own words match far less than those of the best one. The scene and
    neighbouring memories count only if the own words of no memory match.
    """
    scores = score_memories(found, hours=hours, said=said, rules=rules)
    pairs = [*zip(found, scores, strict=True)]
    if not said:
        return [memory for memory, _ in sorted(pairs, key=_by_score)]
    least = max((score.parts.own for score in scores), default=0.0) * LEAST_SHARE
    fitting = [pair for pair in pairs if pair[1].relevance and pair[1].parts.own >= least]
    return [memory for memory, _ in sorted(fitting, key=_by_relevance)]


def _by_score(pair: tuple[Memory, Score]) -> tuple[float, int]:
    memory, score = pair
    return -score.total, memory.id


def _by_relevance(pair: tuple[Memory, Score]) -> tuple[float, float, int]:
    return -pair[1].relevance, *_by_score(pair)
