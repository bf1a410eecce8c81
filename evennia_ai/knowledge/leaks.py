"""Leaks: whether a text gives away some of what is protected.

A text leaks with eight words in a row of a protected text, or a whole short sentence of it; with
forty letters in a row, forwards or backwards, however they are parted into words, and moved along
the alphabet; with one of its numbers, in whatever form; with a title or a term; and with a long
piece nobody can read. Upper and lower case, accents, punctuation, invisible characters and
look-alikes of other alphabets make no difference. Pure, and linear in the length of the texts.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from string import ascii_lowercase
from typing import Final, Literal

from evennia_ai.knowledge.numbers import Numbers, all_numbers, digits_in, spelt_together

WORDS: Final = 8
"""How many words in a row are a passage."""

SHORTEST_SENTENCE: Final = 4
"""Words from which on a whole sentence is protected as it stands."""

LETTERS: Final = 40
"""How many letters in a row are a passage, blanks and all else left out."""

LETTERS_OF_NAME: Final = 7
"""Letters from which on a title or a term is found inside other words and across them."""

Leak = Literal["", "words", "letters", "number", "title", "term", "opaque"]

# Small letters of the Cyrillic, Greek and phonetic alphabets that look like one of ours.
_LATIN_FOR: Final = {
    **dict(
        zip(
            "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u04bb"
            "\u043a\u043c\u0442\u0432\u043d\u04cf"
            "\u03b1\u03bf\u03c1\u03bd\u03b9\u03ba\u03c4\u03c5\u03c7\u03b5\u03b7"
            "\u0251\u0131\u0261",
            "aeopcyxijsdhkmtbhlaopviktuxenaig",
            strict=True,
        )
    ),
    # Letters in boxes: of flags, in circles, in squares.
    **{
        chr(first + place): chr(ord("a") + place)
        for first in (0x1F1E6, 0x1F150, 0x1F170)
        for place in range(26)
    },
}
_LOOK_ALIKES: Final = str.maketrans(_LATIN_FOR)
_WORD: Final = re.compile(
    r"\d+|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"  # a script without blanks: each sign is a word
    r"|[^\W\d_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+"
)
_SENTENCE_END: Final = re.compile(r"[.!?;:\n\u3002]+")
_APOSTROPHE: Final = re.compile(r"(?<=\w)['\u2019`](?=\w)")
_OPAQUE: Final = re.compile(r"[A-Za-z0-9+/=_-]{40,}")
_UNSEEN: Final = ("Mn", "Me", "Cf", "Cc", "Co", "Cn", "Cs")
_KEPT: Final = "\n\t"
_ALPHABET: Final = ascii_lowercase


@dataclass(frozen=True, slots=True, kw_only=True)
class Protected:
    """What must not be given away, as texts are compared with it."""

    passages: frozenset[tuple[str, ...]]
    letters: frozenset[str]
    numbers: Numbers
    titles: frozenset[tuple[str, ...]]
    terms: frozenset[tuple[str, ...]]


def protected(
    texts: Iterable[str],
    *,
    titles: Collection[str] = (),
    terms: Collection[str] = (),
    told: str = "",
) -> Protected:
    """What these texts, titles and terms protect.

    A title all of whose words are `told` anyway, such as by the name of the base, is no secret.
    Terms are secrets of their own: a word, a name, a saying.
    """
    passages: set[tuple[str, ...]] = set()
    letters: set[str] = set()
    numbers: list[Numbers] = []
    for text in texts:
        plain = folded(text)
        passages.update(_passages(plain))
        letters.update(_windows(_steps(_letters(_words(plain)))))
        numbers.append(all_numbers(spelt_together(plain)))
    numbers += [all_numbers(spelt_together(folded(term))) for term in terms]
    known = set(_words(folded(told)))
    named = {tuple(_words(folded(title))) for title in titles}
    return Protected(
        passages=frozenset(passages),
        letters=frozenset(letters),
        numbers=_together(numbers),
        titles=frozenset(name for name in named if name and not known.issuperset(name)),
        terms=frozenset(name for term in terms if (name := tuple(_words(folded(term))))),
    )


def leak(text: str, secret: Protected) -> Leak:
    """What kind of thing `text` gives away, "" where it gives nothing away."""
    plain = folded(text)
    words = _words(plain)
    letters = _letters(words)
    if _any_in(words, secret.passages):
        return "words"
    ways = (_steps(letters), _steps(letters[::-1]))
    if any(_has_window(way, secret.letters) for way in ways):
        return "letters"
    if _says_number(plain, secret.numbers):
        return "number"
    if _names(words, letters, secret.titles):
        return "title"
    if _names(words, letters, secret.terms) or _are_shifted(ways, secret.terms):
        return "term"
    return "opaque" if _OPAQUE.search(text) else ""


def folded(text: str) -> str:
    """`text` as it is compared: one case, no accents, nothing unseen, Latin for its look-alikes."""
    apart = unicodedata.normalize("NFKD", text.casefold())
    seen = "".join(
        one
        for one in apart
        if one.isascii() or one in _KEPT or unicodedata.category(one) not in _UNSEEN
    )
    plain = unicodedata.normalize("NFC", seen).casefold().translate(_LOOK_ALIKES)
    return _APOSTROPHE.sub("", "".join(map(_digit, plain)))


def _digit(one: str) -> str:
    """A digit of any script as one of ours; other characters as they are."""
    return one if one.isascii() or not one.isdecimal() else str(unicodedata.decimal(one))


def _words(plain: str) -> list[str]:
    return _WORD.findall(plain)


def _letters(words: Iterable[str]) -> str:
    return "".join(word for word in words if not word.isdigit())


def _steps(letters: str) -> str:
    """How far it is from each letter to the next: the same when all are moved along the alphabet.

    So a text is found as well where each letter stands for the one thirteen, or three, after it.
    """
    return "".join(
        _ALPHABET[(ord(after) - ord(before)) % len(_ALPHABET)]
        for before, after in pairwise(letters)
    )


def _passages(plain: str) -> Iterator[tuple[str, ...]]:
    words = _words(plain)
    yield from _runs(words, WORDS)
    for sentence in _SENTENCE_END.split(plain):
        short = tuple(_words(sentence))
        if SHORTEST_SENTENCE <= len(short) < WORDS:
            yield short


def _runs(words: list[str], length: int) -> Iterator[tuple[str, ...]]:
    for start in range(len(words) - length + 1):
        yield tuple(words[start : start + length])


def _windows(steps: str) -> Iterator[str]:
    """The steps between `LETTERS` letters in a row, from each letter on."""
    length = LETTERS - 1
    for start in range(len(steps) - length + 1):
        yield steps[start : start + length]


def _any_in(words: list[str], wanted: frozenset[tuple[str, ...]]) -> bool:
    """Whether some of the runs of words stands in `words`."""
    lengths = {len(one) for one in wanted}
    return any(run in wanted for length in lengths for run in _runs(words, length))


def _has_window(steps: str, wanted: frozenset[str]) -> bool:
    return bool(wanted) and any(window in wanted for window in _windows(steps))


def _together(each: Iterable[Numbers]) -> Numbers:
    """The numbers of several texts."""
    listed = list(each)
    return Numbers(
        long=frozenset(one for numbers in listed for one in numbers.long),
        short=frozenset(one for numbers in listed for one in numbers.short),
        counted=frozenset(pair for numbers in listed for pair in numbers.counted),
    )


def _says_number(plain: str, wanted: Numbers) -> bool:
    """Whether a number stands there in any form.

    One of several digits is found inside of others too. What may be no number, as "one", counts
    beside a word beside which the number is protected.
    """
    plain = spelt_together(plain)
    said = all_numbers(plain)
    if wanted.long & said.long or wanted.short & said.short or wanted.counted & said.counted:
        return True
    return any(number in digits for digits in digits_in(plain) for number in wanted.long)


def _names(words: Iterable[str], letters: str, wanted: frozenset[tuple[str, ...]]) -> bool:
    """Whether a name stands there as words, or, where it is long enough, inside of words."""
    if _any_in(list(words), wanted):
        return True
    joined = (_letters(name) for name in wanted)
    return any(len(one) >= LETTERS_OF_NAME and one in letters for one in joined)


def _are_shifted(ways: Iterable[str], wanted: frozenset[tuple[str, ...]]) -> bool:
    """Whether a term stands there backwards, or with its letters moved along the alphabet."""
    joined = (_letters(name) for name in wanted)
    sought = [_steps(one) for one in joined if len(one) >= LETTERS_OF_NAME]
    return any(one in way for way in ways for one in sought)
