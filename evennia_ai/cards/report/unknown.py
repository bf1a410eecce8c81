"""What of a card's texts nothing here knows: macros that are sent as they are written."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from evennia_ai.cards.card import Card
from evennia_ai.cards.report.parts import card_texts
from evennia_ai.prompt.templates.macros import KNOWN_NAMES
from evennia_ai.prompt.templates.unknown import unknown_macros

MOST_TOLD: Final = 8
# The fields in which `{{original}}` is the game's own text.
_WITH_ORIGINAL: Final = frozenset({"system_prompt", "post_history_instructions"})


def unknown_in(card: Card) -> Iterator[str]:
    """The unknown macros of the card's own texts."""
    for path, text in card_texts(card):
        known = KNOWN_NAMES | {"original"} if path in _WITH_ORIGINAL else KNOWN_NAMES
        for written in unknown_macros(text, known=known):
            yield f"{path}: {written}: sent as it is written"


def unknown_in_lore(card: Card) -> Iterator[str]:
    """The unknown macros of its book, each once with the number of its entries."""
    found: Counter[str] = Counter()
    entries = (card.character_book or {}).get("entries")
    for entry in entries if isinstance(entries, list) else ():
        content = entry.get("content") if isinstance(entry, dict) else None
        if isinstance(content, str):
            found.update(unknown_macros(content))
    for written, count in found.most_common(MOST_TOLD):
        entries_told = "1 entry" if count == 1 else f"{count} entries"
        yield f"lore: {written}: sent as it is written ({entries_told})"
