"""Files of cards that are read, made or edited. Everything here works on values, in any thread."""

import json
from collections.abc import Callable
from dataclasses import replace

from evennia_ai.formats.cards.card import Card
from evennia_ai.formats.cards.exporting import FORM_OF, dump_card
from evennia_ai.formats.cards.limits import CardLimits, decode_utf8
from evennia_ai.formats.cards.loading import CardImport, load_card
from evennia_ai.store.authored.files import AuthoredFile, json_file


def card_file(content: bytes, found: CardImport) -> AuthoredFile:
    """Return the file with these bytes, from which `found` was read."""
    is_json = found.carrier == "json"
    source = (
        decode_utf8(content, where="card")
        if is_json
        else json.dumps(found.raw, ensure_ascii=False, allow_nan=False)
    )
    return AuthoredFile(content=content, carrier=found.carrier, source=source)


def new_card_file(card: Card, *, modified_at: int, limits: CardLimits) -> AuthoredFile:
    """Return the JSON file of a card that is made in the game."""
    return json_file(dump_card(card, "json", modified_at=modified_at, limits=limits).decode())


def edited_card_file(
    file: AuthoredFile, change: Callable[[Card], Card], *, modified_at: int, limits: CardLimits
) -> tuple[Card, Card, AuthoredFile | None]:
    """Change a card and write its file in the same format.

    Returns:
        The card before the change, the card after it, and the file, or None if nothing changed.

    Raises:
        FormatError: the file cannot be read or written. `change` may raise its own errors.
    """
    found = load_card(file.content, limits=limits)
    card = change(found.card)
    if card == found.card:
        return found.card, card, None
    whole = replace(found, card=card)
    content = dump_card(whole, FORM_OF[file.carrier], modified_at=modified_at, limits=limits)
    return found.card, card, card_file(content, load_card(content, limits=limits))
