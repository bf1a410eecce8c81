"""Names: what of a name makes a label, and which names are taken for one another.

Players choose their names, so a name proves nothing: who somebody is says the game, by a mark
behind the name that no name can hold. Pure; who bears which mark is decided where people are met.
"""

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from evennia_ai.engine.text.words import letters_folded

MOST_CHARACTERS: Final = 44
"""Characters of a name in a label; with the longest mark it fits every provider's field."""

SHORT_CHARACTERS: Final = 32
"""Characters of a name where it stands among instructions."""

SOMEONE: Final = "someone"
"""The label of a name that nothing is left of."""

FACTS: Final = frozenset(
    {
        *("who speaks", "who acts", "who whispers to you", "place", "present"),
        *("what you remember", "what you are after now", "what you lately lived through elsewhere"),
    }
)
"""Heads of the facts that the game itself tells."""

# Words that stand for somebody in a prompt who is no player, and the heads of what the game tells.
_WORDS: Final = (
    *("system", "assistant", "user", "developer", "human", "ai", "model", "bot", "tool"),
    *("function", "instruction", "instructions", "response", "input", "narrator", "you", "game"),
    *("the game", "game master", "gm", "someone", "somebody", "something", "nobody", "everybody"),
    *("everyone", "the visitor", "visitor", "the character", "an earlier summary", "summary"),
    *("transcript", "tool result", "tool results", "game instruction", "event", "nobody speaks"),
    *FACTS,
)
# Names that begin with one of these read as somebody's office or as a fact of the game.
_OFFICES: Final = frozenset({"system", "assistant", "developer", "user"})
_HEADS: Final = ("thetool", "whatyou", "whospeaks", "whoacts", "whowhispers", "gameinstruction")

ANOTHER: Final = "another"
SO_CALLED: Final = "so called"
_MARK: Final = re.compile(rf" \((?:{ANOTHER}|{SO_CALLED})(?:, \d{{1,9}})?\)$")
# A name that ends like a mark is taken for the name without it.
_LIKE_A_MARK: Final = re.compile(rf"[\W_]*(?:{ANOTHER}|so[\W_]*called)[\W_]*\d*[\W_]*$")

_BRACKETS: Final = str.maketrans(dict.fromkeys("()[]{}<>（）［］｛｝＜＞⟨⟩‹›«»【】〔〕|｜", " "))
_COLONS: Final = str.maketrans(dict.fromkeys(":：﹕︓꞉∶ː˸", " "))
_OTHER_QUOTES: Final = str.maketrans({'"': "'", "“": "'", "”": "'", "„": "'", "«": "'", "»": "'"})
# What a sentence is made of beside words; in a name it could begin another one.
_PUNCTUATION: Final = re.compile(r"[.,:;!?()\[\]{}<>|\"“”„«»*#@=…。、，：；！？（）「」『』]")
# Behind the first word of a name these would tell of something.
_TELLING: Final = re.compile(
    r"\s(?:gives?|gave|leaves?|left|comes?|came|goes|arrives?|arrived|looks?|shows?|says?|said"
    r"|whispers?|speaks?|tells?|is|was|has|had|and)(?!\w)",
    re.IGNORECASE,
)
_NAMING: Final = ("user", "speaker")
"""The values that are the name of somebody who chose it; cards and builders name the others."""
_IN_SHORT: Final = frozenset(" -'’")
# Capitals whose small letters look like something else, and letters that are rarer in texts.
_CAPITALS: Final = str.maketrans(
    "\u039d\u03a5\u0397\u039c\u0396\u0392"
    "\u0555\u054f\u054d\u0585\u057d\u0578\u0570\u0566\u0581\u04ae\u04af\u051b\u051d\u0475",
    "nyhmzbosuounhqgyyqwv",
)
_SAME_SHAPE: Final = str.maketrans("i1|0", "lllo")
_PAIRS: Final = (("rn", "m"), ("vv", "w"))


@lru_cache(maxsize=4096)
def folded(name: str) -> str:
    """What is left of a name of all by which two look or sound different and are not; never "".

    Case, accents, blanks, punctuation, letters of other alphabets that look like ours, I and l,
    0 and O make no difference.
    """
    plain = _LIKE_A_MARK.sub("", _latin(name)) or _latin(name)
    bare = "".join(c for c in plain.translate(_SAME_SHAPE) if c.isalnum() or _is_mark(c))
    for pair, letter in _PAIRS:
        bare = bare.replace(pair, letter)
    return bare or "".join(plain.split()) or SOMEONE


