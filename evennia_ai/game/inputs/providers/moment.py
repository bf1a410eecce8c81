"""Providers about the moment: where the NPC is, what it is after, what time it is.

- `place`: the room;
- `goals`: what it is after, where its game keeps that in its Attribute `ai_goals`: a text or a list
  of texts, the first the most pressing one (the component `goals` says what it wants as long as its
  builder lets it);
- `game_time`: the time, really and in the game, to the minute. It is none of those that are asked
  by default: every minute would give other facts, and with them another prompt.
"""

from typing import Final

from evennia_ai.game.inputs.facts import game_minute, real_minute
from evennia_ai.game.senses.events import Event
from evennia_ai.game.senses.presence import NPC, label_of, seen_here
from evennia_ai.game.senses.text import in_sentence, one_line, plain_name
from evennia_ai.store.history.conversations import ConversationRef

MOST_COMPANY: Final = 20


def place(npc: NPC, event: Event | None, conversation: ConversationRef | None) -> str:
    """The place of `npc` and its company, "" where it is nowhere."""
    if npc.location is None:
        return ""
    here = in_sentence(plain_name(npc.location.get_display_name(npc)))
    text = f"Place: {here}."
    seen = seen_here(npc)
    if not seen:
        return text
    names = ", ".join(in_sentence(label_of(npc, other)) for other in seen[:MOST_COMPANY])
    more = f" and {len(seen) - MOST_COMPANY} more" if len(seen) > MOST_COMPANY else ""
    return f"{text} Present: {names}{more}."


GOALS: Final = "ai_goals"
MOST_GOALS: Final = 10
MOST_OF_GOAL: Final = 300
"""Of one goal."""


def goals(npc: NPC, event: Event | None, conversation: ConversationRef | None) -> str:
    """What `npc` is after now, "" where its game says nothing."""
    told = npc.attributes.get(GOALS)
    if not told:
        return ""
    texts = [told] if isinstance(told, str) else list(told)
    lines = [line for text in texts if (line := one_line(str(text))[:MOST_OF_GOAL])]
    if not lines:
        return ""
    return "\n".join(["What you are after now:", *(f"- {line}" for line in lines[:MOST_GOALS])])


def game_time(npc: NPC, event: Event | None, conversation: ConversationRef | None) -> str:
    """The date and the minute, of the game first; a date no calendar has is left out."""
    in_game = game_minute()
    told = [f"In the game it is {in_game}."] if in_game else []
    return " ".join([*told, f"Outside of it, it is {real_minute()}."])
