"""Names of characters in prompts, and names that look or sound like each other.

Players choose their names, so a name does not prove who a character is. The game distinguishes
characters with similar names by a mark after the name, such as " (another)", which no name can
contain. This module only makes and compares such labels; its callers decide who gets which mark.
"""

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from evennia_ai.engine.text.words import fold_letters

MOST_CHARACTERS: Final = 44
"""The longest name in a label, in characters. With the longest mark it fits into the name field of
every provider.
"""

SHORT_CHARACTERS: Final = 32
"""The longest name in a message of role system, in characters."""

SOMEONE: Final = "someone"
"""The label of a character whose name has no allowed characters."""

FACTS: Final = frozenset(
    {
        *("who speaks", "who acts", "who whispers to you", "place", "present"),
        *("what you remember", "what you are after now", "what you lately lived through elsewhere"),
    }
)
"""The headings of facts that the game itself reports."""

# Words that a prompt uses for roles and for speakers other than players, and headings of the
# game's facts. A player with such a name gets a mark.
_WORDS: Final = (
    *("system", "assistant", "user", "developer", "human", "ai", "model", "bot", "tool"),
    *("function", "instruction", "instructions", "response", "input", "narrator", "you", "game"),
    *("the game", "game master", "gm", "someone", "somebody", "something", "nobody", "everybody"),
    *("everyone", "the visitor", "visitor", "the character", "an earlier summary", "summary"),
    *("transcript", "tool result", "tool results", "game instruction", "event", "nobody speaks"),
    *FACTS,
)
# A name looks like a role or like a fact of the game if its first word is in `_OFFICES`, or if its
# `fold_name` begins with one of `_HEADS`. Then it gets a mark.
_OFFICES: Final = frozenset({"system", "assistant", "developer", "user"})
_HEADS: Final = ("thetool", "whatyou", "whospeaks", "whoacts", "whowhispers", "gameinstruction")

ANOTHER: Final = "another"
SO_CALLED: Final = "so called"
_MARK: Final = re.compile(rf" \((?:{ANOTHER}|{SO_CALLED})(?:, \d{{1,9}})?\)$")
# A mark such as " (another, 2)" tells two characters of one name apart. A player may choose a name
# that ends like a mark, so names are compared without such an ending.
_LIKE_A_MARK: Final = re.compile(rf"[\W_]*(?:{ANOTHER}|so[\W_]*called)[\W_]*\d*[\W_]*$")

_BRACKETS: Final = str.maketrans(dict.fromkeys("()[]{}<>（）［］｛｝＜＞⟨⟩‹›«»【】〔〕|｜", " "))
_COLONS: Final = str.maketrans(dict.fromkeys(":：﹕︓꞉∶ː˸", " "))
_OTHER_QUOTES: Final = str.maketrans({'"': "'", "“": "'", "”": "'", "„": "'", "«": "'", "»": "'"})
# Punctuation is removed from short names, because it could begin another sentence.
_PUNCTUATION: Final = re.compile(r"[.,:;!?()\[\]{}<>|\"“”„«»*#@=…。、，：；！？（）「」『』]")
# Words that would turn a name into a statement if they follow its first word ("Anna gives ...").
_TELLING: Final = re.compile(
    r"\s(?:gives?|gave|leaves?|left|comes?|came|goes|arrives?|arrived|looks?|shows?|says?|said"
    r"|whispers?|speaks?|tells?|is|was|has|had|and)(?!\w)",
    re.IGNORECASE,
)
_NAMING: Final = ("user", "speaker")  # The template values that are names chosen by players
_IN_SHORT: Final = frozenset(" -'’")
# Letters of other alphabets that look like Latin letters, with the Latin letter for each.
_CAPITALS: Final = str.maketrans(
    "\u039d\u03a5\u0397\u039c\u0396\u0392"
    "\u0555\u054f\u054d\u0585\u057d\u0578\u0570\u0566\u0581\u04ae\u04af\u051b\u051d\u0475",
    "nyhmzbosuounhqgyyqwv",
)
_SAME_SHAPE: Final = str.maketrans("i1|0", "lllo")
_PAIRS: Final = (("rn", "m"), ("vv", "w"))


@lru_cache(maxsize=4096)
def fold_name(name: str) -> str:
    """Return a form of a name that is equal for all names that look or sound alike.

    The form ignores case, accents, blanks and punctuation. It does not distinguish letters of the
    same shape in different alphabets, nor I and l, nor 0 and O. It is never "".
    """
    plain = _LIKE_A_MARK.sub("", _latin(name)) or _latin(name)
    letters = "".join(c for c in plain.translate(_SAME_SHAPE) if c.isalnum() or _is_mark(c))
    for pair, letter in _PAIRS:
        letters = letters.replace(pair, letter)
    return letters or "".join(plain.split()) or SOMEONE


