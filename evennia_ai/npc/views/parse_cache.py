"""A cache of parsed cards and lorebooks: each text is parsed once for all users.

A parsed card or book takes many times the memory of its text, so the cache also limits the total
length of the texts. A book is identified by the hash of its text. All attachments, revisions and
grants of a book share its entries and its tables of keys.

A long book that is ready is also kept in a file of the game's folder, so that it is ready again
soon after a restart. Such a file may be deleted at any time.
"""

import json
import logging
import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from threading import Lock
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar
from unicodedata import unidata_version

import evennia_ai
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
from evennia_ai.formats.lorebooks.packed import VERSION, pack_book, unpack_book
from evennia_ai.store.authored.cards import StoredCard
from evennia_ai.store.authored.lorebooks import StoredBook

MOST_PARSED: Final = 256
"""The most parsed values of each kind."""
MOST_READY: Final = 64
"""The most files of books that are ready."""
MOST_CHARACTERS: Final = 32_000_000
"""The most characters of cached texts in all. The parsed values take ten times as much memory."""

log: Final = logging.getLogger(__name__)


class Text(Hashable, Protocol):
    """A text to parse, as the key of the cache."""

    @property
    def source(self) -> str: ...


T = TypeVar("T", bound=Text)
V = TypeVar("V")


