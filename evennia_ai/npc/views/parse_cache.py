"""Cards and lorebooks of the store, each text read once for all who use it, while there is room.

Parsed, a card or a book takes many times the memory of its text. So what is kept is bounded by the
length of the texts too. A book is known by the hash of its text: whoever uses it, wherever it is
attached and whatever its revision and its grants are, its entries and the tables of their keys are
the same objects.
"""

import json
import logging
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from threading import Lock
from typing import Any, Final, Generic, Protocol, TypeVar

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.lorebook.book import Lorebook
from evennia_ai.engine.lorebook.rules import ActivationRules
from evennia_ai.engine.lorebook.scan.key_index import prepare_index
from evennia_ai.engine.prompt.components import Scope
from evennia_ai.engine.prompt.memo import Memo
from evennia_ai.engine.prompt.templates.macros import count_macros
from evennia_ai.engine.prompt.templates.template import compile_template
from evennia_ai.formats.cards.card import Card, card_from_text, texts_with_macros
from evennia_ai.formats.cards.components import character_book
from evennia_ai.formats.lorebooks.books import read_book
from evennia_ai.store.authored.cards import StoredCard
from evennia_ai.store.authored.lorebooks import StoredBook

MOST_PARSED: Final = 256
"""Cards, books and players' books that are kept parsed."""
MOST_CHARACTERS: Final = 32_000_000
"""Characters of the texts whose values are kept; parsed they take ten times as much memory."""

log: Final = logging.getLogger(__name__)


class Text(Hashable, Protocol):
    """What is parsed: one version of a text."""

    @property
    def source(self) -> str: ...


T = TypeVar("T", bound=Text)
V = TypeVar("V")


class Parsed(Generic[T, V]):
    """Values by their text, each parsed when it is first asked for, those used longest ago dropped.

    The newest one is kept however long it is. Threads may share it.
    """

    def __init__(
        self, parse: Callable[[T], V], *, most: int, most_characters: int = MOST_CHARACTERS
    ) -> None:
        self._parse = parse
        self._most = most
        self._most_characters = most_characters
        self._kept: OrderedDict[T, V] = OrderedDict()
        self._characters = 0
        self._lock = Lock()

    def __call__(self, text: T) -> V:
        """The value of the text; what `parse` raises is raised each time."""
        with self._lock:
            if text in self._kept:
                self._kept.move_to_end(text)
                return self._kept[text]
        return self.keep(text, self._parse(text))  # not inside the lock: it may take seconds

    def __contains__(self, text: T) -> bool:
        """True if its value is kept."""
        with self._lock:
            return text in self._kept

    def keep(self, text: T, value: V) -> V:
        """Keep a value that was made otherwise, or give the one that is kept already."""
        with self._lock:
            return self._keep(text, value)

    def _keep(self, text: T, value: V) -> V:
        """Keep the value, or give the one that another thread has kept meanwhile."""
        if text in self._kept:
            return self._kept[text]
        self._kept[text] = value
        self._characters += len(text.source)
        while len(self._kept) > 1 and self._is_full():
            dropped, _ = self._kept.popitem(last=False)
            self._characters -= len(dropped.source)
        return value

    def _is_full(self) -> bool:
        return len(self._kept) > self._most or self._characters > self._most_characters


def read_ahead(stored: StoredCard) -> None:
    """Parse a card, its texts and its book, so that the next turn need not; any thread may do it.

    FormatError: it cannot be read.
    """
    compile_ahead(texts_with_macros(parsed_card(stored)))
    own_book(stored)


def compile_ahead(texts: Iterable[str]) -> None:
    """Compile imported texts, so that the view of an NPC finds them compiled."""
    for text in texts:
        compile_template(text, trust="imported")


MANY_MACROS: Final = 500
"""Macros from which on a file is read beside the game: some milliseconds."""


def is_long_to_read(source: str, *, characters: int) -> bool:
    """True if reading a file takes more than a few milliseconds, by its length or its macros."""
    return len(source) >= characters or count_macros(source) >= MANY_MACROS


