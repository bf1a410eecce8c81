"""Leaks: find protected content of a restricted knowledge base in another text.

A text leaks if it contains any of these:

- eight words in a row of a protected text;
- a whole short sentence of a protected text, also with other words in between;
- forty letters in a row of a protected text, also if they are divided into other words or each
  shifted by the same number of places in the alphabet;
- a protected number in any form;
- a protected title or term;
- a long run of characters that nobody can read.

The text is compared in each of its readings (`readings.py`). The words of a reading are compared in
both orders, and spelled forwards and backwards. Titles and terms are also searched in the first and
last letters of words, and in each second and third letter. The code here has no side effects, and
its time is linear in the length of the texts.
"""

import codecs
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final, Literal, NamedTuple

from evennia_ai.engine.knowledge.restricted.numbers import (
    MORE_COMMON_WORDS,
    Numbers,
    find_numbers,
    group_numbers,
    join_spelled_letters,
    numbers_in_text,
    parse_number_word,
)
from evennia_ai.engine.knowledge.restricted.readings import decode_readings, squeeze_letters
from evennia_ai.engine.text.words import fold_letters, script_ranges

PASSAGE_WORDS: Final = 8
"""How many words in a row of a protected text are a leak."""

SHORTEST_SENTENCE: Final = 4
"""From how many words on a sentence is protected as a whole."""

PASSAGE_LETTERS: Final = 40
"""How many letters in a row of a protected text are a leak. Blanks and signs do not count."""

LETTERS_OF_NAME: Final = 7
"""From how many letters on a title or term is also found inside words and across words."""

LeakKind = Literal["", "words", "letters", "number", "title", "term", "opaque"]

_SIGNS: Final = script_ranges("kana", "han", "hangul")
_WORD: Final = re.compile(rf"\d+|(?=\w)[{_SIGNS}]|[^\W\d_{_SIGNS}]+")
_SENTENCE_END: Final = re.compile(r"[.!?;:\n\u3002]+")
_OPAQUE: Final = re.compile(r"[A-Za-z0-9+/=_-]{40,}")
_ALPHABET: Final = 26

TELLING_WORDS: Final = 5
"""How many distinctive words of a protected text, in their order, are a leak.

Other words may be between them.
"""

_TELLING_OF_SENTENCE: Final = 4
_DISTINCTIVE_LETTERS: Final = 4  # the least letters of a distinctive word
# Distinctive words are a leak only if, on average, at least one of this many words is distinctive.
_MOST_BETWEEN: Final = 8

# From how many letters on a number word is also found reversed or shifted. Shorter ones would match
# ordinary words: `net` is `ten` reversed.
_DISGUISED_NUMBER: Final = 5

_SCATTERED_DIGITS: Final = 4
_HALF: Final = PASSAGE_LETTERS // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Protected:
    """Protected texts, titles and terms, in the forms that are compared with other texts."""

    passages: frozenset[tuple[str, ...]]
    distinctive: frozenset[tuple[str, ...]]
    """Runs of distinctive words of protected texts. The common words between them are left out."""
    letters: frozenset[str]
    """The distances in the alphabet between neighbouring letters, for each run of letters."""
    numbers: Numbers
    titles: frozenset[tuple[str, ...]]
    terms: frozenset[tuple[str, ...]]
    vocabulary: frozenset[str]
    """All words that occur in `passages` and `distinctive`."""


class _Row(NamedTuple):
    """The words of a text in one order, with their letters and the distances between letters."""

    words: list[str]
    letters: str
    steps: str
    is_as_written: bool


FoundLeak = tuple[LeakKind, object]
"""A leak: its kind, and the content that was leaked."""


