"""What was changed in a card, written into its own JSON value; all else stays as it was."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, Final

from evennia_ai.cards.card import Card
from evennia_ai.cards.reading import read_card

# What is no field of the standard's data.
_ABOUT_THE_FILE: Final = frozenset({"spec", "spec_version", "source", "notices"})
_FIELDS: Final = tuple(field.name for field in fields(Card) if field.name not in _ABOUT_THE_FILE)
_EMPTY: Final[Mapping[str, Any]] = {
    "spec": "chara_card_v3",
    "spec_version": "3.0",
    "data": {"name": ""},
}


def source_of(card: Card) -> Mapping[str, Any]:
    """The card's own JSON value with the fields in which the card differs from it.

    A card that was made without a file gets all of its fields.
    """
    raw = card.source or _EMPTY
    before = read_card(raw)
    edited = {
        name: _as_json(name, value)
        for name in _FIELDS
        if (value := getattr(card, name)) != getattr(before, name)
    }
    if not edited:
        return raw
    return {**raw, **edited} if before.spec == "v1" else {**raw, "data": {**raw["data"], **edited}}


def _as_json(name: str, value: Any) -> Any:
    """A field's value as JSON has it."""
    if name == "assets":
        return [asdict(asset) for asset in value]
    if isinstance(value, tuple):
        return list(value)
    return dict(value) if isinstance(value, Mapping) else value
