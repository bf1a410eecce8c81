"""A card that is written in the game: a new one, and one field of one.

Fields are named by the standard's words (Card V3, `data`) or by shorter ones. What is written
changes that field alone: every other member of the card's own JSON stays as it is, also what
nobody here knows (`evennia_ai.formats.cards.exporting`).
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
"""The fields that can be written, by the words they are typed with."""

_BY_STANDARD: Final = {name: word for word, name in {**_TEXTS, **_LISTS}.items()}


@dataclass(frozen=True, slots=True)
class CardField:
    """A field of a card, as it was named.

    `part` is the number of a greeting, as `greetings` counts them (0 is the first message, group
    greetings count from 1), or what of the note at a depth is meant; "" without one.
    """

    word: str
    part: str = ""

    def __str__(self) -> str:
        return f"{self.word}/{self.part}" if self.part else self.word


def field_named(text: str) -> CardField:
    """The field that `<field>[/<part>]` names; FormatError tells which there are."""
    typed, _, part = (one.strip().lower() for one in text.partition("/"))
    word = typed.replace(" ", "_").replace("-", "_")
    word = _BY_STANDARD.get(word, word)
    if word not in WORDS:
        raise FormatError(
            "card", f"'{text.strip()[:60]}' is no field of a card: {', '.join(WORDS)}"
        )
    if word in _LISTS:
        return _greeting_named(word, part)
    if part and (word != _DEPTH_PROMPT or part not in _NOTE_PARTS):
        raise FormatError("card", f"'{part[:60]}' is no part of {word}{_parts_of(word)}")
    return CardField(word, part)


def text_of(card: Card, field: CardField) -> str:
    """What stands in a field, as it is typed; "" where nothing does."""
    if field.word in _LISTS:
        known = getattr(card, _LISTS[field.word])
        return known[int(field.part) - 1] if int(field.part) <= len(known) else ""
    if field.word == _TAGS:
        return ", ".join(card.tags)
    if field.word == _DEPTH_PROMPT:
        return str(_note_of(card).get(field.part or "prompt", ""))
    return str(getattr(card, _TEXTS[field.word]))


def with_text(card: Card, field: CardField, text: str) -> Card:
    """The card with another text in one field; "" empties it, and takes a greeting away.

    FormatError: the field cannot hold it.
    """
    if field.word in _LISTS:
        name = _LISTS[field.word]
        changed: dict[str, Any] = {name: _with_greeting(getattr(card, name), field, text)}
    elif field.word == _TAGS:
        changed = {"tags": _tags(text)}
    elif field.word == _DEPTH_PROMPT:
        changed = {"extensions": _with_note(card, field, text)}
    elif field.word == "name" and not text.strip():
        raise FormatError("card", "a card must have a name")
    else:
        changed = {_TEXTS[field.word]: text}
    return replace(card, **changed)


def new_card(name: str, *, description: str = "", creator: str = "") -> Card:
    """A card with nothing in it but who it is."""
    return Card(name=name, description=description, creator=creator)


def fields_of(card: Card) -> Iterator[CardField]:
    """Every field of this card that can be written, of greetings those it has."""
    for word in WORDS:
        known = getattr(card, _LISTS[word]) if word in _LISTS else None
        if known is None:
            yield CardField(word)
        else:
            yield from (CardField(word, str(at + 1)) for at in range(len(known)))


def keeps_greetings(old: Card, new: Card) -> bool:
    """Whether every number of a greeting means the same one in both: one may say something else."""
    before, after = greetings(old), greetings(new)
    if len(before) == len(after):
        return len(old.group_only_greetings) <= len(new.group_only_greetings)
    # One was added behind the others, and no group greeting has moved by it.
    return after[: len(before)] == before and not old.group_only_greetings


def _parts_of(word: str) -> str:
    return f"; it has {' and '.join(_NOTE_PARTS)}" if word == _DEPTH_PROMPT else ""


def _greeting_named(word: str, part: str) -> CardField:
    """A greeting by its number; the 0th is the first message."""
    if not (part.isascii() and part.isdecimal() and len(part) <= 4):
        raise FormatError("card", f"name a greeting by its number: {word}/1")
    if int(part):
        return CardField(word, str(int(part)))
    if word == "greeting":
        return CardField("first_message")
    raise FormatError("card", f"greetings for groups are counted from 1: {word}/1")


def _with_greeting(known: tuple[str, ...], field: CardField, text: str) -> tuple[str, ...]:
    at, last = int(field.part), len(known)
    if at > last + 1 or (at > last and not text.strip()):
        there = f"it has 1 to {last}" if last else "it has none"
        more = f"; {field.word}/{last + 1} adds one"
        raise FormatError("card", f"the card has no {field}: {there}{more}")
    return (*known[: at - 1], *([text] if text.strip() else []), *known[at:])


def _tags(text: str) -> tuple[str, ...]:
    tags = tuple(dict.fromkeys(" ".join(one.split()) for one in text.split(",") if one.strip()))
    if len(tags) > MOST_TAGS:
        raise FormatError("card", f"a card has at most {MOST_TAGS} tags, not {len(tags)}")
    return tags


def _note_of(card: Card) -> Mapping[str, Any]:
    note = card.extensions.get(_DEPTH_PROMPT)
    return note if isinstance(note, Mapping) else {}


def _with_note(card: Card, field: CardField, text: str) -> dict[str, Any]:
    """The extensions with another note at a depth (SillyTavern's `depth_prompt`)."""
    value: str | int = text
    if field.part == "depth":
        number = "0" if text.lower() == "bottom" else text
        if not (number.isascii() and number.isdecimal() and len(number) <= 4):
            wanted = "a number of messages, or bottom"
            raise FormatError("card", f"depth_prompt/depth: {wanted}, not '{text[:60]}'")
        value = int(number)
    elif field.part == "role" and text not in TEXT_ROLES:
        raise FormatError("card", f"depth_prompt/role: one of {', '.join(TEXT_ROLES)}")
    note = {"prompt": "", "depth": 4, "role": "system", **_note_of(card)}
    return {**card.extensions, _DEPTH_PROMPT: {**note, field.part or "prompt": value}}
