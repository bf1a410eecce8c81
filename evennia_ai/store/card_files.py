"""The files of cards: their bytes as they were given, each kept once."""

from dataclasses import dataclass
from hashlib import sha256

from evennia_ai import models
from evennia_ai.cards.dumping import json_bytes
from evennia_ai.cards.limits import as_text
from evennia_ai.cards.loading import CardImport
from evennia_ai.settings.conf import conf
from evennia_ai.store.checks import checked_source


@dataclass(frozen=True, slots=True, kw_only=True)
class CardFile:
    """A card's file: its bytes, what carries the card, and the card's JSON text."""

    content: bytes
    carrier: str
    source: str


def file_of(content: bytes, found: CardImport) -> CardFile:
    """The file of these bytes, from which `found` was read; a JSON file is its own text."""
    is_text = found.carrier == "json"
    source = as_text(content, where="card") if is_text else json_bytes(found.raw).decode()
    return CardFile(content=content, carrier=found.carrier, source=source)


def json_file(source: str) -> CardFile:
    """The file that a JSON text is."""
    return CardFile(content=source.encode(), carrier="json", source=source)


def kept_file(file: CardFile, *, what: str) -> models.CardFile:
    """The row of the file, made where there is none; for the store alone.

    FormatError: the card's text is no strict JSON object, or longer than the limit.
    """
    most = conf().card_limits.text_bytes
    checked_source(file.source, what=what, most=most, setting="EVENNIA_AI_CARD_LIMITS, text_bytes")
    row, _ = models.CardFile.objects.get_or_create(
        sha256=sha256(file.content).hexdigest(),
        defaults={"carrier": file.carrier, "content": file.content, "source": file.source},
    )
    return row


def read_file(row: models.CardFile) -> CardFile:
    """The file of a row."""
    return CardFile(content=bytes(row.content), carrier=row.carrier, source=row.source)
