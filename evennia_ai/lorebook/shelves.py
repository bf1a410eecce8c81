"""Shelves: the books of one build in the order they are asked, each with what it sees.

A shelf lives for one build. What was worked out for a book and stays right (its scanner, its texts,
its labels) is kept with the book and shared by all NPCs.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

from evennia_ai.lorebook import reasons
from evennia_ai.lorebook.books import ATTACH_RANK, Lorebook
from evennia_ai.lorebook.entries import LoreEntry
from evennia_ai.lorebook.marks import marked_name
from evennia_ai.lorebook.patterns import Patience
from evennia_ai.lorebook.reasons import Reason
from evennia_ai.lorebook.rules import ActivationRules
from evennia_ai.lorebook.scanning import Scan, Window
from evennia_ai.lorebook.wanted import Scanner, scanner_of
from evennia_ai.prompt.dice import Dice
from evennia_ai.prompt.tokens import TokenCounter

_SHOWN_PLACES: Final = 4


class Shelf:
    """One book in one build.

    `rank` is its place among the books, `standing` what sorts its entries against those of other
    books. `asked` are the indexes of the entries that something concerns; it only grows. `depth` is
    the book's scan depth, `seen` the one of the last pass, larger where the scan was widened.
    """

    __slots__ = (
        "asked",
        "book",
        "depth",
        "labels",
        "marks",
        "rank",
        "recursive",
        "rules",
        "scanner",
        "seen",
        "standing",
        "window",
    )

    def __init__(
        self,
        book: Lorebook,
        *,
        rank: int,
        standing: tuple[int, int],
        scanner: Scanner,
        scan: Scan,
        rules: ActivationRules,
        patience: Patience,
    ) -> None:
        self.book = book
        self.rank = rank
        self.standing = standing
        self.scanner = scanner
        self.rules = rules
        self.window = Window(
            scan,
            scanner,
            slot=("lore", book.label, book.attach, rules.strategy),
            include_names=rules.include_names,
            patience=patience,
        )
        self.depth = rules.scan_depth if book.scan_depth is None else book.scan_depth
        self.seen = self.depth
        self.recursive = rules.recursive if book.recursive is None else book.recursive
        self.labels = _labels(book)
        self.marks = _marks(book)
        self.asked: set[int] = set()

    def ask(self, indexes: Iterable[int]) -> None:
        """Have these entries judged."""
        self.asked.update(indexes)

    def ask_owners(self, keys: Iterable[int]) -> None:
        """Have the entries judged that these keys may wake."""
        owners = self.scanner.owners
        for key in keys:
            self.asked.update(owners.get(key, ()))

    def ask_marked(self, marks: Iterable[str]) -> None:
        """Have these entries judged, as far as they are in this book."""
        for mark in marks:
            index = _index_of(self.book, mark)
            if index is not None:
                self.asked.add(index)

    def given_up(self, index: int) -> tuple[Reason, ...]:
        """Where patterns of an entry were not looked for to the end; the first few places."""
        wanted, places = self.scanner.wanted[index], self.window.given_up
        told = (
            Reason(reasons.given_up, (self.scanner.pattern_of(number).written, where, why))
            for number in dict.fromkeys(wanted.numbers)
            for where, why in places.get(number, ())
        )
        return tuple(islice(told, _SHOWN_PLACES))

    @property
    def levels(self) -> tuple[int, ...]:
        """The delay levels of its entries."""
        known = self.book.memo.get("levels")
        if not isinstance(known, tuple):
            found = {entry.recursion.delay_level for entry in self.book.entries} - {0}
            known = self.book.memo["levels"] = tuple(sorted(found))
        return known

    def place(self, entry: LoreEntry) -> tuple[float, ...]:
        """The entry's place in the processing order of all books."""
        high_first = self.rules.manner.high_order_first
        order = -entry.order if high_first else entry.order
        first, among_equals = self.standing
        return first, order, among_equals, self.rank, entry.index

    def text(
        self, index: int, values: Mapping[str, str], dice: Dice, counter: TokenCounter
    ) -> tuple[str, int]:
        """An entry's text and its tokens; kept while what it reads stays the same."""
        template = self.book.entries[index].template
        seen: object = counter
        if template.names or template.rolls:
            read = [values.get(name) for name in template.names]
            seen = (read, template.rolls and dice, counter)
        known = self.book.memo.get(index)
        if isinstance(known, tuple) and known[0] == seen:
            return known[1], known[2]
        text = template.render(values, dice)
        tokens = counter.count(text)
        self.book.memo[index] = (seen, text, tokens)
        return text, tokens


def shelved(
    books: Iterable[Lorebook],
    scan: Scan,
    *,
    rules: ActivationRules,
    values: Mapping[str, str],
    dice: Dice,
) -> tuple[Shelf, ...]:
    """The books in the order they are asked: chat before the others, which the strategy sorts.

    Those that are equal to the strategy go by their attachment, then as they were given.
    """
    ordered = sorted(books, key=lambda book: _standing(book, rules))
    scanners = [scanner_of(book, rules=rules, values=values, dice=dice) for book in ordered]
    with_patterns = sum(scanner.has_patterns for scanner in scanners)
    return tuple(
        Shelf(
            book,
            rank=rank,
            standing=_standing(book, rules),
            scanner=scanner,
            scan=scan,
            rules=rules,
            patience=Patience(books=with_patterns),
        )
        for rank, (book, scanner) in enumerate(zip(ordered, scanners, strict=True))
    )


def entry_finder(shelves: Sequence[Shelf]) -> Callable[[str], LoreEntry | None]:
    """A function that gives the entry of a mark, None where no book here has it."""

    def find(mark: str) -> LoreEntry | None:
        for shelf in shelves:
            index = _index_of(shelf.book, mark)
            if index is not None:
                return shelf.book.entries[index]
        return None

    return find


def _standing(book: Lorebook, rules: ActivationRules) -> tuple[int, int]:
    """What comes before an entry's order, and what decides among equal orders."""
    rank = ATTACH_RANK[book.attach]
    narrow_first = rules.manner.ties_narrow_first
    return _STANDINGS[rules.strategy](rank), rank if narrow_first else -rank


# Chat books come first in every strategy.
_STANDINGS: Mapping[str, Callable[[int], int]] = {
    "evenly": lambda rank: min(rank, 1),
    "character_first": lambda rank: rank,
    "global_first": lambda rank: -rank if rank else -max(ATTACH_RANK.values()) - 1,
}


def _labels(book: Lorebook) -> tuple[str, ...]:
    known = book.memo.get("labels")
    if not isinstance(known, tuple):
        known = tuple(f"{book.label}#{entry.uid}" for entry in book.entries)
        book.memo["labels"] = known
    return known


def _marks(book: Lorebook) -> tuple[str, ...]:
    known = book.memo.get("marks")
    if not isinstance(known, tuple):
        name = marked_name(book.label, attach=book.attach)
        known = tuple(f"{name}#{entry.uid}" for entry in book.entries)
        book.memo["marks"] = known = _labels(book) if name == book.label else known
    return known


def _index_of(book: Lorebook, mark: str) -> int | None:
    known = book.memo.get("by mark")
    if not isinstance(known, dict):
        known = {mark: index for index, mark in enumerate(_marks(book))}
        book.memo["by mark"] = known
    found: int | None = known.get(mark)
    return found
