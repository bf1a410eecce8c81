"""Lore sources: texts beside the conversation that an entry may ask to be scanned.

The card's texts are compiled with the view of an NPC and expanded for the turn, as the prompt
shows them; the room's description is read where the NPC stands. A player has no persona here.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from evennia_ai.cards.card import Card, notes_in
from evennia_ai.game.text import one_line, unmarked
from evennia_ai.lorebook.entries import SourceName
from evennia_ai.prompt.dice import Dice
from evennia_ai.prompt.template import Template, compile_template

CardSources = Mapping[SourceName, Template]


def card_sources(card: Card | None) -> dict[SourceName, Template]:
    """The card's texts that may be scanned; empty ones are left out."""
    if card is None:
        return {}
    written: dict[SourceName, str] = {
        "char_description": card.description,
        "char_personality": card.personality,
        "char_depth_prompt": _depth_prompt(card),
        "scenario": card.scenario,
        "creator_notes": notes_in(card),
    }
    return {
        name: compile_template(text, trust="imported")
        for name, text in written.items()
        if text.strip()
    }


def scanned_sources(
    npc: Any, of_card: CardSources, *, values: Mapping[str, str], dice: Dice
) -> dict[SourceName, str]:
    """The texts as they are this turn."""
    texts: dict[SourceName, str] = {
        name: template.render(values, dice) for name, template in of_card.items()
    }
    room = _described(npc.location)
    return {**texts, "room": room} if room else texts


def _described(room: Any) -> str:
    described = room.db.desc if room is not None else None
    return _plain(described) if isinstance(described, str) else ""


@lru_cache(maxsize=256)
def _plain(described: str) -> str:
    return one_line(unmarked(described))


def _depth_prompt(card: Card) -> str:
    found = card.extensions.get("depth_prompt")
    text = found.get("prompt") if isinstance(found, dict) else None
    return text if isinstance(text, str) else ""