def protect_texts(
    texts: Iterable[str],
    *,
    titles: Collection[str] = (),
    terms: Collection[str] = (),
    public: str = "",
) -> Protected:
    """Return texts, titles and terms in the forms that are compared with other texts.

    Args:
        texts: Texts to protect, including the numbers in them.
        titles: Titles of pages.
        terms: Further secrets: words, names, sayings.
        public: Public words, such as the name of the base. A title that consists only of public
            words
            is no secret.
    """
    passages: set[tuple[str, ...]] = set()
    distinctive: set[tuple[str, ...]] = set()
    letters: set[str] = set()
    numbers: list[Numbers] = []
    for text in texts:
        plain = fold_letters(text)
        for way in (plain, squeeze_letters(plain)):
            passages.update(_passages(way))
            distinctive.update(_distinctive_runs(way))
            letters.update(_windows(_steps(_letters(_words(way)))))
        numbers.append(numbers_in_text(join_spelled_letters(plain)))
    numbers += [numbers_in_text(join_spelled_letters(fold_letters(term))) for term in terms]
    known = set(_words(fold_letters(public)))
    named = {tuple(_words(fold_letters(title))) for title in titles}
    return Protected(
        passages=frozenset(passages),
        distinctive=frozenset(distinctive),
        letters=frozenset(letters),
        numbers=Numbers(
            long=frozenset(one for some in numbers for one in some.long),
            short=frozenset(one for some in numbers for one in some.short),
            counted=frozenset(pair for some in numbers for pair in some.counted),
        ),
        titles=frozenset(name for name in named if name and not known.issuperset(name)),
        terms=frozenset(name for term in terms if (name := tuple(_words(fold_letters(term))))),
        vocabulary=frozenset(word for run in (*passages, *distinctive) for word in run),
    )


def find_leak(text: str, secret: Protected, *, before: str = "") -> LeakKind:
    """Return the kind of the first leak of protected content in a text; "" if there is none.

    Args:
        text: The text to check.
        secret: The protected content.
        before: Earlier texts for the same people. A secret that is spread over them and `text` is a
            leak. Leaks that are already in the earlier texts do not count.
    """
    if not before:
        return next((kind for kind, _ in find_all_leaks(text, secret)), "")
    known = set(find_all_leaks(before, secret))
    for whole in (text, f"{before}\n{text}"):
        for found in find_all_leaks(whole, secret):
            if found not in known or whole is text:
                return found[0]
    return ""


def find_all_leaks(text: str, secret: Protected) -> Iterator[FoundLeak]:
    """Yield each leak of protected content in a text with its kind. Passages come first."""
    readings = list(decode_readings(text))
    rows = [row for reading in readings for row in _rows(_words(reading))]
    # Letters are compared by the distances between them, which ROT13 does not change. So only words
    # and numbers are compared in ROT13, too.
    moved = _words(codecs.encode(readings[0], "rot13"))
    for words in (*(row.words for row in rows), moved):
        yield from _passages_in(words, secret)
    for row in rows:
        yield from _letters_in(row.steps, secret.letters)
    for reading in readings:
        yield from _numbers_in(join_spelled_letters(reading), secret.numbers)
    for words in (moved, rows[1].words):
        yield from _numbers_in(_long_words(words), secret.numbers)
    for row in rows:
        yield from (("title", name) for name in _names_in(row, secret.titles))
    for row in rows:
        yield from (("term", name) for name in _names_in(row, secret.terms))
    if _OPAQUE.search(text):
        yield "opaque", ""


def _rows(words: list[str]) -> Iterator[_Row]:
    """Yield the words of a text in four variants.

    They are unchanged, each word reversed, in reverse order, and both.
    """
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
    """Return the distances in the alphabet between neighbouring letters.

    The distances stay the same if all letters are shifted alike. So a text is also found if, for
    example, each letter was replaced by the third letter after it.
    """
    codes = letters.encode() if letters.isascii() else [ord(one) for one in letters]
    return bytes([(after - one) % _ALPHABET for one, after in pairwise(codes)]).decode("ascii")


_steps_of_name = lru_cache(maxsize=1024)(_steps)


def _passages(plain: str) -> Iterator[tuple[str, ...]]:
    words = _words(plain)
    yield from _runs(words, PASSAGE_WORDS)
    for sentence in _SENTENCE_END.split(plain):
        short = tuple(_words(sentence))
        if SHORTEST_SENTENCE <= len(short) < PASSAGE_WORDS:
            yield short


def _distinctive_runs(plain: str) -> Iterator[tuple[str, ...]]:
    """Yield runs of distinctive words in a text. A distinctive word is long and rare.

    Also yield the distinctive words of each sentence that has exactly four of them.
    """
    yield from _runs([word for word in _words(plain) if _is_distinctive(word)], TELLING_WORDS)
    for sentence in _SENTENCE_END.split(plain):
        short = tuple(word for word in _words(sentence) if _is_distinctive(word))
        if len(short) == _TELLING_OF_SENTENCE:
            yield short