@dataclass(frozen=True, slots=True)
class _BookText:
    """The text of a book, under its name, which stands in the labels of its entries."""

    name: str
    sha256: str
    source: str = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class _CardText:
    """The text of a card, which says all but what the card may do."""

    source: str = field(repr=False)


# Parsed once and shared by all NPCs, with all that is remembered about them.
_cards: Final = Parsed[_CardText, Card](lambda text: card_from_text(text.source), most=MOST_PARSED)


def parsed_card(stored: StoredCard) -> Card:
    """The card; FormatError: it cannot be read."""
    return _cards(_CardText(stored.source))


_texts: Final = Parsed[_BookText, Lorebook](
    lambda text: read_book(json.loads(text.source), label=text.name), most=MOST_PARSED
)
_texts_of_cards: Final = Parsed[_CardText, Lorebook | None](
    lambda text: character_book(_cards(text)), most=MOST_PARSED
)


def own_book(stored: StoredCard) -> Lorebook | None:
    """The lorebook in a card, None where it has none; FormatError: it cannot be read."""
    return _own_books(stored)


def _own_book(stored: StoredCard) -> Lorebook | None:
    book = _texts_of_cards(_CardText(stored.source))
    return book and _as(book, revision=stored.revision, grants=stored.grants)


_own_books: Final = Parsed[StoredCard, Lorebook | None](_own_book, most=MOST_PARSED)


def attached_book(stored: StoredBook) -> Lorebook:
    """The book; where it hangs is told by the kind of scope alone, so all rooms share it.

    FormatError: it cannot be read.
    """
    scope = stored.scope and Scope(kind=stored.scope.kind)
    return _attached_books(replace(stored, scope=scope))


def _attached_book(stored: StoredBook) -> Lorebook:
    attach = stored.scope.kind if stored.scope else "global"
    return _as(_texts(_text_of(stored)), revision=stored.revision, attach=attach)


_attached_books: Final = Parsed[StoredBook, Lorebook](_attached_book, most=MOST_PARSED)


def is_read(stored: StoredBook) -> bool:
    """True if a book need not be read to be used."""
    return _text_of(stored) in _texts


def is_card_read(stored: StoredCard) -> bool:
    """The same of a card and its own book."""
    return stored in _own_books


def make_card_ready(stored: StoredCard, rules: ActivationRules) -> str:
    """Read a card and make its book ready, in whatever thread; the book's label, "" for none.

    FormatError: it cannot be read.
    """
    read_ahead(stored)
    book = own_book(stored)
    if book is None:
        return ""
    prepare_index(book, rules=rules)
    return book.label


def make_ready(stored: StoredBook, rules: ActivationRules) -> None:
    """Read a book and make its keys ready, in whatever thread; FormatError: it cannot be read."""
    prepare_index(attached_book(stored), rules=rules)


def know_read(stored: StoredBook, book: Lorebook) -> None:
    """Keep what a book is read as, where that is known without reading its text."""
    _texts.keep(_text_of(stored), book)


def _text_of(stored: StoredBook) -> _BookText:
    return _BookText(stored.name, stored.sha256, stored.source)


def _as(book: Lorebook, **how: Any) -> Lorebook:
    """The book as it counts in one place; its entries and what follows from them are shared."""
    return replace(book, memo=Memo(), **how)


def read_books(stored: tuple[StoredBook, ...]) -> tuple[tuple[Lorebook, ...], tuple[str, ...]]:
    """The books that can be read, and what is wrong with the others."""
    books: list[Lorebook] = []
    problems: list[str] = []
    for book in stored:
        try:
            books.append(attached_book(book))
        except FormatError as error:
            problems.append(f"lorebook '{book.name}' is left out: {error}")
    return tuple(books), tuple(problems)


@lru_cache(maxsize=MOST_PARSED)
def players_books(stored: tuple[StoredBook, ...]) -> tuple[Lorebook, ...]:
    """A player's books, without those that cannot be read, which is logged once."""
    books, problems = read_books(stored)
    for problem in problems:
        log.warning("evennia_ai: %s", problem)
    return books
