"""Read the parts of a scenario, inline or from files: components, card, preset and lorebooks."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import fields as dataclass_fields
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

from evennia_ai.engine.errors import ComponentValueError, FormatError, NotYetError
from evennia_ai.engine.foreign.documents import read_bytes
from evennia_ai.engine.foreign.fields import Must
from evennia_ai.engine.lorebook.book import ATTACH_RANK, BookMode, Lorebook
from evennia_ai.engine.lorebook.decorators import NO_ICONS, Absent
from evennia_ai.engine.lorebook.rules import Preset as LorePreset
from evennia_ai.engine.lorebook.same_book import (
    copy_of,
    describe_copy,
    linked_world,
    with_free_label,
)
from evennia_ai.engine.prompt.components import (
    ALL_GRANTS,
    GAME,
    MAX_DEPTH,
    PLUGGABLE_IDS,
    STATIC_COMPONENTS,
    Grants,
    PromptComponent,
    When,
    is_plain_int,
)
from evennia_ai.engine.prompt.notes import NoteMode, NotePlace
from evennia_ai.engine.prompt.prefix_rules import check_before_history
from evennia_ai.engine.prompt.registry import with_statics
from evennia_ai.formats.cards.card import Card, read_card
from evennia_ai.formats.cards.components import DEFAULT_DEPTH, containment_notices
from evennia_ai.formats.cards.loading import load_card
from evennia_ai.formats.file_kinds import describe_value, json_of_file
from evennia_ai.formats.lorebooks.books import book_of_card, own_data_faults, read_book
from evennia_ai.formats.presets.preset import Preset
from evennia_ai.formats.presets.reading import read_preset
from evennia_ai.formats.scenario.tables import (
    KIND,
    Depth,
    TextRole,
    Whole,
    known_keys,
    read_row,
    wrong_value_error,
)

FIELDS: Final = (
    *("id", "key", "name", "description", "content", "role", "enabled", "is_static"),
    *("injection_depth", "injection_order", "depth_counts", "placement", "volatile", "trust"),
    *("priority", "required", "when", "scope"),
)
COPIED: Final = tuple(name for name in FIELDS if name not in ("id", "key", "is_static", "scope"))
FIRST_FREE_ID: Final = 1201
_STATIC_BY_KEY: Final = {component.key: component for component in STATIC_COMPONENTS}
_STATIC_BY_ID: Final = {component.id: component for component in STATIC_COMPONENTS}


def read_components(
    rows: Sequence[tuple[str, Any]], *, placed: Mapping[str, int] = PLUGGABLE_IDS
) -> tuple[PromptComponent, ...]:
    """Return the listed components of a scenario, each with a unique ID and key.

    Args:
        rows: the path and raw mapping of each component.
        placed: reserved IDs by component key. A component with such a key gets that ID.

    Raises:
        FormatError: a component is invalid, or its ID or key is taken.
    """
    tables = [_Row(path, known_keys(row, path=path, known=FIELDS), placed) for path, row in rows]
    taken = {row.id for row in tables if row.id is not None}.union(placed.values())
    free = _free_ids(taken)
    for row in sorted((row for row in tables if row.id is None), key=_Row.rank):
        row.id = next(free, None)
        if row.id is None:
            raise FormatError(KIND, f"{row.path}: no ID below 5000 is free; give it one")
    components = tuple(row.component() for row in tables)
    _check_unique(tables, components)
    return components


def component_set(
    listed: Sequence[PromptComponent],
    *,
    settings: Sequence[PromptComponent],
    card: Sequence[PromptComponent],
) -> tuple[PromptComponent, ...]:
    """Return all components of a scenario: listed ones, and those of settings, card and engine.

    A listed component replaces the card's component with the same key.

    Raises:
        FormatError: two components have one ID, a key is both listed and in the settings, or a text
            that must be static depends on who speaks.
    """
    keys = {component.key for component in listed}
    for component in settings:
        if component.key in keys:
            raise FormatError(
                KIND,
                f"settings.{component.key} and a component with that key are both given; leave"
                " one out",
            )
    keys |= {component.key for component in settings}
    plugged = [component for component in card if component.key not in keys]
    taken = {component.id: component.key for component in plugged}
    for component in listed:
        if component.id in taken:
            raise FormatError(
                KIND,
                f"components: ID {component.id} of '{component.key}' is already used by"
                f" '{taken[component.id]}'; choose one that is no multiple of 10",
            )
    components = [*listed, *settings, *plugged]
    for component in components:
        try:
            check_before_history(component)
        except ComponentValueError as error:
            raise FormatError(KIND, f"component '{component.key}': {error}") from error
    return tuple(with_statics(components))


class _Row:
    """One listed component of a scenario as a raw mapping, with the ID that it gets."""

    def __init__(self, path: str, row: dict[str, Any], ids: Mapping[str, int]) -> None:
        self.path = path
        self.row = row
        placed = {name: row[name] for name in _PLACED if name in row}
        place = read_row(_Place, placed, path=path)
        self.key = place.key if "key" in row else None
        self.id = place.id if "id" in row else None
        self.base = _static_base(self, place)
        if self.id is None:
            self.id = self.base.id if self.base else ids.get(self.key or "")

    def rank(self) -> tuple[str, str]:
        """Return the sort key that decides which component gets which free ID.

        The IDs then do not depend on the order of the list.
        """
        return self.key or "", json.dumps(self.row, sort_keys=True)

    def component(self) -> PromptComponent:
        fields = {name: self.row[name] for name in COPIED if name in self.row}
        fields.setdefault("trust", "author")
        depth: Any = fields.get("injection_depth")
        # every greater depth means the top of the history too
        if is_plain_int(depth) and depth > MAX_DEPTH:
            fields["injection_depth"] = MAX_DEPTH
        try:
            if self.base is not None:
                return self.base.changed(**fields)
            key = self.key if self.key is not None else f"component_{self.id}"
            return PromptComponent(id=self.id or 0, key=key, **fields)
        except ComponentValueError as error:
            raise FormatError(KIND, f"{self.path}.{error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """The fields that identify a listed component. `PromptComponent` validates its other fields."""

    key: str = ""
    id: Whole = 0
    scope: Literal["game", "zone", "room", "npc"] = "game"
    is_static: bool = False


_PLACED: Final = tuple(one.name for one in dataclass_fields(_Place))


def _static_base(row: _Row, place: _Place) -> PromptComponent | None:
    """Return the engine's static component that a listed component names by key or ID.

    Return None if it names no static component. The key of a static component with another ID is an
    error, and so is its ID with another key.
    """
    if place.scope != GAME.kind:
        raise NotYetError(f"the scope '{place.scope}'", f"{row.path}.scope")
    key, at = row.key, row.id
    base = _STATIC_BY_KEY.get(key or "") or _STATIC_BY_ID.get(-1 if at is None else at)
    is_static = base is not None
    if "is_static" in row.row and place.is_static is not is_static:
        raise wrong_value_error(
            f"{row.path}.is_static", not is_static, f"{str(is_static).lower()} here"
        )
    if base is not None and (key or base.key, base.id if at is None else at) != (base.key, base.id):
        raise FormatError(
            KIND,
            f"{row.path}: ID {base.id} belongs to the static component '{base.key}', which keeps"
            " its ID and key; take another ID or key",
        )
    return base


def _free_ids(taken: set[int]) -> Iterator[int]:
    """Yield free component IDs in ascending order; multiples of 10 are reserved for the engine."""
    return (n for n in range(FIRST_FREE_ID, 5000) if n % 10 and n not in taken)


def _check_unique(rows: Sequence[_Row], components: Sequence[PromptComponent]) -> None:
    seen: dict[Mapping[str, object] | object, str] = {}
    for row, component in zip(rows, components, strict=True):
        for field, value in (("id", component.id), ("key", component.key)):
            first = seen.setdefault((field, value), row.path)
            if first != row.path:
                raise FormatError(
                    KIND, f"{row.path}: {field} {value!r} is already taken by {first}"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteRow:
    """The fields of an author's note in a scenario."""

    content: str
    depth: Depth = 4
    role: TextRole = "system"
    every: Whole = 1
    mode: NoteMode = "floating"
    place: NotePlace = ""
    when: When = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _BookRow:
    name: str | None = None
    attach: Annotated[str, Must(f"one of {', '.join(ATTACH_RANK)}", ATTACH_RANK.__contains__)] = (
        "global"
    )
    mode: BookMode | None = None
    book: Annotated[Any, Must("a path to a book's file, or the book itself")] = None


