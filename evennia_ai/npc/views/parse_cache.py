"""A cache of parsed cards and lorebooks: each text is parsed once for all users.

A parsed card or book takes many times the memory of its text, so the cache is bounded by the length
of texts too. A book is identified by the hash of its text. All users share its entries and tables
of keys, wherever it is attached and whatever its revision and grants are.
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
"""The most parsed values of each kind."""
MOST_CHARACTERS: Final = 32_000_000
"""The most characters of cached texts. Their values take ten times as much memory."""

log: Final = logging.getLogger(__name__)


class Text(Hashable, Protocol):
    """One version of a text to parse."""

    @property
    def source(self) -> str: ...


T = TypeVar("T", bound=Text)
V = TypeVar("V")


class Parsed(Generic[T, V]):
    """A thread-safe cache of values by their text. The least recently used are dropped.

    The newest value stays, however long its text is.
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
        """Return the value of the text. Errors of `parse` are not cached."""
        with self._lock:
            if text in self._kept:
                self._kept.move_to_end(text)
                return self._kept[text]
        return self.keep(
            text, self._parse(text)
        )  # outside the lock, because parsing may take seconds

    def __contains__(self, text: T) -> bool:
        """True if its value is cached."""
        with self._lock:
            return text in self._kept

    def keep(self, text: T, value: V) -> V:
        """Cache a value that was made elsewhere. Return the cached one if there is one."""
        with self._lock:
            return self._keep(text, value)

    def _keep(self, text: T, value: V) -> V:
        """Cache the value. Return the one that another thread has cached meanwhile, if any."""
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
    """Parse a card, its texts and its book for the next turn. Any thread may call it.

    Raises:
        FormatError: It cannot be parsed.
    """
    compile_ahead(texts_with_macros(parsed_card(stored)))
    own_book(stored)


def compile_ahead(texts: Iterable[str]) -> None:
    """Compile imported texts, so that views find them compiled."""
    for text in texts:
        compile_template(text, trust="imported")


MANY_MACROS: Final = 500
"""From this many macros on, a file is parsed in another thread (some milliseconds)."""


def is_long_to_read(source: str, *, characters: int) -> bool:
    """True if parsing takes more than a few milliseconds, by length or number of macros."""
    return len(source) >= characters or count_macros(source) >= MANY_MACROS


@dataclass(frozen=True, slots=True)
class _BookText:
    """The text of a book. Its name is part of the labels of its entries."""

    name: str
    sha256: str
    source: str = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class _CardText:
    """The text of a card, without its grants."""

    source: str = field(repr=False)


# Shared by all NPCs, together with everything cached in the values.
_cards: Final = Parsed[_CardText, Card](lambda text: card_from_text(text.source), most=MOST_PARSED)


def parsed_card(stored: StoredCard) -> Card:
    """Return the parsed card.

    Raises:
        FormatError: It cannot be parsed.
    """
    return _cards(_CardText(stored.source))


_texts: Final = Parsed[_BookText, Lorebook](
    lambda text: read_book(json.loads(text.source), label=text.name), most=MOST_PARSED
)
_texts_of_cards: Final = Parsed[_CardText, Lorebook | None](
    lambda text: character_book(_cards(text)), most=MOST_PARSED
)


def own_book(stored: StoredCard) -> Lorebook | None:
    """Return the lorebook in a card, None if it has none.

    Raises:
        FormatError: It cannot be parsed.
    """
    return _own_books(stored)


def _own_book(stored: StoredCard) -> Lorebook | None:
    book = _texts_of_cards(_CardText(stored.source))
    return book and _as(book, revision=stored.revision, grants=stored.grants)


_own_books: Final = Parsed[StoredCard, Lorebook | None](_own_book, most=MOST_PARSED)


def attached_book(stored: StoredBook) -> Lorebook:
    """Return the parsed book. Only the kind of its scope matters, so all rooms share it.

    Raises:
        FormatError: It cannot be parsed.
    """
    scope = stored.scope and Scope(kind=stored.scope.kind)
    return _attached_books(replace(stored, scope=scope))


def _attached_book(stored: StoredBook) -> Lorebook:
    attach = stored.scope.kind if stored.scope else "global"
    return _as(_texts(_text_of(stored)), revision=stored.revision, attach=attach)


_attached_books: Final = Parsed[StoredBook, Lorebook](_attached_book, most=MOST_PARSED)


def is_read(stored: StoredBook) -> bool:
    """True if a book is in the cache."""
    return _text_of(stored) in _texts


def is_card_read(stored: StoredCard) -> bool:
    """True if a card and its book are in the cache."""
    return stored in _own_books


def make_card_ready(stored: StoredCard, rules: ActivationRules) -> str:
    """Parse a card and index its book, in any thread. Return the book's label, "" for none.

    Raises:
        FormatError: It cannot be parsed.
    """
    read_ahead(stored)
    book = own_book(stored)
    if book is None:
        return ""
    prepare_index(book, rules=rules)
    return book.label


def make_ready(stored: StoredBook, rules: ActivationRules) -> None:
    """Parse a book and index its keys, in any thread.

    Raises:
        FormatError: It cannot be parsed.
    """
    prepare_index(attached_book(stored), rules=rules)


def know_read(stored: StoredBook, book: Lorebook) -> None:
    """Cache the value of a book that is known without parsing."""
    _texts.keep(_text_of(stored), book)


def _text_of(stored: StoredBook) -> _BookText:
    return _BookText(stored.name, stored.sha256, stored.source)


def _as(book: Lorebook, **how: Any) -> Lorebook:
    """Return the book as attached in one place. Entries and their caches are shared."""
    return replace(book, memo=Memo(), **how)


def read_books(stored: tuple[StoredBook, ...]) -> tuple[tuple[Lorebook, ...], tuple[str, ...]]:
    """Return the books that can be parsed, and the problems of the others."""
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
    """Return a player's books. Those that cannot be parsed are logged once."""
    books, problems = read_books(stored)
    for problem in problems:
        log.warning("evennia_ai: %s", problem)
    return books
