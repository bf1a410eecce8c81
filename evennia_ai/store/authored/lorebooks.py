"""Lorebooks: their texts, the locks that protect them, and the scopes that use them.

A lock string is stored as it is. The commands decide whether it is valid, and an `Actor` decides
what it allows.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from django.db.models import Q

from evennia_ai import models
from evennia_ai.engine.actors import ACCESS, Actor
from evennia_ai.engine.errors import FormatError, NotStoredError, StoreError
from evennia_ai.engine.history.records import canonical_json
from evennia_ai.engine.lorebook.book import ATTACH_RANK
from evennia_ai.engine.prompt.components import GAME, Scope
from evennia_ai.formats.lorebooks.editing.edits import changed_entry_ids
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.authored.files import check_file, json_file, read_text, store_file
from evennia_ai.store.authored.life_cycle import FileKind, Revision
from evennia_ai.store.core.authoring import check_locks, checked_name
from evennia_ai.store.core.snapshots import Snapshots, changing


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBook:
    """A stored lorebook.

    Books that differ only in their locks are equal, because parsing them has the same result.
    """

    name: str
    source: str = field(compare=False)
    """The JSON text of the book. It is not compared, because `sha256` identifies the text."""
    sha256: str
    revision: int
    scope: Scope | None = None
    """The scope to which the book is assigned. None if the book was read by its name."""
    locks: str = field(default="", compare=False)
    """The Evennia lock string of the lorebook, "" for none."""
    entry_locks: Mapping[str, str] = field(default_factory=dict, compare=False)
    """The lock strings of entries by their uid. Entries that were removed keep theirs."""


class LorebookKind(FileKind[StoredBook]):
    """The kind "lorebook". A scope may have several lorebooks."""

    name = "lorebook"
    state = "lorebooks"
    table = models.Lorebook
    scopes = ("zone", "faction", "room", "npc", "player")
    is_alone = False

    def to_row(self, value: StoredBook) -> dict[str, Any]:
        locks = canonical_json(dict(value.entry_locks))
        return {"file": self.file_of(value), "locks": value.locks, "entry_locks": locks}

    def from_row(self, row: Any) -> StoredBook:
        return StoredBook(
            name=row.name,
            source=read_text(row.file.sha256),
            sha256=row.file.sha256,
            revision=row.revision,
            locks=row.locks,
            entry_locks=json.loads(row.entry_locks),
        )

    def to_json(self, value: StoredBook) -> dict[str, Any]:
        return {"locks": value.locks, "entry_locks": dict(value.entry_locks)}

    def from_json(self, fields: Mapping[str, Any], row: models.Revision) -> StoredBook:
        assert row.file is not None
        return StoredBook(
            name=row.key,
            source="",
            sha256=row.file.sha256,
            revision=row.number,
            locks=fields["locks"],
            entry_locks=fields["entry_locks"],
        )

    def refresh(self, key: str, scope: Scope) -> None:
        _attached.note_any_change()

    def refresh_assigned(self, scope: Scope | None) -> None:
        if scope is None:
            _attached.note_any_change()
        else:
            _attached.note_change(scope)

    def check(
        self, old: StoredBook | None, new: StoredBook | None, *, doing: str, by: Actor
    ) -> None:
        """Check that the locks of a lorebook and of its changed entries allow a change.

        A removed book that comes back has the same locks as before its removal.

        Raises:
            NotPermittedError: a lock forbids the change.
            NotStoredError: `by` must not know that the book exists.
        """
        locked = old or new
        assert locked is not None
        if not by.sees(locked.locks):
            raise NotStoredError("lorebook", locked.name)
        by.check_locks(doing, f"lorebook '{locked.name}'", [locked.locks])
        forbidden = {
            uid: lock
            for uid, lock in locked.entry_locks.items()
            if not all(by.passes(lock, access) for access in ACCESS)
        }
        if not forbidden or (old is not None and new is not None and old.sha256 == new.sha256):
            return
        try:
            changed = changed_entry_ids(_content(old), _content(new))
        except FormatError:  # The text is not a lorebook, so every locked entry may have changed.
            changed = frozenset(forbidden)
        locks = [lock for uid, lock in forbidden.items() if uid in changed]
        by.check_locks(doing, f"an entry of lorebook '{locked.name}' that this would change", locks)

    def restored(self, then: StoredBook, now: StoredBook | None, *, key: str) -> StoredBook:
        """Return the book with the text of a revision and its newest locks."""
        return replace(then, **self._locks(key, then.revision, now))

    def then(self, key: str, number: int, *, scope: Scope = GAME) -> StoredBook:
        """Return the complete value that a revision made the current one (see `Kind.then`).

        A revision of an earlier, removed book with the same name is refused, because the locks of
        that book no longer protect its text.
        """
        then = super().then(key, number, scope=scope)
        if self.current(key) is not None and self._removal_after(key, number) is not None:
            raise StoreError(
                f"revision {number} belongs to an earlier lorebook '{key}', which was removed; to"
                f" go back to it, first remove the present lorebook '{key}'"
            )
        return then

    def locks_of(self, name: str, number: int) -> tuple[str, Mapping[str, str]]:
        """Return the current locks of a revision's book, and those of its entries by uid.

        For a removed book these are its locks at the removal.

        Raises:
            NotStoredError: there is no such book.
        """
        locks = self._locks(name, number - 1, self.current(name))
        return locks["locks"], locks["entry_locks"]

    def _locks(self, name: str, number: int, now: StoredBook | None) -> dict[str, Any]:
        removal = self._removal_after(name, number)
        book = now if removal is None else removal.value
        if book is None:
            raise NotStoredError("lorebook", name, self.list_keys())
        return {"locks": book.locks, "entry_locks": book.entry_locks}

    def _removal_after(self, name: str, number: int) -> Revision[StoredBook] | None:
        """Return the revision that removed the book to which this revision belongs."""
        later = (one for one in self.revisions(name) if one.number > number)
        return next((one for one in later if one.action == "removed"), None)


LOREBOOKS: Final = LorebookKind()


class CheckedText(NamedTuple):
    """The JSON text of a lorebook that passed the checks, with its hash."""

    source: str
    sha256: str


def checked_text(name: str, source: str, *, most: int) -> CheckedText:
    """Check the text of a lorebook. Any thread may do this.

    Args:
        most: The most characters that the text may have.

    Raises:
        FormatError: the text is not a strict JSON object, or it is too long.
    """
    what, setting = f"lorebook '{name}'", "EVENNIA_AI_MAX_SOURCE_CHARACTERS"
    digest = check_file(json_file(source), what=what, most=most, setting=setting)
    return CheckedText(source, digest)


def save_book(
    name: str, text: str | CheckedText, *, by: Actor, seen_revision: int | None = None
) -> StoredBook:
    """Store the text of a lorebook: a new book, or a new text for an existing one.

    Args:
        text: The JSON text. The same text again changes nothing.
        seen_revision: See `Kind.refuse_stale`.

    Raises:
        FormatError: the text is not a strict JSON object, or it is too long.
        EditConflictError: another person changed the book after `seen_revision`.
        NotPermittedError: a lock forbids the change.
    """
    checked_name(name, what="lorebook")
    if isinstance(text, str):
        text = checked_text(name, text, most=conf().max_source_characters)
    doing = f"saving lorebook '{name}'"
    with changing(LOREBOOKS.state, doing, by=by):
        old = LOREBOOKS.current(name)
        new = StoredBook(name=name, source=text.source, sha256=text.sha256, revision=0)
        if old is not None:
            new = replace(old, source=text.source, sha256=text.sha256)
            LOREBOOKS.check(old, new, doing=doing, by=by)
        LOREBOOKS.refuse_stale(name, seen_revision, old)
        if old is not None and LOREBOOKS.is_same(old, new):
            return old
        store_file(json_file(text.source), text.sha256)
        return LOREBOOKS.save(name, new, action="updated" if old else "created", by=by)


def get_book(name: str) -> StoredBook:
    """Return the lorebook with this name.

    Raises:
        NotStoredError: there is none; the message lists the names that exist.
    """
    return LOREBOOKS.existing(name)


def set_book_locks(name: str, locks: str, *, by: Actor) -> StoredBook:
    """Set the Evennia lock string that decides who may see and change a lorebook; "" removes it."""
    check_locks(locks)
    doing = f"locking lorebook '{name}'"
    with changing(LOREBOOKS.state, doing, by=by):
        book = LOREBOOKS.existing(name)
        LOREBOOKS.check(book, book, doing=doing, by=by)
        models.Lorebook.objects.filter(name=name).update(locks=locks)
        LOREBOOKS.refresh_assigned(None)
    return replace(book, locks=locks)


def set_entry_locks(name: str, uid: str, locks: str, *, by: Actor) -> None:
    """Set the lock string that decides who may see and change one entry; "" removes it."""
    check_locks(locks)
    doing = f"locking entry {uid} of lorebook '{name}'"
    with changing(LOREBOOKS.state, doing, by=by):
        book = LOREBOOKS.existing(name)
        LOREBOOKS.check(book, book, doing=doing, by=by)
        kept = dict(book.entry_locks)
        by.check_locks(doing, f"entry {uid}", [kept.pop(uid, "")])
        entry_locks = canonical_json({**kept, uid: locks} if locks else kept)
        models.Lorebook.objects.filter(name=name).update(entry_locks=entry_locks)
        LOREBOOKS.refresh_assigned(None)


def entry_locks(name: str) -> Mapping[str, str]:
    """Return the lock strings of a lorebook's entries by their uid."""
    return LOREBOOKS.existing(name).entry_locks