class Parsed(Generic[T, V]):
    """A thread-safe cache of parsed values by their text.

    It drops the least recently used values, but always keeps the newest, however long its text is.
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
        """Return the parsed text. Errors of `parse` are not cached."""
        with self._lock:
            if text in self._kept:
                self._kept.move_to_end(text)
                return self._kept[text]
        # Parse outside the lock, because parsing may take seconds.
        return self.keep(text, self._parse(text))

    def __contains__(self, text: T) -> bool:
        """True if the parsed text is in the cache."""
        with self._lock:
            return text in self._kept

    def keep(self, text: T, value: V) -> V:
        """Cache a value that was made elsewhere, and return it.

        If the text is cached, return that value.
        """
        with self._lock:
            return self._keep(text, value)

    def _keep(self, text: T, value: V) -> V:
        """Cache a value unless another thread has cached one meanwhile. Return the cached value."""
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
    """Parse a card, compile its texts and parse its book. Any thread may call this.

    Raises:
        FormatError: It cannot be parsed.
    """
    compile_ahead(texts_with_macros(parsed_card(stored)))
    own_book(stored)


def compile_ahead(texts: Iterable[str]) -> None:
    """Compile imported texts, so that views need not compile them."""
    for text in texts:
        compile_template(text, trust="imported")


MANY_MACROS: Final = 500
"""A file with at least so many macros is parsed in another thread, because it takes
milliseconds."""


def is_long_to_read(source: str, *, characters: int) -> bool:
    """True if parsing takes more than a few milliseconds, judged by length and number of macros."""
    return len(source) >= characters or count_macros(source) >= MANY_MACROS


@dataclass(frozen=True, slots=True)
class _BookText:
    """The text of a book and its name, which is part of the labels of its entries."""

    name: str
    sha256: str
    source: str = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class _CardText:
    """The text of a card. Its grants do not matter for parsing."""

    source: str = field(repr=False)


# All NPCs share these values, and what is cached inside them.
_cards: Final = Parsed[_CardText, Card](lambda text: card_from_text(text.source), most=MOST_PARSED)


def parsed_card(stored: StoredCard) -> Card:
    """Return the parsed card.

    Raises:
        FormatError: The card cannot be parsed.
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
        FormatError: The card or its book cannot be parsed.
    """
    return _own_books(stored)


def _own_book(stored: StoredCard) -> Lorebook | None:
    book = _texts_of_cards(_CardText(stored.source))
    return book and _copy_attached(book, revision=stored.revision, grants=stored.grants)


_own_books: Final = Parsed[StoredCard, Lorebook | None](_own_book, most=MOST_PARSED)


def attached_book(stored: StoredBook) -> Lorebook:
    """Return the parsed book with its attachment.

    All scopes of one kind, such as all rooms, share the same object.

    Raises:
        FormatError: The book cannot be parsed.
    """
    scope = stored.scope and Scope(kind=stored.scope.kind)
    return _attached_books(replace(stored, scope=scope))


def _attached_book(stored: StoredBook) -> Lorebook:
    attach = stored.scope.kind if stored.scope else "global"
    return _copy_attached(_texts(_text_of(stored)), revision=stored.revision, attach=attach)


_attached_books: Final = Parsed[StoredBook, Lorebook](_attached_book, most=MOST_PARSED)


def is_read(stored: StoredBook) -> bool:
    """True if the parsed book is in the cache."""
    return _text_of(stored) in _texts


def is_card_read(stored: StoredCard) -> bool:
    """True if the parsed card and its book are in the cache."""
    return stored in _own_books


def make_card_ready(stored: StoredCard, rules: ActivationRules) -> str:
    """Parse a card and index the keys of its book. Return the book's label, "" without a book.

    Any thread may call this.

    Raises:
        FormatError: The card or its book cannot be parsed.
    """
    read_ahead(stored)
    book = own_book(stored)
    if book is None:
        return ""
    prepare_index(book, rules=rules)
    return book.label


def make_ready(stored: StoredBook, rules: ActivationRules, folder: Path | None) -> None:
    """Parse a book and index its keys. Any thread may call this.

    Args:
        stored: The book.
        rules: The rules by which its keys are searched.
        folder: The folder that keeps ready books from one start to the next, None for none.

    Raises:
        FormatError: The book cannot be parsed.
    """
    text = _text_of(stored)
    file = folder and _ReadyFile.of(folder, text, rules)
    book = file and text not in _texts and file.read(label=text.name, rules=rules)
    if book:
        _texts.keep(text, book)
    prepare_index(attached_book(stored), rules=rules)
    if file and not book and not file.path.exists():
        file.write(pack_book(_texts(text), json.loads(text.source), rules=rules))


@lru_cache(maxsize=1)
def _made_by() -> list[Any]:
    """Return what the content of a ready book depends on, besides its text and the rules.

    Every module counts, because nobody would think of raising a version after a change in one of
    them. As for Python's own compiled files, its size and its time stand for its content.
    """
    root = Path(evennia_ai.__file__).parent
    files = sorted([*root.glob("engine/**/*.py"), *root.glob("formats/**/*.py")])
    stats = [(one.name, one.stat()) for one in files]
    modules = "".join(f"{name} {stat.st_size} {stat.st_mtime_ns}\n" for name, stat in stats)
    return [VERSION, sys.version, unidata_version, sha256(modules.encode()).hexdigest()]


class _ReadyFile(NamedTuple):
    """The file of a book that is ready: a line about its making, its hash, and the packed text."""

    path: Path
    making: bytes
    """JSON of all that the content depends on. Its hash names the file."""

    @classmethod
    def of(cls, folder: Path, text: _BookText, rules: ActivationRules) -> "_ReadyFile":
        searched = [rules.rules, rules.case_sensitive, rules.match_whole_words]
        making = json.dumps([text.name, text.sha256, searched, *_made_by()]).encode()
        return cls(folder / f"{sha256(making).hexdigest()}.json", making)

    def read(self, *, label: str, rules: ActivationRules) -> Lorebook | None:
        """Return the book in the file. None if there is no file, or another or a damaged one."""
        try:
            making, digest, packed = self.path.read_bytes().split(b"\n", 2)
            if making == self.making and digest == sha256(packed).hexdigest().encode():
                return unpack_book(packed.decode(), label=label, rules=rules)
            problem = "it is damaged, or of another book"
        except FileNotFoundError:
            return None
        except (OSError, ValueError, LookupError, TypeError) as error:
            problem = str(error)
        why = f"{self.path}: {problem}"
        log.warning("evennia_ai: lorebook '%s' is parsed again: %s", label, why)
        with suppress(OSError):
            self.path.unlink()
        return None

    def write(self, packed: str | None) -> None:
        """Write the file, unless there is nothing to keep. Delete the oldest of too many files."""
        if packed is None:
            return
        content = packed.encode()
        digest = sha256(content).hexdigest().encode()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Another process may read the file at the same time, so it appears complete. Only the
            # user of the game may read it.
            with NamedTemporaryFile(dir=self.path.parent, suffix=".new", delete=False) as new:
                new.write(b"\n".join((self.making, digest, content)))
            Path(new.name).replace(self.path)
            kept = sorted(self.path.parent.glob("*.json"), key=lambda one: one.stat().st_mtime)
            for old in kept[:-MOST_READY]:
                old.unlink(missing_ok=True)
        except OSError as error:
            log.warning(
                "evennia_ai: cannot keep ready lorebooks in %s: %s", self.path.parent, error
            )


def know_read(stored: StoredBook, book: Lorebook) -> None:
    """Put a book into the cache that the caller has parsed already."""
    _texts.keep(_text_of(stored), book)


def _text_of(stored: StoredBook) -> _BookText:
    return _BookText(stored.name, stored.sha256, stored.source)


def _copy_attached(book: Lorebook, **how: Any) -> Lorebook:
    """Return a copy of the book with this attachment. Both share the entries and their caches."""
    return replace(book, memo=Memo(), **how)


def read_books(stored: tuple[StoredBook, ...]) -> tuple[tuple[Lorebook, ...], tuple[str, ...]]:
    """Return the books that can be parsed, and a problem for each of the others."""
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
    """Return a player's books. Log a warning, once, for each book that cannot be parsed."""
    books, problems = read_books(stored)
    for problem in problems:
        log.warning("evennia_ai: %s", problem)
    return books
