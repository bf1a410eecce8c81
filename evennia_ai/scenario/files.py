"""The card and the lorebooks of a scenario, inline or from files beside it."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from evennia_ai.cards.card import Card
from evennia_ai.cards.components import DEFAULT_DEPTH, containment_notices
from evennia_ai.cards.loading import load_card
from evennia_ai.cards.reading import read_card
from evennia_ai.errors import FormatError
from evennia_ai.foreign.strict_json import parse_json
from evennia_ai.lorebook.book_extension import BOOK_MODES, BookMode
from evennia_ai.lorebook.books import ATTACH_RANK, Lorebook, read_book
from evennia_ai.lorebook.decorators import NO_ICONS, Absent
from evennia_ai.lorebook.rules import Preset
from evennia_ai.prompt.components import ALL_GRANTS, Grants
from evennia_ai.scenario.documents import read_bytes, read_text
from evennia_ai.scenario.tables import Table, wrong

BOOK_KEYS = ("name", "attach", "mode", "book")


class Files:
    """Reads what a scenario names; `notices` tells what its author should know.

    `absent` are decorators of entries that count for nothing in it.
    """

    def __init__(
        self,
        folder: Path,
        *,
        card_grants: Grants,
        post_history_depth: int = DEFAULT_DEPTH,
        absent: Absent = NO_ICONS,
    ) -> None:
        self.folder = folder
        self.card_grants = card_grants
        self.post_history_depth = post_history_depth
        self.absent = absent
        self.notices: list[str] = []
        self._labels: set[str] = set()

    def card(self, given: object) -> Card:
        """The card of the file or the object `given`."""
        if isinstance(given, str):
            card = card_file(self.folder / given)
        elif isinstance(given, dict):
            card = read_card(given)
        else:
            raise wrong("card", given, "a path or a card's object")
        self.notices += card.notices
        self.notices += containment_notices(
            card, grants=self.card_grants, post_history_depth=self.post_history_depth
        )
        return card

    def books(
        self, card: Card | None, rows: list[tuple[str, Any]], *, rules: Preset
    ) -> tuple[Lorebook, ...]:
        """The card's own book and the listed ones, each once (`rules` say where it then hangs)."""
        listed = [self._listed(path, row) for path, row in rows]
        books = [self._book(book) for book in self._once(listed, rules)]
        if card is not None and card.character_book is not None:
            name = _own_name(card.character_book) or card.name
            own = _found(name, card.character_book, attach="character")
            books.insert(0, self._book(own, grants=self.card_grants))
        for book in books:
            self.notices += [f"lorebook {book.label}: {notice}" for notice in book.notices]
        return tuple(books)

    def _listed(self, path: str, row: object) -> "_Found":
        table = Table({"book": row} if isinstance(row, str) else row, path=path, known=BOOK_KEYS)
        attach = table.choice("attach", tuple(ATTACH_RANK), "global")
        mode = table.choice("mode", BOOK_MODES, "floating") if table.has("mode") else None
        given = table.data.get("book")
        stem = ""
        if isinstance(given, str):
            stem = Path(given).stem
            file = self.folder / given
            given, twice = book_file(file)
            self.notices += [f"{file}: {notice}" for notice in twice]
        if not isinstance(given, dict):
            raise wrong(table.at("book"), given, "a path or a book's object")
        label = table.text_or_none("name") or _own_name(given) or stem
        return _found(label, given, attach=attach, mode=mode)

    def _once(self, listed: list["_Found"], rules: Preset) -> list["_Found"]:
        """The listed books; one that is there several times hangs at one of its places only."""
        kept: dict[tuple[str, int], _Found] = {}
        for book in sorted(listed, key=_PREFERENCES[rules]):  # stable: equals stay as listed
            first = kept.setdefault(book.identity, book)
            if first is not book:
                self.notices.append(
                    f"lorebook {book.label}: is listed more than once with the same content; it"
                    f" counts once, attached to {first.attach}"
                )
        return [book for book in listed if kept[book.identity] is book]

    def _book(self, found: "_Found", *, grants: Grants = ALL_GRANTS) -> Lorebook:
        label = self._free(found.label or "book")
        return read_book(
            found.data,
            label=label,
            attach=found.attach,
            mode=found.mode,
            grants=grants,
            revision=found.revision,
            absent=self.absent,
        )

    def _free(self, label: str) -> str:
        """The label, with a number where another book of the scenario has it."""
        free, number = label, 2
        while free in self._labels:
            free, number = f"{label} ({number})", number + 1
        if free != label:
            self.notices.append(f"two lorebooks are called '{label}': one is shown as '{free}'")
        self._labels.add(free)
        return free


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Found:
    """A book as its file or the scenario has it, and where it hangs."""

    label: str
    attach: str
    mode: BookMode | None
    data: Mapping[str, Any]
    revision: int

    @property
    def identity(self) -> tuple[str, int]:
        """What makes two rows one book: their name and their content."""
        return self.label, self.revision


def _found(
    label: str, data: Mapping[str, Any], *, attach: str, mode: BookMode | None = None
) -> _Found:
    revision = content_revision(data)
    return _Found(label=label, attach=attach, mode=mode, data=data, revision=revision)


def _narrow_first(book: _Found) -> int:
    return ATTACH_RANK[book.attach]


def _as_the_application(book: _Found) -> tuple[bool, bool, int]:
    """SillyTavern skips a chat's book that is global, and a character's that is either; else wide
    goes before narrow.
    """
    rank = ATTACH_RANK[book.attach]
    return rank != ATTACH_RANK["global"], rank != ATTACH_RANK["chat"], -rank


# Which of several places a book keeps that is listed for all of them: the first by this order.
_PREFERENCES: Final[Mapping[Preset, Callable[[_Found], Any]]] = MappingProxyType(
    {"evennia_ai": _narrow_first, "sillytavern": _as_the_application}
)


def card_file(path: Path) -> Card:
    """The card in a file, JSON, PNG or CHARX; FormatError names the file."""
    content = read_bytes(path, kind="card")
    try:
        return load_card(content).card
    except FormatError as error:
        raise FormatError(error.kind, f"{path}: {error.message}") from error


def book_file(path: Path) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The JSON object in a lorebook's file, and a notice for each member written twice."""
    value, twice = parse_json(read_text(path, kind="book"), kind="book", where=str(path))
    if not isinstance(value, dict):
        raise FormatError("book", f"{path}: must be an object with `entries`")
    return value, twice


def content_revision(book: Mapping[str, Any]) -> int:
    """A book outside the store is known by its content."""
    return int(sha256(json.dumps(book, sort_keys=True).encode()).hexdigest()[:12], 16)


def _own_name(book: Mapping[str, Any]) -> str:
    """What a book calls itself."""
    inner = book.get("data") if book.get("spec") == "lorebook_v3" else book
    name = inner.get("name") if isinstance(inner, dict) else None
    return name.strip() if isinstance(name, str) else ""
