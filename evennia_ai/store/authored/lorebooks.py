"""Lorebooks: their texts and revisions, who may touch them, and where they are attached.

Two builders who edit one book: the second is told, nothing is overwritten in silence. A lock is
kept as it is given; whether it is a lock, and what it allows whom, is for the commands.
"""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from django.db.models import Q

from evennia_ai import models
from evennia_ai.engine.actors import ACCESS, Actor
from evennia_ai.engine.errors import EditConflictError, FormatError, NotStoredError
from evennia_ai.engine.history.records import canonical_json
from evennia_ai.engine.lorebook.book import ATTACH_RANK
from evennia_ai.engine.prompt.components import Scope
from evennia_ai.formats.lorebooks.editing.edits import changed_entry_ids
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.authored import book_texts
from evennia_ai.store.core.authoring import (
    Change,
    Revisions,
    check_locks,
    check_scope,
    checked_name,
    checked_source,
)
from evennia_ai.store.core.snapshots import LOREBOOKS, Snapshots, changing, value_of

_WITHOUT_ENTRIES: Final = '{"entries": []}'
# Scopes that name something: all but the game.
_NAMED_KINDS: Final = ("zone", "room", "npc", "faction", "player")

_revisions: Final = Revisions(models.LorebookRevision)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBook:
    """A lorebook as it was given; `scope` is where it was found attached, None by its name.

    Two that differ in `locks` alone are the same book: what was parsed of it stays good.
    """

    name: str
    source: str = field(compare=False)
    """Its text, which `sha256` tells from others: comparing megabytes takes long."""
    sha256: str
    revision: int
    scope: Scope | None = None
    locks: str = field(default="", compare=False)


