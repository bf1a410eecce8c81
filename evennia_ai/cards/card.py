"""A character card as values, whatever version its file was.

Card V3's words are kept. Nothing is expanded or cut here: the texts are as the file has them, and
`source` is the file's own JSON, so that an export loses nothing.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from evennia_ai.errors import FormatError
from evennia_ai.prompt.dice import Dice
from evennia_ai.prompt.messages import Message, said
from evennia_ai.prompt.templates.template import compile_template

Spec = Literal["chara_card_v3", "chara_card_v2", "v1"]
DEFAULT_USER: Final = "User"
MAX_CHAR: Final = 200
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """A picture or other file that belongs to the card; `uri` is never fetched."""

    type: str
    uri: str
    name: str
    ext: str


# What a card without the field has (Card V3, `assets`).
DEFAULT_ASSETS: Final = (Asset(type="icon", uri="ccdefault:", name="main", ext="png"),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A character card.

    `spec` is the version the file had. `character_book` is the raw book, None where there is
    none; `lorebook.formats.books.read_book` reads it. `notices` are for who imports the card.
    """

    name: str
    nickname: str = ""
    description: str = ""
    personality: str = ""
    scenario: str = ""
    first_mes: str = ""
    mes_example: str = ""
    system_prompt: str = ""
    post_history_instructions: str = ""
    alternate_greetings: tuple[str, ...] = ()
    group_only_greetings: tuple[str, ...] = ()
    creator_notes: str = ""
    creator_notes_multilingual: Mapping[str, str] = field(default_factory=dict)
    creator: str = ""
    character_version: str = ""
    tags: tuple[str, ...] = ()
    assets: tuple[Asset, ...] = DEFAULT_ASSETS
    character_book: Mapping[str, Any] | None = None
    extensions: Mapping[str, Any] = field(default_factory=dict)
    spec: Spec = "chara_card_v3"
    spec_version: str = "3.0"
    source: Mapping[str, Any] = field(default_factory=dict, repr=False)
    notices: tuple[str, ...] = ()

    @property
    def char(self) -> str:
        """What `{{char}}` stands for: the nickname, or the name where there is none.

        It stands in texts of others, so it is one line of bounded length whatever the file says.
        """
        return _CONTROL.sub(" ", self.nickname).strip()[:MAX_CHAR].rstrip() or self.name


def macro_values(card: Card | None, *, user: str = "") -> dict[str, str]:
    """The values that card and lore text may name; a user always has some name."""
    values = {"user": user or DEFAULT_USER}
    if card is not None:
        values["char"] = card.char
    return values


def greetings(card: Card, *, group: bool = False) -> tuple[str, ...]:
    """The greetings to choose from, as written: the first message, its alternates, and in a group
    those that are for groups only.
    """
    extra = card.group_only_greetings if group else ()
    return (card.first_mes, *card.alternate_greetings, *extra)


def greeting(card: Card, *, index: int = 0, group: bool = False) -> str:
    """One greeting as written; 0 is the first message, n the n-th alternate.

    FormatError: the card has no greeting of this index.
    """
    known = greetings(card, group=group)
    if 0 <= index < len(known):
        return known[index]
    raise FormatError(
        "card", f"card {card.name}: has no greeting {index}; it has 0 to {len(known) - 1}"
    )


def opening_message(
    card: Card, *, index: int = 0, group: bool = False, values: Mapping[str, str], dice: Dice
) -> Message | None:
    """The greeting as the character's first message, macros expanded; None for an empty one."""
    text = compile_template(greeting(card, index=index, group=group), trust="imported")
    content = text.render(values, dice)
    return said("assistant", content, name=card.name) if content.strip() else None


def notes_in(card: Card, language: str = "en") -> str:
    """The creator's notes for a reader of `language` (`de` and `de-AT` are the same).

    `creator_notes` counts as English where the multilingual notes have none, and is what everybody
    reads whose language is not there.
    """
    known = {_language(name): text for name, text in card.creator_notes_multilingual.items()}
    known.setdefault("en", card.creator_notes)
    return known.get(_language(language), known["en"])


def _language(tag: str) -> str:
    return tag.replace("_", "-").partition("-")[0].lower()
