"""The card and the lorebooks of a scenario, inline or from files beside it."""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from evennia_ai.cards.card import Card
from evennia_ai.cards.components import containment_notices
from evennia_ai.cards.reading import card_from_bytes, read_card
from evennia_ai.lorebook.books import ATTACH_RANK, Lorebook, read_book
from evennia_ai.lorebook.foreign import parse_json
from evennia_ai.prompt.components import Trust
from evennia_ai.prompt.errors import FormatError
from evennia_ai.scenario.documents import read_bytes, read_text
from evennia_ai.scenario.tables import Table, wrong

BOOK_KEYS = ("name", "attach", "book")


class Files:
    """Reads what a scenario names; `notices` tells what its author should know."""

    def __init__(self, folder: Path, *, card_trust: Trust) -> None:
        self.folder = folder
        self.card_trust = card_trust
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
        self.notices += containment_notices(card, trust=self.card_trust)
        return card

    def books(self, card: Card | None, rows: list[tuple[str, Any]]) -> tuple[Lorebook, ...]:
        """The card's own book and the listed ones."""
        books = [self._listed(path, row) for path, row in rows]
        if card is not None and card.character_book is not None:
            name = _own_name(card.character_book) or card.name
            own = self._book(
                card.character_book, label=name, attach="character", trust=self.card_trust
            )
            books.insert(0, own)
        for book in books:
            self.notices += [f"lorebook {book.label}: {notice}" for notice in book.notices]
        return tuple(books)

    def _listed(self, path: str, row: object) -> Lorebook:
        table = Table({"book": row} if isinstance(row, str) else row, path=path, known=BOOK_KEYS)
        attach = table.choice("attach", tuple(ATTACH_RANK), "global")
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
        return self._book(given, label=label, attach=attach, trust="author")

    def _book(self, data: Mapping[str, Any], *, label: str, attach: str, trust: Trust) -> Lorebook:
        label = self._free(label or "book")
        return read_book(
            data, label=label, attach=attach, trust=trust, revision=content_revision(data)
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


def card_file(path: Path) -> Card:
    """The card in a file; FormatError names the file."""
    content = read_bytes(path, kind="card")
    try:
        return card_from_bytes(content)
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
