"""Key matching: which keys of a book stand in a text and where, and the hits that are kept.

All keys of a book are looked for together (`shelves`). A text is asked for its words once, so the
cost does not depend on how many keys there are. Texts are matched one by one: a key never reaches
over two messages.

What was found in the messages of a conversation is kept with it, in `hit_cache`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

from evennia_ai.engine.lorebook.scan.regex.pattern import TEXT_STEPS, Pattern, search_patterns
from evennia_ai.engine.lorebook.scan.shelves import Key, Shelves
from evennia_ai.engine.text.normal_form import normal_form, normal_positions

_MOST_KNOWN: Final = 8192
MOST_CHARACTERS: Final = 2_000_000
"""Of the texts whose hits a table remembers."""


class Span(NamedTuple):
    """Where a key was found; code points of the message's content.

    `start` is negative where it was found in the speaker's name in front of the content.
    """

    start: int
    end: int


# Number of a key in its table -> its first place.
Hits = Mapping[int, Span]
# Number of a pattern that was not looked for to the end -> why.
GivenUp = Mapping[int, str]
_NO_HITS: Final[Hits] = {}
_NONE_GIVEN_UP: Final[GivenUp] = {}


class Scanned(NamedTuple):
    """What was found in one text, what was given up there, and the steps that its patterns took."""

    hits: Hits
    given_up: GivenUp = _NONE_GIVEN_UP
    steps: int = 0


# The place in the written text of each character of a form; None if no character moved.
_Places = tuple[int, ...] | None


@dataclass(slots=True)
class Searchable:
    """A text to search: as written, in its normal form (`text.normal_form`), and folded.

    `lead` is the length of the speaker's name in front of the content. The words of a form are
    found once, for all tables.
    """

    written: str
    cased: str
    folded: str
    lead: int
    places_cased: _Places
    places_folded: _Places
    _words: dict[object, frozenset[str]] = field(default_factory=dict)

    def words(self, text: str, split: Callable[[str], Iterable[str]]) -> frozenset[str]:
        """The words of `text`, which is one of its two forms, or what else `split` makes of it."""
        known = self._words.get((split, text is self.folded))
        if known is None:
            known = self._words[split, text is self.folded] = frozenset(split(text))
        return known

    def span(self, haystack: str, at: int, end: int) -> Span:
        """Where a stretch of `haystack`, which is one of its two forms, stands as written."""
        places = self.places_folded if haystack is self.folded else self.places_cased
        if places is not None:
            # Half of a letter that became two counts as all of it, and a letter with its marks.
            at, end = places[at], max(places[end - 1] + 1, places[end])
        return Span(at - self.lead, end - self.lead)


# Takes the case out of a text.
Fold = Callable[[str], str]


def searchable(content: str, *, name: str | None = None, fold: Fold = str.casefold) -> Searchable:
    """A text ready to be searched, with the speaker's name in front if there is one."""
    lead = f"{name}: " if name else ""
    written = lead + content
    is_plain = written.isascii() and "_" not in written  # most are
    cased = written if is_plain else normal_form(written)
    folded = fold(cased)
    places_cased = places_folded = None if cased is written else normal_positions(written)
    if len(folded) != len(cased):  # one more for the end
        origin = range(len(cased) + 1) if places_cased is None else places_cased
        folds = (origin[at] for at, char in enumerate(cased) for _ in fold(char))
        places_folded = (*folds, len(written))
    return Searchable(written, cased, folded, len(lead), places_cased, places_folded)


class KeyTable:
    """All keys of a book, looked for together; a key's number is its place in `keys`.

    What it found in a text stays right for ever, because both are immutable, and is remembered
    here by the text: a line that thirty NPCs heard is scanned once. `patterns` are regular
    expressions by number; `fold` is how the keys lost their case, and the texts must.
    """

    __slots__ = ("_cased", "_characters", "_folded", "_known", "fold", "patterns")

    def __init__(
        self,
        keys: Iterable[tuple[int, Key]],
        *,
        patterns: Mapping[int, Pattern] | None = None,
        fold: Fold = str.casefold,
    ) -> None:
        self.fold = fold
        folded, cased = _by_case(keys)
        self._folded = Shelves(folded)
        self._cased = Shelves(cased)
        self.patterns: Mapping[int, Pattern] = patterns or {}
        self._known: dict[tuple[str, int], Scanned] = {}
        self._characters = 0

    def hits(self, text: Searchable) -> Hits:
        """Each key that stands in `text`, with its first place."""
        return self.scanned(text).hits

    def scanned(self, text: Searchable, *, steps: int = TEXT_STEPS) -> Scanned:
        """Return the keys in `text` and what was given up; all patterns together have `steps`."""
        known = self._known.get((text.written, text.lead)) if steps == TEXT_STEPS else None
        return known or self._search(text, steps)

    def scanned_in(self, text: str, *, steps: int = TEXT_STEPS) -> Scanned:
        """Return the same for a text that nobody speaks; it is made ready only if it is new."""
        known = self._known.get((text, 0)) if steps == TEXT_STEPS else None
        return known or self._search(searchable(text, fold=self.fold), steps)

    def _search(self, text: Searchable, steps: int) -> Scanned:
        """Search a text for all keys; remember what was found with all the steps of a text."""
        found: dict[int, Span] = {}
        for shelves, haystack in ((self._folded, text.folded), (self._cased, text.cased)):
            for number, at, end in shelves.places(haystack, partial(text.words, haystack)):
                found[number] = text.span(haystack, at, end)
        if not self.patterns:
            made = Scanned(found or _NO_HITS)
        else:
            hits = search_patterns(text.written, self.patterns.values(), steps=steps)
            given_up: dict[int, str] = {}
            for number, pattern in self.patterns.items():
                if pattern in hits.places:
                    start, end = hits.places[pattern]
                    found[number] = Span(start - text.lead, end - text.lead)
                elif pattern in hits.given_up:
                    given_up[number] = hits.given_up[pattern]
            made = Scanned(found or _NO_HITS, given_up or _NONE_GIVEN_UP, hits.steps)
        return self._remembered((text.written, text.lead), made) if steps == TEXT_STEPS else made

    def _remembered(self, slot: tuple[str, int], scanned: Scanned) -> Scanned:
        self._characters += len(slot[0])
        if len(self._known) >= _MOST_KNOWN or self._characters > MOST_CHARACTERS:
            self._known, self._characters = {}, len(slot[0])
        self._known[slot] = scanned
        return scanned


_Numbered = list[tuple[int, Key]]


def _by_case(keys: Iterable[tuple[int, Key]]) -> tuple[_Numbered, _Numbered]:
    """The keys of which the case does not count, and the others."""
    folded: _Numbered = []
    cased: _Numbered = []
    for one in keys:
        (cased if one[1].sensitive else folded).append(one)
    return folded, cased