def _is_distinctive(word: str) -> bool:
    """True if a word is distinctive: long and rare enough to recognise a text by it."""
    return len(word) >= _DISTINCTIVE_LETTERS and word not in MORE_COMMON_WORDS


def _runs(words: list[str], length: int) -> Iterator[tuple[str, ...]]:
    for start in range(len(words) - length + 1):
        yield tuple(words[start : start + length])


def _windows(steps: str) -> Iterator[str]:
    """Yield the parts of `steps` for each run of `PASSAGE_LETTERS` letters and each half of it.

    `steps` has the distance in the alphabet from each letter of a text to the next.
    """
    for length in (PASSAGE_LETTERS - 1, _HALF):
        for start in range(len(steps) - length + 1):
            yield steps[start : start + length]


def _passages_in(words: list[str], secret: Protected) -> Iterator[FoundLeak]:
    """Yield the protected passages among some words, also if other words are in between."""
    known = [(place, word) for place, word in enumerate(words) if word in secret.vocabulary]
    if len(known) < SHORTEST_SENTENCE:
        return
    for run in _runs_in(words, secret.passages):
        yield "words", run
    distinctive = [(place, word) for place, word in known if _is_distinctive(word)]
    for length in (TELLING_WORDS, _TELLING_OF_SENTENCE):
        for start in range(len(distinctive) - length + 1):
            places = distinctive[start : start + length]
            run = tuple(word for _, word in places)
            is_near = places[-1][0] - places[0][0] <= _MOST_BETWEEN * length
            if is_near and run in secret.distinctive:
                yield "words", run


def _letters_in(steps: str, wanted: frozenset[str]) -> Iterator[FoundLeak]:
    """Yield the protected passages that a text contains letter by letter.

    A passage in the text always contains one of its half runs that begins at a multiple of the half
    length. So these half runs are searched first, which is fast.
    """
    halves = range(0, len(steps) - _HALF + 1, _HALF)
    if not any(steps[at : at + _HALF] in wanted for at in halves):
        return
    length = PASSAGE_LETTERS - 1
    for at in range(len(steps) - length + 1):
        if steps[at : at + length] in wanted:
            yield "letters", steps[at : at + length]


def _runs_in(words: list[str], wanted: frozenset[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Yield the runs of neighbouring words that are in `wanted`."""
    for length in {len(one) for one in wanted}:
        yield from (run for run in _runs(words, length) if run in wanted)


def _numbers_in(plain: str, wanted: Numbers) -> Iterator[FoundLeak]:
    """Yield the protected numbers that a text contains in any form.

    A number of several digits is also found inside longer numbers, and if its digits are scattered.
    An ambiguous number, such as "one", counts only next to the word that it counts.
    """
    if not any(one[0].isdigit() or parse_number_word(one) for one in _words(plain)):
        return
    found = find_numbers(plain)
    said = group_numbers(found)
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
    """Join the words that are long enough to be disguised numbers. "-" replaces other words."""
    return " ".join(
        [word if len(word) >= _DISGUISED_NUMBER and word.isalpha() else "-" for word in words]
    )


def _names_in(row: _Row, wanted: frozenset[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Yield the protected names that a text contains as words, or long names inside words."""
    long = {name: joined for name in wanted if len(joined := _letters(name)) >= LETTERS_OF_NAME}
    yield from _runs_in(row.words, wanted if row.is_as_written else frozenset(long))
    if not long:
        return
    picked = tuple(_acrostics(row.words, row.letters)) if row.is_as_written else (row.letters,)
    for name, joined in long.items():
        once = squeeze_letters(joined)
        is_doubled = row.is_as_written and len(once) >= LETTERS_OF_NAME and once in picked[-1]
        is_moved = _steps_of_name(joined) in row.steps
        if is_doubled or is_moved or any(joined in one for one in picked):
            yield name


def _acrostics(words: list[str], letters: str) -> Iterator[str]:
    """Yield sequences of letters in which a text may hide a name.

    These are the first and the last letters of words, each second and third letter, and all letters
    without repetitions.
    """
    yield "".join([word[0] for word in words])
    yield "".join([word[-1] for word in words])
    for step in (2, 3):
        for start in range(step):
            yield letters[start::step]
    yield squeeze_letters(letters)
