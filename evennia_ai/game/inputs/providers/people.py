"""Providers about those present: who speaks, what they are to the NPC, what they have shown it.

- `speaker`: who is answered;
- `relation`: a few words that its builder or its game gave it, in the NPC's Attribute
  `ai_relations`, a dictionary: the id of a character ("12" or "#12") to words ("an old friend");
- `acquaintance`: how well it knows the speaker, where it remembers more than a prompt has room for
  (what is recalled stands in the component `semantic_memories`);
- `shown`: what those present have shown it before, where the conversation itself no more tells it.
  A thing shown in the part of the history that a prompt still has stands there, and is not told
  again; others are told as long as their record is among those that are kept in memory.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from evennia_ai.game.inputs.facts import hours_now
from evennia_ai.game.recording.heard import records_of_room
from evennia_ai.game.senses.events import Event
from evennia_ai.game.senses.presence import NPC, label_of, seen_here
from evennia_ai.game.senses.text import in_sentence, one_line, plain_name
from evennia_ai.history.records import Record
from evennia_ai.memory.memories import Memory
from evennia_ai.settings.conf import conf
from evennia_ai.store.history import conversations
from evennia_ai.store.history.conversations import ConversationRef
from evennia_ai.store.memory import memories

# How a volume that games have words for is told; any other stands as the game says it.
_LOUD: Final = {
    "mutter": "muttering",
    "quiet": "quietly",
    "whisper": "whispering",
    "loud": "loudly",
    "yell": "yelling",
    "shout": "shouting",
}


def speaker(npc: NPC, event: Event | None, conversation: ConversationRef | None) -> str:
    """Who does what the event tells, and how: all that its own line may not say."""
    if event is None:
        return ""
    if not event.speaker_ref:
        return "Nobody speaks to you."
    how = "acts" if event.is_happening else "whispers to you" if event.private else "speaks"
    language = f", in {in_sentence(event.language)}" if event.language else ""
    volume = f", {in_sentence(_LOUD.get(event.volume, event.volume))}" if event.volume else ""
    name = in_sentence(event.speaker_name)
    return f"Who {how}: {name} ({event.speaker_rank}){language}{volume}."


RELATIONS: Final = "ai_relations"
MOST_OF_RELATION: Final = 200
MOST_PEOPLE: Final = 20


def relation(npc: NPC, event: Event | None, conversation: ConversationRef | None) -> str:
    """What they are to `npc`, the one who did what the event tells first; "" for nothing."""
    relations = npc.attributes.get(RELATIONS)
    if not relations:
        return ""
    names: dict[str, str] = {}
    if event is not None and event.speaker_ref:
        names[event.speaker_ref] = event.speaker_name
    for other in seen_here(npc):
        names.setdefault(str(other.id), label_of(npc, other))
    told = ((name, _words(relations, ref)) for ref, name in names.items())
    lines = [f"What {in_sentence(name)} is to you: {words}." for name, words in told if words]
    return "\n".join(lines[:MOST_PEOPLE])


def _words(relations: Any, speaker_ref: str) -> str:
    """The words about one character; TypeError where the Attribute is no dictionary."""
    if not isinstance(relations, Mapping):
        raise TypeError(f"the Attribute {RELATIONS} is {type(relations).__name__}, no dictionary")
    said = relations.get(speaker_ref) or relations.get(f"#{speaker_ref}") or ""
    return one_line(str(said))[:MOST_OF_RELATION].rstrip(" .")


_HOURS_OF_A_DAY = 24


def acquaintance(npc: NPC, event: Event | None, conversation: ConversationRef | None) -> str:
    """How much `npc` remembers of the speaker and since when, "" where all of it can be told."""
    rules = conf().memory
    if event is None or not event.speaker_ref or not rules.enabled:
        return ""
    # What was whispered counts where it may be recalled: in private.
    known = [
        memory
        for memory in memories.held_by(str(npc.id)).candidates(
            speaker_ref=event.speaker_ref, present_refs=()
        )
        if memory.about == event.speaker_ref and (event.private or memory.learnt == "aloud")
    ]
    if len(known) <= rules.recall.most:
        return ""
    name = in_sentence(event.speaker_name)
    return f"What you remember of {name}: {len(known)} things, {_since(known)}."


def _since(known: list[Memory]) -> str:
    """For how many days of the game."""
    days = int((hours_now() - min(memory.created_at for memory in known)) / _HOURS_OF_A_DAY)
    return f"the first for {days} days" if days > 1 else "all of them new"


KIND: Final = "show"
MOST_THINGS: Final = 5
"""Of one person, the ones that were shown last."""


def shown(npc: NPC, event: Event | None, conversation: ConversationRef | None) -> str:
    """What each of those present has shown `npc`, a line for each; "" where nobody did."""
    things: dict[str, list[str]] = {}
    for record in sorted(_shown(npc, conversation), key=_written):
        listed = things.setdefault(str(record.meta.get("speaker", "")), [])
        item = in_sentence(plain_name(str(record.meta["item"])))
        if item in listed:
            listed.remove(item)
        listed.append(item)
    lines = []
    for other in seen_here(npc) if things else ():
        if listed := things.get(str(other.id), []):
            name = in_sentence(label_of(npc, other))
            lines.append(f"What {name} has shown you before: {', '.join(listed[-MOST_THINGS:])}.")
    return "\n".join(lines)


def _shown(npc: NPC, conversation: ConversationRef | None) -> Iterator[Record]:
    """The records of things that were shown to `npc` and that the prompt does not tell anyway."""
    for room in npc.ai.lately.rooms():
        is_here = conversation is not None and room.id == conversation.id
        before = conversations.cut(room) if is_here else None
        for record in records_of_room(room, before=before):
            if is_shown_to(record, str(npc.id)) and record.meta.get("item"):
                yield record


def is_shown_to(record: Record, npc_ref: str) -> bool:
    """Whether the record tells that something was shown to this NPC."""
    return record.meta.get("event") == KIND and record.meta.get("to") == npc_ref


def _written(record: Record) -> int:
    return int(record.id)
