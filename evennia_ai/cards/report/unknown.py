"""What of a card's texts nothing here knows: macros that are sent as they are written."""

from collections.abc import Iterator
from typing import Final

from evennia_ai.cards.card import Card
from evennia_ai.cards.report.parts import card_texts
from evennia_ai.prompt.templates.unknown import unknown_macros
from evennia_ai.prompt.templates.value_names import KNOWN_NAMES

# The fields in which `{{original}}` is the game's own text.
_WITH_ORIGINAL: Final = frozenset({"system_prompt", "post_history_instructions"})


def unknown_in(card: Card) -> Iterator[str]:
    """The unknown macros of the card's own texts."""
    for path, text in card_texts(card):
        known = KNOWN_NAMES | {"original"} if path in _WITH_ORIGINAL else KNOWN_NAMES
        for written in unknown_macros(text, known=known):
            yield f"{path}: {written}: sent as it is written"