class CheckedText(NamedTuple):
    """The text of a book that was looked at, and its hash."""

    source: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BookChange(Change):
    """One change of a lorebook, without its text: created, updated, removed or reverted."""

    name: str
    locks: str = ""
    """Those of the book at that time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BookRevision(BookChange):
    """One change of a lorebook with the text it left, None where it removed the book."""

    source: str | None


def save_book(
    name: str,
    source: str,
    *,
    by: Actor,
    expected_revision: int | None = None,
) -> StoredBook:
    """Store a lorebook under `name`, in place of the one that has it.

    The same text again changes nothing. `expected_revision` is the revision the editor looked at,
    0 where there was no book; EditConflictError says who changed it since. FormatError: the text
    is no strict JSON object.
    """
    text = checked_text(name, source, most=conf().max_source_characters)
    return save_checked(name, text, by=by, expected_revision=expected_revision)


def checked_text(name: str, source: str, *, most: int) -> CheckedText:
    """Return a text of at most so many characters with its hash; any thread may do it.

    Errors as `save_book`.
    """
    what, setting = f"lorebook '{name}'", "EVENNIA_AI_MAX_SOURCE_CHARACTERS"
    return CheckedText(source, checked_source(source, what=what, most=most, setting=setting))


def save_checked(
    name: str, text: CheckedText, *, by: Actor, expected_revision: int | None = None
) -> StoredBook:
    """Store a text that was looked at; else as `save_book`."""
    checked_name(name, what="lorebook")
    doing = f"saving lorebook '{name}'"
    with changing(LOREBOOKS, doing, by=by):
        row = _row_or_none(name)
        if row is not None:
            _refuse_locked(row, doing, by=by)
            _refuse_locked_entries(row, text.source, doing, by=by)
        _refuse_stale(name, row, expected_revision)
        action = "updated" if row else "created"
        return _saved(name, row, text, action=action, by=by)


def get_book(name: str) -> StoredBook:
    """The lorebook of this name; NotStoredError names those there are."""
    return _value(_row(name))


def book_names() -> tuple[str, ...]:
    """The names of all lorebooks, in alphabetical order."""
    return tuple(models.Lorebook.objects.order_by("name").values_list("name", flat=True))


def remove_book(name: str, *, by: Actor, expected_revision: int | None = None) -> None:
    """Remove a lorebook and its attachments; its revisions stay, and it can be reverted to one."""
    doing = f"removing lorebook '{name}'"
    with changing(LOREBOOKS, doing, by=by):
        row = _row(name)
        _refuse_locked(row, doing, by=by)
        _refuse_locked_entries(row, _WITHOUT_ENTRIES, doing, by=by)
        _refuse_stale(name, row, expected_revision)
        row.revision = _next_number(row)
        _record(row, action="removed", by=by)
        row.delete()
        _attached.all_written()


def book_revisions(name: str) -> tuple[BookChange, ...]:
    """All changes of a lorebook, oldest first; also of one that was removed."""
    rows = _revisions.of(name=name).defer("source", "entry_locks")
    return tuple(value_of(BookChange, row) for row in rows)


def book_revision(name: str, number: int) -> BookRevision:
    """One change of a lorebook with the text it left; NotStoredError: there is no such number."""
    rows = _revisions.of(name=name).defer("source")
    row = _revisions.numbered(rows, number, what=f"lorebook '{name}'")
    source = None if row.action == "removed" else book_texts.text_at(name, number)
    return value_of(BookRevision, row, source=source)


def locks_then(name: str, number: int) -> tuple[str, dict[str, str]]:
    """The lock of the book that a revision is of, and those of its entries by uid.

    As they are now, or as the book was removed with them. NotStoredError: there is no such book.
    """
    row = _removal_after(name, number - 1) or _row(name)
    return row.locks, dict(json.loads(row.entry_locks))


def book_then(name: str, number: int) -> BookRevision:
    """A lorebook as its revision of this number left it, which it can be reverted to.

    NotStoredError: there is no such revision, it is the one that removed the book, or another book
    has the name.
    """
    then = book_revision(name, number)
    if then.source is None:
        raise NotStoredError("lorebook in revision", f"{name} {number}: it removed it")
    if _row_or_none(name) is not None and _removal_after(name, number) is not None:
        why = "it is of a book that was removed; remove the one that has its name now"
        raise NotStoredError("lorebook in revision", f"{name} {number}: {why}")
    return then


def revert_book(
    name: str, number: int, *, by: Actor, expected_revision: int | None = None
) -> StoredBook:
    """Give a lorebook the text of an earlier revision, as a change of its own.

    A book that was removed comes back with the locks it had, attached nowhere. Errors as
    `book_then`. EditConflictError: it was changed or removed since `expected_revision`, its newest
    then. NotPermittedError: a lock of the book, or of any entry it has or had, forbids it.
    """
    doing = f"reverting lorebook '{name}'"
    with changing(LOREBOOKS, doing, by=by):
        _revisions.refuse_stale(f"lorebook '{name}'", expected_revision, name=name)
        then = book_then(name, number)
        row = _row_or_none(name) or _row_like(_removal_after(name, number))
        if row is not None:
            _refuse_locked(row, doing, by=by)
            by.check_locks(doing, f"an entry of lorebook '{name}'", _entry_locks(row).values())
        text = checked_text(name, str(then.source), most=conf().max_source_characters)
        return _saved(name, row, text, action="reverted", by=by)


def set_book_locks(name: str, locks: str, *, by: Actor) -> StoredBook:
    """Say who may see and change a lorebook, as an Evennia lock string; "" takes it away."""
    check_locks(locks)
    doing = f"locking lorebook '{name}'"
    with changing(LOREBOOKS, doing, by=by):
        row = _row(name)
        _refuse_locked(row, doing, by=by)
        if row.locks != locks:
            row.locks = locks
            row.save(update_fields=["locks"])
            _attached.all_written()
        return _value(row)


def entry_locks(name: str) -> dict[str, str]:
    """The lock strings of a lorebook's entries by their uid; entries without one are left out."""
    return _entry_locks(_row(name))


