"""Leaks: whether a text gives away some of what is protected.

A text leaks with eight words in a row of a protected text, or a whole short sentence of it, also
with other words between; with forty letters in a row, however they are parted into words, and moved
along the alphabet; with one of its numbers, in whatever form; with a title or a term; and with a
long piece nobody can read. It is compared in each of its `readings`, and of each of these its words
are taken as they are, each reversed, in reverse order, and reversed altogether; titles and terms
are looked for in first, last, second and third letters too. Pure, and linear in the length of the
texts.
"""

import codecs
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from evennia_ai.engine.knowledge.restricted.numbers import (
    COMMON,
    Numbers,
    all_numbers,
    number_word,
    numbers_of,
    places,
    spelt_together,
)
from evennia_ai.engine.knowledge.restricted.readings import readings, squeezed
from evennia_ai.engine.text.words import letters_folded, letters_of

WORDS: Final = 8
"""How many words in a row are a passage."""

SHORTEST_SENTENCE: Final = 4
"""Words from which on a whole sentence is protected as it stands."""

LETTERS: Final = 40
"""How many letters in a row are a passage, blanks and all else left out."""

LETTERS_OF_NAME: Final = 7
"""Letters from which on a title or a term is found inside other words and across them."""

Leak = Literal["", "words", "letters", "number", "title", "term", "opaque"]

_SIGNS: Final = letters_of("kana", "han", "hangul")
_WORD: Final = re.compile(rf"\d+|(?=\w)[{_SIGNS}]|[^\W\d_{_SIGNS}]+")
_SENTENCE_END: Final = re.compile(r"[.!?;:\n\u3002]+")
_OPAQUE: Final = re.compile(r"[A-Za-z0-9+/=_-]{40,}")
_ALPHABET: Final = 26

TELLING_WORDS: Final = 5
"""How many telling words of a protected text in their order are a passage, whatever is between."""

_TELLING_OF_SENTENCE: Final = 4
_TELLING_LETTERS: Final = 4
_MOST_BETWEEN: Final = 8
"""Words of an answer for each telling one, on the average."""

_DISGUISED_NUMBER: Final = 5
"""Letters from which on a number word is looked for backwards and moved: `net` is no ten."""

_SCATTERED_DIGITS: Final = 4
_HALF: Final = LETTERS // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Protected:
    """What must not be given away, as texts are compared with it."""

    passages: frozenset[tuple[str, ...]]
    telling: frozenset[tuple[str, ...]]
    """Telling words in a row, common ones left out."""
    letters: frozenset[str]
    """Steps between the letters of passages, and of their halves."""
    numbers: Numbers
    titles: frozenset[tuple[str, ...]]
    terms: frozenset[tuple[str, ...]]
    vocabulary: frozenset[str]
    """All words of the passages and of the telling ones."""


class _Row(NamedTuple):
    """The words of a text in one order, its letters, and the steps between these."""

    words: list[str]
    letters: str
    steps: str
    is_as_written: bool


Find = tuple[Leak, object]
"""What kind of thing a text gives away, and which."""


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
    telling: set[tuple[str, ...]] = set()
    letters: set[str] = set()
    numbers: list[Numbers] = []
    for text in texts:
        plain = letters_folded(text)
        for way in (plain, squeezed(plain)):
            passages.update(_passages(way))
            telling.update(_telling_runs(way))
            letters.update(_windows(_steps(_letters(_words(way)))))
        numbers.append(all_numbers(spelt_together(plain)))
    numbers += [all_numbers(spelt_together(letters_folded(term))) for term in terms]
    known = set(_words(letters_folded(told)))
    named = {tuple(_words(letters_folded(title))) for title in titles}
    return Protected(
        passages=frozenset(passages),
        telling=frozenset(telling),
        letters=frozenset(letters),
        numbers=_together(numbers),
        titles=frozenset(name for name in named if name and not known.issuperset(name)),
        terms=frozenset(name for term in terms if (name := tuple(_words(letters_folded(term))))),
        vocabulary=frozenset(word for run in (*passages, *telling) for word in run),
    )