@lru_cache(maxsize=4096)
def spell_name(name: str) -> str:
    """Return a name in small Latin letters and single blanks, to compare it with other names."""
    return " ".join("".join(c if c.isalnum() or _is_mark(c) else " " for c in _latin(name)).split())


_GUISE: Final = "~"


def in_guise(ref: str, guise: str) -> str:
    """Return the reference of a character in the disguise `guise`; `ref` itself if it is ""."""
    return f"{ref}{_GUISE}{guise}" if guise else ref


def start_of_guises(ref: str) -> str:
    """Return the prefix that references to this character in any disguise have."""
    return f"{ref}{_GUISE}"


def wearer_of(ref: str) -> str:
    """Return the reference of the character in a disguise; return other references unchanged."""
    return ref.partition(_GUISE)[0]


def guise_in(ref: str) -> str:
    """Return the disguise in a reference; "" if the reference has none."""
    return ref.partition(_GUISE)[2]


def _latin(name: str) -> str:
    """Return a name in lower case, with Latin letters in place of similar foreign letters."""
    if name.isascii():
        return name.lower()
    return fold_letters(unicodedata.normalize("NFKC", name).translate(_CAPITALS))


def is_word_of_the_game(name: str) -> bool:
    """True if a name looks like a role, like a speaker of the game, or like one of its facts."""
    fold = fold_name(name)
    first = spell_name(name).partition(" ")[0]
    return fold in _RESERVED or first in _OFFICES or fold.startswith(_RESERVED_HEADS)


def bare_name(name: str) -> str:
    """Return a name without colons, which end labels, and without brackets, which marks use."""
    plain = " ".join(name.translate(_BRACKETS).translate(_COLONS).split())
    return plain[:MOST_CHARACTERS].strip() or SOMEONE


def mark_name(name: str, number: int, *, is_word: bool) -> str:
    """Return the label of the `number`th character with a name, counted from 1.

    The first one gets no mark, unless the name is one of the game's own words (`is_word`).
    """
    if number == 1 and not is_word:
        return name
    mark = SO_CALLED if is_word else ANOTHER
    return f"{name} ({mark})" if number <= 1 + (not is_word) else f"{name} ({mark}, {number})"


def remove_mark(label: str) -> str:
    """Return a label without the mark that distinguishes characters with the same name."""
    return _MARK.sub("", label)


@lru_cache(maxsize=4096)
def quote_name(label: str) -> str:
    """Return a label for use in a sentence, with quotes if the name has more than plain words.

    The quotes show where the name ends, so that no part of it can pass for the rest of the line.
    """
    name = remove_mark(label)
    if not (_PUNCTUATION.search(name) or _TELLING.search(name) or len(name) > MOST_CHARACTERS):
        return label
    return f'"{name.translate(_OTHER_QUOTES)}"{label[len(name) :]}'


@lru_cache(maxsize=4096)
def shorten_name(label: str) -> str:
    """Return a label for a system message: only letters, digits, blanks, `-` and `'`."""
    plain = label if label.isascii() else unicodedata.normalize("NFKC", label)
    kept = (c if c in _IN_SHORT or c.isalnum() or _is_mark(c) else " " for c in plain)
    mark = _MARK.search(label)
    words = mark[0].translate(_BRACKETS).replace(",", "").split() if mark else []
    behind = f" {' '.join(words)}" if words else ""
    name = " ".join("".join(kept).split())
    name = name.removesuffix(behind) if behind else name
    return (name[: SHORT_CHARACTERS - len(behind)].strip(" -'’") or SOMEONE) + behind


def shorten_names(values: Mapping[str, str]) -> Mapping[str, str]:
    """Return the values of templates for a system message, with players' names shortened."""
    made = {name: shorten_name(values[name]) for name in _NAMING if name in values}
    return values if made.items() <= values.items() else {**values, **made}


def spoken_name(label: str) -> str:
    """Return a label as it is spoken aloud: short and without its mark."""
    return shorten_name(remove_mark(label))


def _is_mark(character: str) -> bool:
    """True if a character is a mark on the letter before it, such as a vowel in Hindi or Thai."""
    return not character.isascii() and unicodedata.category(character).startswith("M")


_RESERVED: Final = frozenset(map(fold_name, _WORDS))
_RESERVED_HEADS: Final = tuple(map(fold_name, _HEADS))
