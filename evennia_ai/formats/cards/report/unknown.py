"""What of a card's texts nothing here knows: macros, and languages of extensions."""

from collections.abc import Iterator
from typing import Final

from evennia_ai.engine.prompt.templates.unknown import unknown_macros
from evennia_ai.engine.prompt.templates.value_names import KNOWN_NAMES
from evennia_ai.formats.cards.card import Card
from evennia_ai.formats.cards.report.parts import card_texts
from evennia_ai.formats.lorebooks.editing.without_effect import extensions_asked, texts_in_entries


def extensions_of(card: Card) -> tuple[str, ...]:
    """A sentence for each extension of SillyTavern that the card or its book is written for."""
    own = (text for _, text in card_texts(card))
    return extensions_asked((*own, *texts_in_entries(card.character_book)), card.extensions)


# The fields in which `{{original}}` is the game's own text.
_WITH_ORIGINAL: Final = frozenset({"system_prompt", "post_history_instructions"})


def unknown_in(card: Card) -> Iterator[str]:
    """The unknown macros of the card's own texts."""
    for path, text in card_texts(card):
        known = KNOWN_NAMES | {"original"} if path in _WITH_ORIGINAL else KNOWN_NAMES
        for written in unknown_macros(text, known=known):
            yield f"{path}: {written}: sent as it is written"