def leak(text: str, secret: Protected, *, before: str = "") -> Leak:
    """What kind of thing `text` gives away, "" where it gives nothing away.

    `before` was told earlier to the same people: a secret may come in pieces, a few in each answer.
    What stands in it already is no leak of `text`.
    """
    if not before:
        return next((kind for kind, _ in finds(text, secret)), "")
    known = set(finds(before, secret))
    for told in (text, f"{before}\n{text}"):
        for find in finds(told, secret):
            if find not in known or told is text:
                return find[0]
    return ""


def finds(text: str, secret: Protected) -> Iterator[Find]:
    """All that `text` gives away, passages first."""
    told = list(readings(text))
    rows = [row for reading in told for row in _rows(_words(reading))]
    moved = _words(codecs.encode(told[0], "rot13"))  # its letters have the same steps
    for words in (*(row.words for row in rows), moved):
        yield from _passages_in(words, secret)
    for row in rows:
        yield from _letters_in(row.steps, secret.letters)
    for reading in told:
        yield from _numbers_in(spelt_together(reading), secret.numbers)
    for words in (moved, rows[1].words):
        yield from _numbers_in(_long_words(words), secret.numbers)
    for kind, names in _named(secret):
        for row in rows:
            yield from ((kind, name) for name in _names_in(row, names))
    if _OPAQUE.search(text):
        yield "opaque", ""


def _named(secret: Protected) -> tuple[tuple[Leak, frozenset[tuple[str, ...]]], ...]:
    return ("title", secret.titles), ("term", secret.terms)


def _rows(words: list[str]) -> Iterator[_Row]:
    """The words as they are, each reversed, in reverse order, and reversed altogether."""
    reversed_each = [word[::-1] for word in words]
    ways = (words, reversed_each, words[::-1], reversed_each[::-1])
    for place, way in enumerate(ways):
        letters = _letters(way)
        steps = _steps(letters)
        yield _Row(words=way, letters=letters, steps=steps, is_as_written=place == 0)


def _words(plain: str) -> list[str]:
    return _WORD.findall(plain)


def _letters(words: Iterable[str]) -> str:
    return "".join(word for word in words if not word.isdigit())


def _steps(letters: str) -> str:
    """How far it is from each letter to the next: the same when all are moved along the alphabet.

    So a text is found as well where each letter stands for the one thirteen, or three, after it.
    """
    codes = letters.encode() if letters.isascii() else [ord(one) for one in letters]
    return bytes([(after - one) % _ALPHABET for one, after in pairwise(codes)]).decode("ascii")


_steps_of_name = lru_cache(maxsize=1024)(_steps)


def _passages(plain: str) -> Iterator[tuple[str, ...]]:
    words = _words(plain)
    yield from _runs(words, WORDS)
    for sentence in _SENTENCE_END.split(plain):
        short = tuple(_words(sentence))
        if SHORTEST_SENTENCE <= len(short) < WORDS:
            yield short


def _telling_runs(plain: str) -> Iterator[tuple[str, ...]]:
    """Runs of the words that tell something, and those of a whole short sentence."""
    yield from _runs([word for word in _words(plain) if _tells(word)], TELLING_WORDS)
    for sentence in _SENTENCE_END.split(plain):
        short = tuple(word for word in _words(sentence) if _tells(word))
        if len(short) == _TELLING_OF_SENTENCE:
            yield short


def _tells(word: str) -> bool:
    return len(word) >= _TELLING_LETTERS and word not in COMMON


def _runs(words: list[str], length: int) -> Iterator[tuple[str, ...]]:
    for start in range(len(words) - length + 1):
        yield tuple(words[start : start + length])


def _windows(steps: str) -> Iterator[str]:
    """The steps between `LETTERS` letters in a row, from each letter on, and the half of them."""
    for length in (LETTERS - 1, _HALF):
        for start in range(len(steps) - length + 1):
            yield steps[start : start + length]


