"""The fields of a card as a form shows them: a label, a sentence of help and the tokens."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from evennia_ai.engine.prompt.tokens import ESTIMATE
from evennia_ai.formats.cards.card import Card, greetings
from evennia_ai.formats.cards.writing import CardField

NEW_GREETING: Final = "greeting/new"
"""The name of the form's field that adds a greeting after the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldHelp:
    """How a form shows a field."""

    label: str
    help: str
    """What the field does, and what applies if it is empty."""
    rows: int = 3
    """The height of the input in lines. 1 is an input of one line."""
    is_first: bool = False
    """True if the form shows the field at once, not only when a reader asks for more fields."""
    is_sent: bool = True
    """True if the text can be part of a prompt, so that its tokens count."""


FIELDS: Final[Mapping[str, FieldHelp]] = {
    "name": FieldHelp(
        label="Name",
        help="What prompts call the character. {{char}} in any text becomes this name. Required.",
        rows=1,
        is_first=True,
        is_sent=False,
    ),
    "description": FieldHelp(
        label="Who they are",
        help="What is always true: looks, work, past. It is in every prompt. Empty: nothing.",
        rows=7,
        is_first=True,
    ),
    "personality": FieldHelp(
        label="How they are and how they speak",
        help="Manner and way of speaking, in a few sentences. Empty: the model decides.",
        rows=4,
        is_first=True,
    ),
    "first_message": FieldHelp(
        label="First words",
        help="What they say to somebody who is new. Empty: they wait until they are spoken to.",
        is_first=True,
        is_sent=False,
    ),
    "greeting": FieldHelp(
        label="Other first words",
        help="A greeting to choose in place of the first words. Empty: it is removed.",
        is_first=True,
        is_sent=False,
    ),
    "scenario": FieldHelp(
        label="Situation",
        help="Where and when the character is met. Empty: only the room of the game.",
    ),
    "examples": FieldHelp(
        label="Examples of speech",
        help="Short dialogues. Begin each with <START>, its lines with {{user}}: or {{char}}:."
        " Empty: no examples.",
        rows=6,
    ),
    "system_prompt": FieldHelp(
        label="Instructions to the model",
        help="Replaces the game's instructions; {{original}} repeats them. Empty: the game's.",
    ),
    "post_history": FieldHelp(
        label="Last instructions",
        help="Stands after the conversation, where models obey best. Empty: the game's.",
    ),
    "depth_prompt": FieldHelp(
        label="Note in the conversation",
        help="Stands a few messages before the end, so that it is not forgotten. Empty: no note.",
    ),
    "nickname": FieldHelp(
        label="Nickname",
        help="What prompts call the character in place of the name. Empty: the name.",
        rows=1,
        is_sent=False,
    ),
    "group_greeting": FieldHelp(
        label="First words in a group",
        help="A greeting for rooms only. Empty: it is removed.",
        is_sent=False,
    ),
    "creator_notes": FieldHelp(
        label="Notes for builders",
        help="Only builders read them; they are in no prompt. Empty: none.",
        is_sent=False,
    ),
    "tags": FieldHelp(
        label="Tags",
        help="Words to find the card by, with commas between them. Empty: none.",
        rows=1,
        is_sent=False,
    ),
    "creator": FieldHelp(
        label="Creator", help="Who wrote the card. Empty: unknown.", rows=1, is_sent=False
    ),
    "version": FieldHelp(
        label="Version", help="The creator's own version. Empty: none.", rows=1, is_sent=False
    ),
}
"""The fields in the order of the form, by the word of `CardField`."""


def form_fields(texts: Mapping[CardField, str]) -> list[dict[str, Any]]:
    """Return the fields of a form with their texts, in the order of the form."""
    order = list(FIELDS)
    known = sorted(texts, key=lambda one: (order.index(one.word), _number(one)))
    return [
        {
            "name": str(field),
            "label": _label(field),
            "text": texts[field],
            "tokens": count_tokens(field, texts[field]),
            **{name: getattr(FIELDS[field.word], name) for name in ("help", "rows", "is_first")},
        }
        for field in known
    ]


def count_tokens(field: CardField, text: str) -> int | None:
    """Return the tokens of a field as typed, None if it is in no prompt."""
    return ESTIMATE.count(text) if FIELDS[field.word].is_sent else None


def sum_tokens(texts: Iterable[tuple[CardField, str]]) -> int:
    """Return the tokens of all fields that can be in a prompt."""
    return sum(count_tokens(field, text) or 0 for field, text in texts)


def _label(field: CardField) -> str:
    label = FIELDS[field.word].label
    return f"{label} {field.part}" if field.part else label


def _number(field: CardField) -> int:
    return int(field.part) if field.part.isdecimal() else 0


def list_greetings(card: Card) -> Iterator[dict[str, Any]]:
    """Yield the greetings that are not empty. Number 0 is the first message; those for groups are
    last.
    """
    own = len(greetings(card))
    for index, text in enumerate(greetings(card, group=True)):
        if text.strip():
            yield {"index": index, "text": text, "for_groups": index >= own}
