"""What lore may ask about beside the conversation: facts, and texts of the card and the persona.

An entry of a book may want a fact to hold (`character.tags`), or to have its keys looked for in
the character's description. Neither is part of what was said.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from evennia_ai.cards.card import Card
from evennia_ai.lorebook.conditions import (
    CHARACTER_NAME,
    CHARACTER_TAGS,
    GENERATION_KIND,
    NORMAL,
    Fact,
    Facts,
)
from evennia_ai.lorebook.entries import SourceName
from evennia_ai.prompt.components import PromptComponent
from evennia_ai.prompt.dice import Dice
from evennia_ai.prompt.templates.template import Template, compile_template

# The components of the card and the persona that hold a text for scanning, by key.
_HOLDERS: Final[Mapping[str, SourceName]] = MappingProxyType(
    {
        "persona_description": "persona",
        "char_description": "char_description",
        "char_personality": "char_personality",
        "card_depth_prompt": "char_depth_prompt",
        "scenario": "scenario",
    }
)


def facts_of(card: Card | None, *, given: Facts) -> Facts:
    """The facts of a scenario: who the character is, and what its author says, which wins."""
    known: dict[str, Fact] = {GENERATION_KIND: NORMAL}
    if card is not None:
        known |= {CHARACTER_NAME: card.name, CHARACTER_TAGS: card.tags}
    return {**known, **given}


class Sources:
    """Texts for scanning, compiled once: `plugged` are the components of the card and persona."""

    def __init__(self, plugged: Iterable[PromptComponent], card: Card | None) -> None:
        texts: dict[SourceName, str] = {
            _HOLDERS[component.key]: component.content
            for component in plugged
            if component.key in _HOLDERS
        }
        if card is not None and card.creator_notes:
            texts["creator_notes"] = card.creator_notes
        self._templates: dict[SourceName, Template] = {
            name: compile_template(text, trust="imported") for name, text in texts.items()
        }

    def expanded(self, values: Mapping[str, str], dice: Dice) -> dict[SourceName, str]:
        """Each text as it reads in this turn, its macros expanded."""
        return {name: made.render(values, dice) for name, made in self._templates.items()}