def _passages_in(words: list[str], secret: Protected) -> Iterator[Find]:
    """Passages that stand there as they are, and those with other words between."""
    known = [(place, word) for place, word in enumerate(words) if word in secret.vocabulary]
    if len(known) < SHORTEST_SENTENCE:
        return
    for run in _runs_in(words, secret.passages):
        yield "words", run
    telling = [(place, word) for place, word in known if _tells(word)]
    for length in (TELLING_WORDS, _TELLING_OF_SENTENCE):
        for start in range(len(telling) - length + 1):
            places = telling[start : start + length]
            run = tuple(word for _, word in places)
            is_near = places[-1][0] - places[0][0] <= _MOST_BETWEEN * length
            if is_near and run in secret.telling:
                yield "words", run


def _letters_in(steps: str, wanted: frozenset[str]) -> Iterator[Find]:
    """Forty letters of a passage; a half of them would begin at a multiple of its length."""
    halves = range(0, len(steps) - _HALF + 1, _HALF)
    if not any(steps[at : at + _HALF] in wanted for at in halves):
        return
    length = LETTERS - 1
    for at in range(len(steps) - length + 1):
        if steps[at : at + length] in wanted:
            yield "letters", steps[at : at + length]


def _runs_in(words: list[str], wanted: frozenset[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """The runs of words that stand in `words`."""
    for length in {len(one) for one in wanted}:
        yield from (run for run in _runs(words, length) if run in wanted)


def _together(each: Iterable[Numbers]) -> Numbers:
    """The numbers of several texts."""
    listed = list(each)
    return Numbers(
        long=frozenset(one for numbers in listed for one in numbers.long),
        short=frozenset(one for numbers in listed for one in numbers.short),
        counted=frozenset(pair for numbers in listed for pair in numbers.counted),
    )


def _numbers_in(plain: str, wanted: Numbers) -> Iterator[Find]:
    """The numbers that stand there in any form.

    One of several digits is found inside of others too, and where its digits are scattered. What
    may be no number, as "one", counts beside a word beside which the number is protected.
    """
    if not any(one[0].isdigit() or number_word(one) for one in _words(plain)):
        return
    found = places(plain)
    said = numbers_of(found)
    for one in (*(wanted.long & said.long), *(wanted.short & said.short)):
        yield "number", one
    for pair in wanted.counted & said.counted:
        yield "number", pair
    groups = [place.joined for place in found if place.is_sure]
    scattered = "".join(groups)
    for number in wanted.long:
        is_inside = any(number in digits for digits in groups)
        if is_inside or (len(number) >= _SCATTERED_DIGITS and number in scattered):
            yield "number", number


def _long_words(words: list[str]) -> str:
    """Words that may be numbers, anything short as what is none."""
    return " ".join(
        [word if len(word) >= _DISGUISED_NUMBER and word.isalpha() else "-" for word in words]
    )


def _names_in(row: _Row, wanted: frozenset[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Names that stand there as words, or, where they are long enough, inside of words."""
    long = {name: joined for name in wanted if len(joined := _letters(name)) >= LETTERS_OF_NAME}
    yield from _runs_in(row.words, wanted if row.is_as_written else frozenset(long))
    if not long:
        return
    picked = tuple(_picked(row.words, row.letters)) if row.is_as_written else (row.letters,)
    for name, joined in long.items():
        once = squeezed(joined)
        is_doubled = row.is_as_written and len(once) >= LETTERS_OF_NAME and once in picked[-1]
        is_moved = _steps_of_name(joined) in row.steps
        if is_doubled or is_moved or any(joined in one for one in picked):
            yield name


def _picked(words: list[str], letters: str) -> Iterator[str]:
    """First and last letters of words, every second and third letter, each once of several."""
    yield "".join([word[0] for word in words])
    yield "".join([word[-1] for word in words])
    for step in (2, 3):
        for start in range(step):
            yield letters[start::step]
    yield squeezed(letters)