def all_locks() -> dict[str, tuple[str, dict[str, str]]]:
    """By name the lock string of each lorebook, and those of its entries by their uid."""
    rows = models.Lorebook.objects.values_list("name", "locks", "entry_locks")
    return {name: (locks, json.loads(entries)) for name, locks, entries in rows}


def set_entry_locks(name: str, uid: str, locks: str, *, by: Actor) -> None:
    """Say who may see and change one entry; "" takes it away."""
    check_locks(locks)
    doing = f"locking entry {uid} of lorebook '{name}'"
    with changing(LOREBOOKS, doing, by=by):
        row = _row(name)
        kept = _entry_locks(row)
        _refuse_locked(row, doing, by=by)
        by.check_locks(doing, f"entry {uid}", [kept.get(uid, "")])
        kept.pop(uid, None)
        row.entry_locks = canonical_json({**kept, uid: locks} if locks else kept)
        row.save(update_fields=["entry_locks"])


def attach(name: str, scope: Scope, *, by: Actor) -> None:
    """Let a lorebook count in `scope`; again changes nothing."""
    check_scope(scope, kinds=_NAMED_KINDS)
    doing = f"attaching lorebook '{name}'"
    with changing(LOREBOOKS, doing, by=by):
        row = _row(name)
        _refuse_locked(row, doing, by=by)
        models.LorebookAttachment.objects.get_or_create(
            lorebook=row,
            scope_kind=scope.kind,
            scope_ref=scope.ref,
            defaults={"attached_by": by.name, "attached_at": time.time()},
        )
        _attached.written(scope)


def detach(name: str, scope: Scope, *, by: Actor) -> bool:
    """Let a lorebook no longer count in `scope`; whether it did."""
    doing = f"detaching lorebook '{name}'"
    with changing(LOREBOOKS, doing, by=by):
        row = _row(name)
        _refuse_locked(row, doing, by=by)
        removed, _ = models.LorebookAttachment.objects.filter(
            lorebook=row, scope_kind=scope.kind, scope_ref=scope.ref
        ).delete()
        _attached.written(scope)
    return removed > 0


def attachments(name: str) -> tuple[Scope, ...]:
    """Where a lorebook is attached, from wide to narrow."""
    rows = models.LorebookAttachment.objects.filter(lorebook__name=name)
    scopes = [Scope(kind=k, ref=r) for k, r in rows.values_list("scope_kind", "scope_ref")]
    return tuple(sorted(scopes, key=lambda scope: (-ATTACH_RANK[scope.kind], scope.ref)))


def books_for(scopes: Iterable[Scope]) -> tuple[StoredBook, ...]:
    """The lorebooks attached to `scopes`, each once, those of the narrowest scope first.

    Inside a scope they stand in the order of their attachment.
    """
    found: dict[str, StoredBook] = {}
    narrow_first = sorted(set(scopes), key=lambda scope: (ATTACH_RANK[scope.kind], scope.ref))
    for scope in narrow_first:
        for book in _attached(scope):
            found.setdefault(book.name, book)
    return tuple(found.values())


def _saved(
    name: str, row: models.Lorebook | None, text: CheckedText, *, action: str, by: Actor
) -> StoredBook:
    """The book with this text as a whole; a row that has no key yet is of one that comes back."""
    if row is not None and row.pk is not None and _value(row).source == text.source:
        return _value(row)
    row = row or models.Lorebook(name=name)
    row.sha256 = text.sha256
    row.revision = _next_number(row)
    row.added_by, row.added_at = by.name, time.time()
    row.save()
    _record(row, action=action, by=by, source=text.source)
    book_texts.remember(row.name, row.sha256, text.source)
    _attached.all_written()
    return _value(row)


def _record(row: models.Lorebook, *, action: str, by: Actor, source: str = "") -> None:
    """Write down what `row` is now, in the transaction that changes it."""
    _revisions.write(
        row.revision,
        action=action,
        by=by,
        name=row.name,
        source=source,
        locks=row.locks,
        entry_locks=row.entry_locks,
    )