class Files:
    """A reader of the files that a scenario names.

    It collects notices for the author of the scenario.
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
        """Read the scenario's card, given as the path of a file or as a JSON object."""
        if isinstance(given, str):
            card = card_file(self.folder / given)
        elif isinstance(given, dict):
            card = read_card(given)
        else:
            raise wrong_value_error("card", given, "a path or a card's object")
        self.notices += card.notices
        self.notices += containment_notices(
            card, grants=self.card_grants, post_history_depth=self.post_history_depth
        )
        return card

    def preset(self, given: object) -> Preset:
        """Read the scenario's preset, given as the path of a file or as a JSON object."""
        if isinstance(given, str):
            path = self.folder / given
            data: bytes | dict[str, Any] = read_bytes(path, kind="preset")
            name = path.stem
        elif isinstance(given, dict):
            data, name = given, "preset"
        else:
            raise wrong_value_error("preset", given, "a path or a preset's object")
        try:
            preset = read_preset(data, name=name)
        except FormatError as error:
            raise FormatError(error.kind, f"{name}: {error.message}") from error
        self.notices += [f"preset: {notice}" for notice in preset.notices]
        return preset

    def books(
        self, card: Card | None, rows: list[tuple[str, Any]], *, rules: LorePreset
    ) -> tuple[Lorebook, ...]:
        """Return the lorebooks of a scenario and the card's own book, each only once.

        If the card's book is also listed, the listed copy is used.

        Args:
            rules: the rules, SillyTavern's or this package's, that choose the attachment of a book
                that is listed several times.
        """
        listed = [self._read_listed(path, row) for path, row in rows]
        books = []
        for found in self._without_repeats(listed, rules):
            book = self._read_book(found, label=self._free_label(found.label or "book"))
            if any(entry.refused for entry in book.entries):
                for fault in own_data_faults(found.data, label=book.label):
                    raise fault
            books.append(book)
        if card is not None and card.character_book is not None:
            name = _own_name(card.character_book) or card.name
            found = _listed_book(name, card.character_book, attach="character")
            found = replace(found, data=book_of_card(found.data))
            try:
                own = self._read_book(found, label=found.label or "book", grants=self.card_grants)
            except FormatError as error:
                problem = f"cannot be read and is left out: {error.message}"
                self.notices.append(f"lorebook {name}: {problem}")
            else:
                copy = copy_of(own, books, world=linked_world(card.extensions))
                if copy is None:
                    books.insert(0, self._relabelled(own))
                else:
                    self.notices.append(f"lorebook {copy.label}: {describe_copy(own, copy)}")
        for book in books:
            self.notices += [f"lorebook {book.label}: {notice}" for notice in book.notices]
        return tuple(books)

    def _read_listed(self, path: str, row: object) -> "_ListedBook":
        read = read_row(_BookRow, {"book": row} if isinstance(row, str) else row, path=path)
        given = read.book
        stem = ""
        if isinstance(given, str):
            stem = Path(given).stem
            file = self.folder / given
            given, twice = book_file(file)
            self.notices += [f"{file}: {notice}" for notice in twice]
        if not isinstance(given, dict):
            raise wrong_value_error(f"{path}.book", given, "a path or a book's object")
        label = read.name or _own_name(given) or stem
        return _listed_book(label, given, attach=read.attach, mode=read.mode)

    def _without_repeats(
        self, listed: list["_ListedBook"], rules: LorePreset
    ) -> list["_ListedBook"]:
        """Return one listing of each lorebook.

        If a book is listed several times, `rules` (SillyTavern's or this package's) decide which
        listing is kept.
        """
        kept: dict[tuple[str, int], _ListedBook] = {}
        # the sort is stable, so listings with the same rank keep their order
        for book in sorted(listed, key=_PREFERENCES[rules]):
            first = kept.setdefault(book.identity, book)
            if first is not book:
                self.notices.append(
                    f"lorebook {book.label}: is listed more than once with the same content; it"
                    f" is used once, assigned to {first.attach}"
                )
        return [book for book in listed if kept[book.identity] is book]

    def _read_book(
        self, found: "_ListedBook", *, label: str, grants: Grants = ALL_GRANTS
    ) -> Lorebook:
        return read_book(
            found.data,
            label=label,
            attach=found.attach,
            mode=found.mode,
            grants=grants,
            revision=found.revision,
            absent=self.absent,
        )

    def _relabelled(self, own: Lorebook) -> Lorebook:
        """Return the card's own book, with a new label if a listed book has the same label."""
        book = with_free_label(own, tuple(self._labels))
        if book.label != own.label:
            shown = f"the card's is shown as '{book.label}'"
            self.notices.append(f"two lorebooks are called '{own.label}': {shown}")
        return book

    def _free_label(self, label: str) -> str:
        """Return the label for a book, with a number if another book of the scenario has it."""
        free, number = label, 2
        while free in self._labels:
            free, number = f"{label} ({number})", number + 1
        if free != label:
            self.notices.append(f"two lorebooks are called '{label}': one is shown as '{free}'")
        self._labels.add(free)
        return free


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _ListedBook:
    """A lorebook that a scenario lists: its raw JSON, and to what it is attached."""

    label: str
    attach: str
    mode: BookMode | None
    data: Mapping[str, Any]
    revision: int

    @property
    def identity(self) -> tuple[str, int]:
        """The name and the content hash of the book; repeated listings have the same."""
        return self.label, self.revision