@lru_cache(maxsize=4096)
def spelt(name: str) -> str:
    """A name in small Latin letters and single blanks: as the one it imitates is written."""
    return " ".join("".join(c if c.isalnum() or _is_mark(c) else " " for c in _latin(name)).split())


_GUISE: Final = "~"


def in_guise(ref: str, guise: str) -> str:
    """The reference of somebody in a guise; that of the person where `guise` is ""."""
    return f"{ref}{_GUISE}{guise}" if guise else ref


def start_of_guises(ref: str) -> str:
    """What the references of all guises of a person begin with."""
    return f"{ref}{_GUISE}"


def wearer_of(ref: str) -> str:
    """The reference of the person behind a guise; any other reference as it is."""
    return ref.partition(_GUISE)[0]


def guise_in(ref: str) -> str:
    """The part of a reference that stands for a guise, "" in a person's own reference."""
    return ref.partition(_GUISE)[2]


def _latin(name: str) -> str:
    """A name in small letters, with those of ours for all that look like them."""
    if name.isascii():
        return name.lower()
    return letters_folded(unicodedata.normalize("NFKC", name).translate(_CAPITALS))


def is_word_of_the_game(name: str) -> bool:
    """Whether a name reads as a role, as somebody whom the game speaks for, or as its facts."""
    fold = folded(name)
    first = spelt(name).partition(" ")[0]
    return fold in _RESERVED or first in _OFFICES or fold.startswith(_RESERVED_HEADS)


def bare(name: str) -> str:
    """A name for a label: without brackets, which are the game's own, and without colons."""
    plain = " ".join(name.translate(_BRACKETS).translate(_COLONS).split())
    return plain[:MOST_CHARACTERS].strip() or SOMEONE


def marked(name: str, number: int, *, is_word: bool) -> str:
    """The label of the `number`th bearer of a name, counted from 1.

    Who bore it first has it plain, unless the name `is_word`, one of the game's own.
    """
    if number == 1 and not is_word:
        return name
    mark = SO_CALLED if is_word else ANOTHER
    return f"{name} ({mark})" if number <= 1 + (not is_word) else f"{name} ({mark}, {number})"


def without_mark(label: str) -> str:
    """The name in a label."""
    return _MARK.sub("", label)


@lru_cache(maxsize=4096)
def bounded(label: str) -> str:
    """A name in a sentence or before a colon: in quotes where it holds more than words.

    So it ends where it ends, and no part of it passes for the rest of the line.
    """
    name = without_mark(label)
    if not (_PUNCTUATION.search(name) or _TELLING.search(name) or len(name) > MOST_CHARACTERS):
        return label
    return f'"{name.translate(_OTHER_QUOTES)}"{label[len(name) :]}'


@lru_cache(maxsize=4096)
def short(label: str) -> str:
    """A name that may stand in a message of role system: letters, digits, blanks, `-` and `'`."""
    plain = label if label.isascii() else unicodedata.normalize("NFKC", label)
    kept = (c if c in _IN_SHORT or c.isalnum() or _is_mark(c) else " " for c in plain)
    mark = _MARK.search(label)
    words = mark[0].translate(_BRACKETS).replace(",", "").split() if mark else []
    behind = f" {' '.join(words)}" if words else ""
    name = " ".join("".join(kept).split())
    name = name.removesuffix(behind) if behind else name
    return (name[: SHORT_CHARACTERS - len(behind)].strip(" -'’") or SOMEONE) + behind


def shorten_names(values: Mapping[str, str]) -> Mapping[str, str]:
    """The values that templates name as a message of role system may have them: names short."""
    made = {name: short(values[name]) for name in _NAMING if name in values}
    is_short = all(values[name] == text for name, text in made.items())
    return values if is_short else {**values, **made}


def spoken(label: str) -> str:
    """A name as somebody says it aloud: short, without the mark that tells bearers apart."""
    return short(without_mark(label))


def _is_mark(character: str) -> bool:
    """Whether it is part of the letter before it, as in Hindi or Thai."""
    return not character.isascii() and unicodedata.category(character).startswith("M")


_RESERVED: Final = frozenset(map(folded, _WORDS))
_RESERVED_HEADS: Final = tuple(map(folded, _HEADS))
