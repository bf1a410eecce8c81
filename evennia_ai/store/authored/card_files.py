"""Files of cards that are written in the game: a new one, and one with something changed in it."""

from collections.abc import Callable
from dataclasses import replace

from evennia_ai.formats.cards.card import Card
from evennia_ai.formats.cards.exporting import FORM_OF, dump_card
from evennia_ai.formats.cards.limits import CardLimits
from evennia_ai.formats.cards.loading import load_card
from evennia_ai.store.authored.card_revisions import CardFile, file_of, json_file


def new_file_of(card: Card, *, modified_at: int, limits: CardLimits) -> CardFile:
    """The JSON file of a card that is made in the game."""
    return json_file(dump_card(card, "json", modified_at=modified_at, limits=limits).decode())


def edited_file(
    file: CardFile, change: Callable[[Card], Card], *, modified_at: int, limits: CardLimits
) -> tuple[Card, Card, CardFile | None]:
    """The card before and after, and its file in the carrier it has; None where nothing changed.

    Values alone, for whatever thread. Errors are those of `change` and of `cards.loading`.
    """
    found = load_card(file.content, limits=limits)
    card = change(found.card)
    if card == found.card:
        return found.card, card, None
    whole = replace(found, card=card)
    content = dump_card(whole, FORM_OF[file.carrier], modified_at=modified_at, limits=limits)
    return found.card, card, file_of(content, load_card(content, limits=limits))
