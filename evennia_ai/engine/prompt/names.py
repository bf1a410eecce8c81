"""Names: labels made from names, and names that look or sound like each other.

Players choose their names, so a name proves nothing. The game tells people apart by a mark after
the name, which no name can contain. This module is pure: the code that meets people decides who
has which mark.
"""

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from evennia_ai.engine.text.words import fold_letters

MOST_CHARACTERS: Final = 44
"""The longest name in a label, in characters. With the longest mark it fits every provider's
field."""

SHORT_CHARACTERS: Final = 32
"""The longest name among instructions, in characters."""

SOMEONE: Final = "someone"
"""The label of a name of which nothing is left."""

FACTS: Final = frozenset(
    {
        *("who speaks", "who acts", "who whispers to you", "place", "present"),
        *("what you remember", "what you are after now", "what you lately lived through elsewhere"),
    }
)
"""The headings of facts that the game itself reports."""

# Words for speakers in a prompt who are no players, and headings of the game's facts.
_WORDS: Final = (
    *("system", "assistant", "user", "developer", "human", "ai", "model", "bot", "tool"),
    *("function", "instruction", "instructions", "response", "input", "narrator", "you", "game"),
    *("the game", "game master", "gm", "someone", "somebody", "something", "nobody", "everybody"),
    *("everyone", "the visitor", "visitor", "the character", "an earlier summary", "summary"),
    *("transcript", "tool result", "tool results", "game instruction", "event", "nobody speaks"),
    *FACTS,
)
# A name that begins with one of these reads as a role or as a fact of the game.
_OFFICES: Final = frozenset({"system", "assistant", "developer", "user"})
_HEADS: Final = ("thetool", "whatyou", "whospeaks", "whoacts", "whowhispers", "gameinstruction")

ANOTHER: Final = "another"
SO_CALLED: Final = "so called"
_MARK: Final = re.compile(rf" \((?:{ANOTHER}|{SO_CALLED})(?:, \d{{1,9}})?\)$")
# A name that ends like a mark counts as the name without it.
_LIKE_A_MARK: Final = re.compile(rf"[\W_]*(?:{ANOTHER}|so[\W_]*called)[\W_]*\d*[\W_]*$")

_BRACKETS: Final = str.maketrans(dict.fromkeys("()[]{}<>（）［］｛｝＜＞⟨⟩‹›«»【】〔〕|｜", " "))
_COLONS: Final = str.maketrans(dict.fromkeys(":：﹕︓꞉∶ː˸", " "))
_OTHER_QUOTES: Final = str.maketrans({'"': "'", "“": "'", "”": "'", "„": "'", "«": "'", "»": "'"})
# Punctuation: in a name it could begin another sentence.
_PUNCTUATION: Final = re.compile(r"[.,:;!?()\[\]{}<>|\"“”„«»*#@=…。、，：；！？（）「」『』]")
# After the first word of a name, these words would make a statement.
_TELLING: Final = re.compile(
    r"\s(?:gives?|gave|leaves?|left|comes?|came|goes|arrives?|arrived|looks?|shows?|says?|said"
    r"|whispers?|speaks?|tells?|is|was|has|had|and)(?!\w)",
    re.IGNORECASE,
)
_NAMING: Final = ("user", "speaker")  # values with a name that a player chose
_IN_SHORT: Final = frozenset(" -'’")
# Foreign capitals and small letters that look like Latin ones.
_CAPITALS: Final = str.maketrans(
    "\u039d\u03a5\u0397\u039c\u0396\u0392"
    "\u0555\u054f\u054d\u0585\u057d\u0578\u0570\u0566\u0581\u04ae\u04af\u051b\u051d\u0475",
    "nyhmzbosuounhqgyyqwv",
)
_SAME_SHAPE: Final = str.maketrans("i1|0", "lllo")
_PAIRS: Final = (("rn", "m"), ("vv", "w"))


@lru_cache(maxsize=4096)
def fold_name(name: str) -> str:
    """Return a form of a name that is equal for all names that look or sound alike; never "".

    It ignores case, accents, blanks, punctuation and alphabets with the same letter shapes. It
    takes I for l, and 0 for O.
    """
    plain = _LIKE_A_MARK.sub("", _latin(name)) or _latin(name)
    letters = "".join(c for c in plain.translate(_SAME_SHAPE) if c.isalnum() or _is_mark(c))
    for pair, letter in _PAIRS:
        letters = letters.replace(pair, letter)
    return letters or "".join(plain.split()) or SOMEONE