def _removal_after(name: str, number: int) -> models.LorebookRevision | None:
    """The change that removed the book this revision is of."""
    return _revisions.of(name=name).filter(action="removed", number__gt=number).first()


def _row_like(removal: models.LorebookRevision | None) -> models.Lorebook | None:
    """A row for a book that comes back, with the locks it went with; its text is still to come."""
    if removal is None:
        return None
    return models.Lorebook(name=removal.name, locks=removal.locks, entry_locks=removal.entry_locks)


def _next_number(row: models.Lorebook) -> int:
    return _revisions.next_number(least=row.revision if row.pk else 0, name=row.name)


def _entry_locks(row: models.Lorebook) -> dict[str, str]:
    """Return the locks of a book's entries by uid, those of removed entries included."""
    return dict(json.loads(row.entry_locks))


def _refuse_locked(row: models.Lorebook, doing: str, *, by: Actor) -> None:
    """Raise NotPermittedError if the lock of a book forbids a change.

    A book that somebody may not see does not exist for them: NotStoredError.
    """
    if not by.sees(row.locks):
        raise NotStoredError("lorebook", row.name)
    by.check_locks(doing, f"lorebook '{row.name}'", [row.locks])


def _refuse_locked_entries(row: models.Lorebook, source: str, doing: str, *, by: Actor) -> None:
    """Raise NotPermittedError if a text changes an entry that its lock forbids to see or change."""
    kept = {
        uid: lock
        for uid, lock in _entry_locks(row).items()
        if not all(by.passes(lock, access) for access in ACCESS)
    }
    if not kept:
        return
    try:
        changed = changed_entry_ids(json.loads(_value(row).source), json.loads(source))
    except FormatError:  # nobody can tell which entries a text changes that is no book
        changed = frozenset(kept)
    locks = (lock for uid, lock in kept.items() if uid in changed)
    by.check_locks(doing, f"an entry of lorebook '{row.name}' that this would change", locks)


def _refuse_stale(name: str, row: models.Lorebook | None, expected_revision: int | None) -> None:
    """Refuse a change by somebody who looked at another revision; 0 is no book at all."""
    current = row.revision if row else 0
    if expected_revision not in (None, current):
        newest = max(current, _revisions.newest_number(name=name))
        by_whom = _revisions.last_changed_by(name=name)
        raise EditConflictError(f"lorebook '{name}'", expected_revision, newest, by_whom)


def _row(name: str) -> models.Lorebook:
    row = _row_or_none(name)
    if row is None:
        raise NotStoredError("lorebook", name, book_names())
    return row


def _row_or_none(name: str) -> models.Lorebook | None:
    return models.Lorebook.objects.filter(name=name).first()


def _value(row: models.Lorebook, scope: Scope | None = None) -> StoredBook:
    source = book_texts.text_now(row.name, row.revision, row.sha256)
    return value_of(StoredBook, row, scope=scope, source=source)


def _load(scope: Scope) -> tuple[StoredBook, ...]:
    return _load_each([scope])[scope]


def _load_each(scopes: Sequence[Scope]) -> Mapping[Scope, tuple[StoredBook, ...]]:
    wanted = Q()
    for kind in {scope.kind for scope in scopes}:
        refs = [scope.ref for scope in scopes if scope.kind == kind]
        wanted |= Q(scope_kind=kind, scope_ref__in=refs)
    of_each: dict[Scope, list[StoredBook]] = {scope: [] for scope in scopes}
    rows = models.LorebookAttachment.objects.filter(wanted).order_by("pk")
    for row in rows.select_related("lorebook"):
        scope = Scope(kind=row.scope_kind, ref=row.scope_ref)
        of_each[scope].append(_value(row.lorebook, scope))
    return {scope: tuple(books) for scope, books in of_each.items()}


_attached: Final = Snapshots(LOREBOOKS, _load, load_each=_load_each)
take_in_books: Final = _attached.take_in
"""Reads what is attached to these scopes and not known yet, all of it in one query."""