def _listed_book(
    label: str, data: Mapping[str, Any], *, attach: str, mode: BookMode | None = None
) -> _ListedBook:
    revision = content_revision(data)
    return _ListedBook(label=label, attach=attach, mode=mode, data=data, revision=revision)


def _narrow_first(book: _ListedBook) -> int:
    return ATTACH_RANK[book.attach]


def _as_in_sillytavern(book: _ListedBook) -> tuple[bool, bool, int]:
    """Return SillyTavern's sort key of a listed book: global books, then chat books, then others.

    Others are sorted from wide to narrow attachments. SillyTavern uses a book only once, even if it
    is chosen several times. A global book counts first, then the chat's book, then the character's.
    """
    rank = ATTACH_RANK[book.attach]
    return rank != ATTACH_RANK["global"], rank != ATTACH_RANK["chat"], -rank


# If a lorebook is listed several times, the first listing by this order counts. Our rules and
# SillyTavern's have different orders.
_PREFERENCES: Final[Mapping[LorePreset, Callable[[_ListedBook], Any]]] = MappingProxyType(
    {"evennia_ai": _narrow_first, "sillytavern": _as_in_sillytavern}
)


def card_file(path: Path) -> Card:
    """Load the card in a JSON, PNG or CHARX file; FormatError names the file."""
    content = read_bytes(path, kind="card")
    try:
        return load_card(content).card
    except FormatError as error:
        raise FormatError(error.kind, f"{path}: {error.message}") from error


def book_file(path: Path) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the JSON object in a lorebook's file, and a notice for each repeated member."""
    content = read_bytes(path, kind="book")
    value, twice = json_of_file(content, wanted="book", where=str(path))
    if not isinstance(value, dict):
        problem = describe_value(value, wanted="book") or "must be an object with `entries`"
        raise FormatError("book", f"{path}: {problem}")
    return value, twice


def content_revision(book: Mapping[str, Any]) -> int:
    """Return a revision number for a book that is not in the store, derived from its content."""
    return int(sha256(json.dumps(book, sort_keys=True).encode()).hexdigest()[:12], 16)


def _own_name(book: Mapping[str, Any]) -> str:
    """Return the name that a book's file contains, "" if it contains none."""
    inner = book.get("data") if book.get("spec") == "lorebook_v3" else book
    name = inner.get("name") if isinstance(inner, dict) else None
    return name.strip() if isinstance(name, str) else ""