@lru_cache(maxsize=4096)
def spell_name(name: str) -> str:
    """Return a name in small Latin letters and single blanks, like the name that it may imitate."""
    return " ".join("".join(c if c.isalnum() or _is_mark(c) else " " for c in _latin(name)).split())


_GUISE: Final = "~"


def in_guise(ref: str, guise: str) -> str:
    """Return the reference of a person in a guise, or of the person if `guise` is ""."""
    return f"{ref}{_GUISE}{guise}" if guise else ref


def start_of_guises(ref: str) -> str:
    """Return the start of the references of all guises of a person."""
    return f"{ref}{_GUISE}"


def wearer_of(ref: str) -> str:
    """Return the reference of the person in a guise. Any other reference stays as it is."""
    return ref.partition(_GUISE)[0]


def guise_in(ref: str) -> str:
    """Return the part of a reference that names a guise, "" in a person's own reference."""
    return ref.partition(_GUISE)[2]


def _latin(name: str) -> str:
    """Return a name in small letters, with Latin ones for all that look like them."""
    if name.isascii():
        return name.lower()
    return fold_letters(unicodedata.normalize("NFKC", name).translate(_CAPITALS))


def is_word_of_the_game(name: str) -> bool:
    """True if a name reads as a role, as a speaker of the game, or as one of its facts."""
    fold = fold_name(name)
    first = spell_name(name).partition(" ")[0]
    return fold in _RESERVED or first in _OFFICES or fold.startswith(_RESERVED_HEADS)


def bare_name(name: str) -> str:
    """Return a name for a label, without colons and without brackets, which marks use."""
    plain = " ".join(name.translate(_BRACKETS).translate(_COLONS).split())
    return plain[:MOST_CHARACTERS].strip() or SOMEONE


def mark_name(name: str, number: int, *, is_word: bool) -> str:
    """Return the label of the `number`th person with a name, counted from 1.

    The first one has no mark, unless the name `is_word`, one of the game's own.
    """
    if number == 1 and not is_word:
        return name
    mark = SO_CALLED if is_word else ANOTHER
    return f"{name} ({mark})" if number <= 1 + (not is_word) else f"{name} ({mark}, {number})"


def remove_mark(label: str) -> str:
    """Return the name in a label."""
    return _MARK.sub("", label)


@lru_cache(maxsize=4096)
def quote_name(label: str) -> str:
    """Return a label for a sentence, with quotes around a name that holds more than words.

    The quotes show where the name ends, so that no part of it passes for the rest of the line.
    """
    name = remove_mark(label)
    if not (_PUNCTUATION.search(name) or _TELLING.search(name) or len(name) > MOST_CHARACTERS):
        return label
    return f'"{name.translate(_OTHER_QUOTES)}"{label[len(name) :]}'


@lru_cache(maxsize=4096)
def shorten_name(label: str) -> str:
    """Return a label for a message of role system: only letters, digits, blanks, `-` and `'`."""
    plain = label if label.isascii() else unicodedata.normalize("NFKC", label)
    kept = (c if c in _IN_SHORT or c.isalnum() or _is_mark(c) else " " for c in plain)
    mark = _MARK.search(label)
    words = mark[0].translate(_BRACKETS).replace(",", "").split() if mark else []
    behind = f" {' '.join(words)}" if words else ""
    name = " ".join("".join(kept).split())
    name = name.removesuffix(behind) if behind else name
    return (name[: SHORT_CHARACTERS - len(behind)].strip(" -'’") or SOMEONE) + behind


def shorten_names(values: Mapping[str, str]) -> Mapping[str, str]:
    """Return the values for a message of role system, in which players' names are short."""
    made = {name: shorten_name(values[name]) for name in _NAMING if name in values}
    is_short = all(values[name] == text for name, text in made.items())
    return values if is_short else {**values, **made}


def spoken_name(label: str) -> str:
    """Return a label as a person says it aloud: short and without its mark."""
    return shorten_name(remove_mark(label))


def _is_mark(character: str) -> bool:
    """True if a character belongs to the letter before it, as in Hindi or Thai."""
    return not character.isascii() and unicodedata.category(character).startswith("M")


_RESERVED: Final = frozenset(map(fold_name, _WORDS))
_RESERVED_HEADS: Final = tuple(map(fold_name, _HEADS))
