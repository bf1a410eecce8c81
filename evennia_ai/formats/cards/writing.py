"""Create character cards in the game and edit their fields one by one.

Builders name a field as in Card V3 (`data`) or by a shorter word. An edit changes only that field:
the export keeps all other members of the card's JSON, also unknown ones
(`evennia_ai.formats.cards.exporting`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.prompt.messages import TEXT_ROLES
from evennia_ai.formats.cards.card import Card, greetings

_TEXTS: Final[Mapping[str, str]] = {
    **{
        one: one
        for one in ("name", "nickname", "description", "personality", "scenario", "system_prompt")
    },
    "post_history": "post_history_instructions",
    "first_message": "first_mes",
    "examples": "mes_example",
    "creator_notes": "creator_notes",
    "creator": "creator",
    "version": "character_version",
}
_LISTS: Final[Mapping[str, str]] = {
    "greeting": "alternate_greetings",
    "group_greeting": "group_only_greetings",
}
_TAGS: Final = "tags"
_DEPTH_PROMPT: Final = "depth_prompt"
_NOTE_PARTS: Final = ("depth", "role")
MOST_TAGS: Final = 100

WORDS: Final = (*_TEXTS, *_LISTS, _TAGS, _DEPTH_PROMPT)
"""The words with which builders name the fields that they can edit."""

_BY_STANDARD: Final = {name: word for word, name in {**_TEXTS, **_LISTS}.items()}


@dataclass(frozen=True, slots=True)
class CardField:
    """The name of a field of a card, or of a part of one, such as `greeting/2`."""

    word: str
    part: str = ""
    """The part of the field, "" for the whole field.

    It is the number of a greeting, counted from 1, or "depth" or "role" of `depth_prompt`.
    """

    def __str__(self) -> str:
        return f"{self.word}/{self.part}" if self.part else self.word


def field_named(text: str) -> CardField:
    """Parse the name of a card field that a builder types: `<field>[/<part>]`.

    Raises:
        FormatError: there is no such field; the message lists all fields.
    """
    typed, _, part = (one.strip().lower() for one in text.partition("/"))
    word = typed.replace(" ", "_").replace("-", "_")
    word = _BY_STANDARD.get(word, word)
    if word not in WORDS:
        raise FormatError(
            "card", f"'{text.strip()[:60]}' is not a field of a card: {', '.join(WORDS)}"
        )
    if word in _LISTS:
        if not (part.isascii() and part.isdecimal() and len(part) <= 4):
            raise FormatError("card", f"name a greeting by its number: {word}/1")
        if int(part):
            return CardField(word, str(int(part)))
        if word == "greeting":  # `greeting` without a number, or with 0, means the first message
            return CardField("first_message")
        raise FormatError("card", f"greetings for groups are counted from 1: {word}/1")
    if part and (word != _DEPTH_PROMPT or part not in _NOTE_PARTS):
        parts = f"; it has {' and '.join(_NOTE_PARTS)}" if word == _DEPTH_PROMPT else ""
        raise FormatError("card", f"'{part[:60]}' is not a part of {word}{parts}")
    return CardField(word, part)


def text_of(card: Card, field: CardField) -> str:
    """Return the text of a card field in the form that builders type, "" if it is empty."""
    if field.word in _LISTS:
        known = getattr(card, _LISTS[field.word])
        return known[int(field.part) - 1] if int(field.part) <= len(known) else ""
    if field.word == _TAGS:
        return ", ".join(card.tags)
    if field.word == _DEPTH_PROMPT:
        return str(_note_of(card).get(field.part or "prompt", ""))
    return str(getattr(card, _TEXTS[field.word]))


def with_text(card: Card, field: CardField, text: str) -> Card:
    """Return a copy of a card with another text in one field.

    The text "" empties the field, or removes a greeting.

    Raises:
        FormatError: the field cannot have this text.
    """
    if field.word in _LISTS:
        name = _LISTS[field.word]
        changed: dict[str, Any] = {name: _with_greeting(getattr(card, name), field, text)}
    elif field.word == _TAGS:
        tags = tuple(dict.fromkeys(" ".join(one.split()) for one in text.split(",") if one.strip()))
        if len(tags) > MOST_TAGS:
            raise FormatError("card", f"a card has at most {MOST_TAGS} tags, not {len(tags)}")
        changed = {"tags": tags}
    elif field.word == _DEPTH_PROMPT:
        changed = {"extensions": _with_note(card, field, text)}
    elif field.word == "name" and not text.strip():
        raise FormatError("card", "a card must have a name")
    else:
        changed = {_TEXTS[field.word]: text}
    return replace(card, **changed)


def new_card(name: str, *, description: str = "", creator: str = "") -> Card:
    """Return a new card with only these fields."""
    return Card(name=name, description=description, creator=creator)


def fields_of(card: Card) -> Iterator[CardField]:
    """Yield every field that can be edited in this card, including each of its greetings."""
    for word in WORDS:
        known = getattr(card, _LISTS[word]) if word in _LISTS else None
        if known is None:
            yield CardField(word)
        else:
            yield from (CardField(word, str(at + 1)) for at in range(len(known)))


def keeps_greetings(old: Card, new: Card) -> bool:
    """True if each number of a greeting refers to the same greeting in both cards.

    The text of that greeting may differ.
    """
    before, after = greetings(old), greetings(new)
    if len(before) == len(after):
        return len(old.group_only_greetings) <= len(new.group_only_greetings)
    # A greeting was added after the other ones. The numbers of group greetings come after it, so
    # they would have shifted.
    return after[: len(before)] == before and not old.group_only_greetings


def _with_greeting(known: tuple[str, ...], field: CardField, text: str) -> tuple[str, ...]:
    at, last = int(field.part), len(known)
    if at > last + 1 or (at > last and not text.strip()):
        there = f"it has 1 to {last}" if last else "it has none"
        more = f"; {field.word}/{last + 1} adds one"
        raise FormatError("card", f"the card has no {field}: {there}{more}")
    return (*known[: at - 1], *([text] if text.strip() else []), *known[at:])


def _note_of(card: Card) -> Mapping[str, Any]:
    note = card.extensions.get(_DEPTH_PROMPT)
    return note if isinstance(note, Mapping) else {}


def _with_note(card: Card, field: CardField, text: str) -> dict[str, Any]:
    """Return the card's extensions with an edited `depth_prompt`, SillyTavern's character note."""
    value: str | int = text
    if field.part == "depth":
        number = "0" if text.lower() == "bottom" else text
        if not (number.isascii() and number.isdecimal() and len(number) <= 4):
            wanted = "a number of messages, or bottom"
            raise FormatError("card", f"depth_prompt/depth: {wanted}, not '{text[:60]}'")
        value = int(number)
    elif field.part == "role" and text not in TEXT_ROLES:
        raise FormatError("card", f"depth_prompt/role: must be one of {', '.join(TEXT_ROLES)}")
    note = {"prompt": "", "depth": 4, "role": "system", **_note_of(card)}
    return {**card.extensions, _DEPTH_PROMPT: {**note, field.part or "prompt": value}}