def all_locks() -> dict[str, tuple[str, dict[str, str]]]:
    """Return for each lorebook, by name, its own lock and the locks of its entries by uid."""
    rows = models.Lorebook.objects.values_list("name", "locks", "entry_locks")
    return {name: (locks, json.loads(entries)) for name, locks, entries in rows}


def books_for(scopes: Iterable[Scope]) -> tuple[StoredBook, ...]:
    """Return the lorebooks that are assigned to these scopes, each once, narrowest scope first.

    Books of one scope have the order in which they were assigned.
    """
    found: dict[str, StoredBook] = {}
    narrow_first = sorted(set(scopes), key=lambda scope: (ATTACH_RANK[scope.kind], scope.ref))
    for scope in narrow_first:
        for book in _attached(scope):
            found.setdefault(book.name, book)
    return tuple(found.values())


def _content(book: StoredBook | None) -> Any:
    return {"entries": []} if book is None else json.loads(book.source)


def _load(scope: Scope) -> tuple[StoredBook, ...]:
    return _load_each([scope])[scope]


def _load_each(scopes: Sequence[Scope]) -> Mapping[Scope, tuple[StoredBook, ...]]:
    wanted = Q()
    for kind in {scope.kind for scope in scopes}:
        refs = [scope.ref for scope in scopes if scope.kind == kind]
        wanted |= Q(scope_kind=kind, scope_ref__in=refs)
    rows = models.Assignment.objects.filter(wanted, kind=LOREBOOKS.name).order_by("pk")
    attached = [
        (Scope(kind=kind, ref=ref), name)
        for kind, ref, name in rows.values_list("scope_kind", "scope_ref", "key")
    ]
    books = LOREBOOKS.current_each({name for _, name in attached})
    of_each: dict[Scope, list[StoredBook]] = {scope: [] for scope in scopes}
    for scope, name in attached:
        of_each[scope].append(replace(books[name], scope=scope))
    return {scope: tuple(found) for scope, found in of_each.items()}


_attached: Final = Snapshots(LOREBOOKS.state, _load, load_each=_load_each)
load_books: Final = _attached.load_missing
"""Load the lorebooks of these scopes that are not in memory, with two queries."""
