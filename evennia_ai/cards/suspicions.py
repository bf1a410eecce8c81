"""Suspicions: what a builder should look at before a card is approved, found in its texts.

Nothing here decides anything: a card without a suspicion may be a bad one, and a card with some may
be a fine story. Each text is looked at in pieces, so that the cost grows with its length alone, and
of each kind every text is told once.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from evennia_ai.cards.phrases import (
    APART,
    OUT_OF_CHARACTER,
    OVERRIDES,
    ROLE_MARKS,
    SQUEEZED,
    plain,
    spellings,
)
from evennia_ai.prompt.dice import Dice
from evennia_ai.prompt.templates.template import filled, split_macros

Kind = Literal[
    "override",
    "role_marks",
    "out_of_character",
    "name",
    "invisible",
    "address",
    "markup",
    "oversized",
    "regex",
    "forced",
    "ignores_budget",
    "last_word",
    "speaks_as",
]
# What each kind means, in the order in which they are told.
MEANS: Final[dict[Kind, str]] = {
    "override": "words that try to override instructions",
    "role_marks": "marks of a chat template, which fake another speaker",
    "out_of_character": "orders to the player of the character (OOC)",
    "name": "a name that passes for somebody else",
    "invisible": "characters that cannot be seen",
    "address": "addresses and pictures of other places, which are never fetched",
    "markup": "the game's own markup, which is shown as it is written",
    "oversized": "more than its share of a prompt",
    "regex": "keys that are regular expressions",
    "forced": "entries that are active whatever their keys say",
    "ignores_budget": "entries that ask to ignore the budget",
    "last_word": "entries that want to stand after the newest message",
    "speaks_as": "entries that want to speak as system or assistant",
}
# What the author of a card can mend, so that a lint tells it.
MENDABLE: Final[frozenset[Kind]] = frozenset(
    {"override", "role_marks", "name", "invisible", "markup"}
)
MOST_SIGHTINGS: Final = 20
_PIECE: Final = 4_000
_OVERLAP: Final = 300
_EXCERPT: Final = 60
_LARGEST_DATA: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """One place of a suspicion: a field's path or an entry, and a few words of what stands there.

    The words are as the file has them; whoever prints them makes them visible.
    """

    where: str
    excerpt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspicion:
    """All places of one kind: how many there are, and the first of them."""

    kind: Kind
    count: int
    sightings: tuple[Sighting, ...]

    @property
    def text(self) -> str:
        """What it means."""
        return MEANS[self.kind]


Found = tuple[Kind, Sighting]


def grouped(found: Iterable[Found]) -> tuple[Suspicion, ...]:
    """The sightings by kind, in the order in which kinds are told."""
    by_kind: dict[Kind, list[Sighting]] = {kind: [] for kind in MEANS}
    for kind, sighting in found:
        by_kind[kind].append(sighting)
    return tuple(
        Suspicion(kind=kind, count=len(all_of), sightings=tuple(all_of[:MOST_SIGHTINGS]))
        for kind, all_of in by_kind.items()
        if all_of
    )


def in_text(text: str, where: str) -> Iterator[Found]:
    """The suspicions about one text, each kind once, with the first words that raised it."""
    told: set[Kind] = set()
    for said in _readings(text):
        for start in range(0, max(len(said), 1), _PIECE):
            piece = said[start : start + _PIECE + _OVERLAP]
            for kind, look in _LOOKS:
                if kind in told:
                    continue
                span = look(piece)
                if span is not None and span[0] < _PIECE:
                    told.add(kind)
                    yield kind, Sighting(where=where, excerpt=_excerpt(piece, *span))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Loaded(Dice):
    """Dice that always fall the same way, so that a macro shows a choice one knows."""

    share: float

    def roll(self, *what: object) -> float:
        return self.share

    def pick(self, *what: object) -> float:
        return self.share


# The first of what a macro chooses from, and the last.
_DICE: Final = tuple(_Loaded(turn="", conversation="", share=share) for share in (0, 1 - 2**-53))
# What stands for nothing in a card of a game without texts of its own.
_EMPTY: Final = {"original": ""}


def _readings(text: str) -> Iterator[str]:
    """The text as written, and as macros leave it: they take words apart and turn them round."""
    said = [text]
    if _MAKING.search(text):
        chunks = split_macros(text, v1_names=False).chunks
        said += [filled(chunks, values=_EMPTY, dice=dice, source="") for dice in _DICE]
    for one in dict.fromkeys(said):
        yield _FILLER.sub(_shortened, one)


# Macros that give other text than a name; names stay as they are written.
_MAKING: Final = re.compile(
    r"\{\{\s*(?://|(?:random|pick|roll|reverse|comment|hidden_key|outlet)\s*:|original\s*\}\})",
    re.IGNORECASE,
)


def _shortened(filler: re.Match[str]) -> str:
    return filler[0][:_FILLED] + filler[0][-_FILLED:]


_FILLED: Final = 30
# So much of nothing between two words that no piece would hold both.
_FILLER: Final = re.compile(
    rf"[\W_\u034f\u115f\u1160\u17b4\u17b5\u3164\ufe00-\ufe0f\uffa0]{{{2 * _FILLED},}}+"
)


def in_name(name: str, where: str) -> Iterator[Found]:
    """The suspicions about a name that prompts carry."""
    if any(plain(one).strip() in _TAKEN for one in (name, *spellings(name))):
        yield "name", Sighting(where=where, excerpt=name[:_EXCERPT])


# Names that a prompt or a game has for somebody else.
_TAKEN: Final = frozenset(
    {
        *("system", "assistant", "user", "developer", "human", "tool", "system prompt"),
        *("system message", "game master", "gamemaster", "gm", "admin", "administrator"),
        *("moderator", "superuser", "staff", "server", "evennia"),
    }
)

Span = tuple[int, int]
Look = Callable[[str], Span | None]


def _override(piece: str) -> Span | None:
    """Words of the table, however they are spelt."""
    for spelling in spellings(piece):
        for needle, pattern in OVERRIDES:
            if needle in spelling and (found := pattern.search(spelling)):
                return _written(piece, found.span())
    for run in APART.finditer(piece):
        squeezed = plain(run[0]).replace(" ", "")
        if any(phrase in squeezed for phrase in SQUEEZED):
            return run.span()
    return None


def _written(piece: str, span: Span) -> Span:
    """Where words of the plain text stand in the text as written."""
    return _at(piece, span[0]), _at(piece, span[1])


def _at(piece: str, index: int) -> int:
    """The shortest beginning of `piece` that gives `index` plain characters."""
    low, high = 0, len(piece)
    while low < high:
        middle = (low + high) // 2
        if len(plain(piece[:middle])) < index:
            low = middle + 1
        else:
            high = middle
    return low


def _searched(table: Iterable[tuple[str, re.Pattern[str]]]) -> Look:
    """A look for patterns, each tried where its needle stands."""
    listed = tuple(table)

    def look(piece: str) -> Span | None:
        for needle, pattern in listed:
            if needle in piece and (found := pattern.search(piece)):
                return found.span()
        return None

    return look


def _invisible(piece: str) -> Span | None:
    """Characters that are not seen; joiners inside words and emoji are ordinary ones."""
    if piece.isascii() and piece.isprintable():
        return None
    found = _HIDDEN.search(piece)
    return found.span() if found else None


# Joiners spell Persian words and emoji, a soft hyphen and variation selectors are typography.
_HIDDEN: Final = re.compile(
    "[\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f\U000e0100-\U000e01ef"
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)
# As with marks of speakers: a needle, and a pattern that begins with something that is rare.
_ADDRESSES: Final = (
    ("://", re.compile(r"\b(?i:https?|ftp|wss?|file)://[^\s<>\"')\]]{1,200}")),
    ("](", re.compile(r"!\[[^\[\]\n]{0,200}\]\([^)\s]{0,200}")),
    ("<", re.compile(r"<(?i:img|iframe|script|audio|video|object|embed|link)\b[^<>]{0,200}")),
    ("data:", re.compile(rf"data:[a-z]{{1,20}}/[^\s\"')]{{{_LARGEST_DATA}}}")),
    ("//", re.compile(r"//(?<![:\w/]//)(?i:[a-z0-9-]{1,60}\.[a-z]{2,10}/)")),
)
# Evennia's colours, links and inline functions; a stroke between words of a list is none.
_COLOUR: Final = re.compile(
    r"\|(?<![\w|]\|)(?:l[cute]|[rRgGyYbBmMcCwWxXnNhHuU](?![a-z])|\[[rRgGyYbBmMcCwWxX]|=[a-z](?!\w)"
    r"|\[?[0-5]{3}(?!\d)|\[?#[0-9a-fA-F]{6})"
)
_FUNCTION: Final = re.compile(r"\$\w{2,20}\(")
_LOOKS: Final[tuple[tuple[Kind, Look], ...]] = (
    ("override", _override),
    ("role_marks", _searched(ROLE_MARKS)),
    ("out_of_character", _searched((written, OUT_OF_CHARACTER) for written in ("OOC", "ooc"))),
    ("invisible", _invisible),
    ("address", _searched(_ADDRESSES)),
    ("markup", _searched((("|", _COLOUR), ("$", _FUNCTION)))),
)


def _excerpt(piece: str, start: int, end: int) -> str:
    """A few whole words around what was found, on one line."""
    end = min(max(end, start + 1), start + 2 * _EXCERPT)
    room = max(_EXCERPT - (end - start), 0) // 2
    first, last = max(start - room, 0), min(end + room, len(piece))
    if first > 0:
        first = piece.find(" ", first, start) + 1 or first
    if last < len(piece) and (blank := piece.rfind(" ", end, last)) > 0:
        last = blank
    before, after = "..." if first > 0 else "", "..." if last < len(piece) else ""
    return f"{before}{' '.join(piece[first:last].split())}{after}"
