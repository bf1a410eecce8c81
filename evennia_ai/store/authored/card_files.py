"""Read, make and edit the files of cards.

All functions work on values only, so any thread may call them.
"""

import json
from collections.abc import Callable
from dataclasses import replace

from evennia_ai.formats.cards.card import Card
from evennia_ai.formats.cards.exporting import FORM_OF, Form, dump_card
from evennia_ai.formats.cards.limits import CardLimits, decode_utf8
from evennia_ai.formats.cards.loading import CardImport, load_card
from evennia_ai.store.authored.files import AuthoredFile, json_file


def card_file(content: bytes, found: CardImport) -> AuthoredFile:
    """Return the card file with these bytes. `found` was read from them."""
    is_json = found.carrier == "json"
    source = (
        decode_utf8(content, where="card")
        if is_json
        else json.dumps(found.raw, ensure_ascii=False, allow_nan=False)
    )
    return AuthoredFile(content=content, carrier=found.carrier, source=source)


def new_card_file(card: Card, *, modified_at: int, limits: CardLimits) -> AuthoredFile:
    """Return a new JSON file for a card that a builder makes in the game."""
    return json_file(dump_card(card, "json", modified_at=modified_at, limits=limits).decode())


def edited_card_file(
    file: AuthoredFile, change: Callable[[Card], Card], *, modified_at: int, limits: CardLimits
) -> tuple[Card, Card, AuthoredFile | None]:
    """Change a card with `change`, and write its file in the same format.

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


def pictured_card_file(
    file: AuthoredFile, picture: bytes, *, modified_at: int, limits: CardLimits
) -> AuthoredFile:
    """Return the file of a card with another picture. A JSON file becomes a PNG file.

    Raises:
        FormatError: the picture is not a PNG file, or the file is over a limit.
    """
    found = load_card(file.content, limits=limits)
    form: Form = "charx" if file.carrier == "charx" else "png"
    content = dump_card(found, form, picture=picture, modified_at=modified_at, limits=limits)
    return card_file(content, load_card(content, limits=limits))
