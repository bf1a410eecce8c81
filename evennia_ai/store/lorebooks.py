"""Lorebooks, and where they are attached."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from evennia_ai import models
from evennia_ai.prompt.components import SCOPE_RANK, Scope
from evennia_ai.store.cards import checked_name
from evennia_ai.store.errors import NotStoredError
from evennia_ai.store.snapshots import Snapshots
from evennia_ai.store.sources import checked_source
from evennia_ai.store.state import LOREBOOKS, changing


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBook:
    """A lorebook as it was given; `scope` is where it was found attached, None by its name."""

    name: str
    source: str
    sha256: str
    revision: int
    scope: Scope | None = None


def save_book(name: str, source: str, *, by: str) -> StoredBook:
    """Store a lorebook under `name`, in place of the one that has it.

    The same text again changes nothing. FormatError: the text is no strict JSON object.
    """
    checked_name(name, what="lorebook")
    digest = checked_source(source, what=f"lorebook '{name}'")
    with changing(LOREBOOKS, f"saving lorebook '{name}'"):
        row = models.Lorebook.objects.filter(name=name).first()
        if row is not None and row.source == source:
            return _value(row)
        row = row or models.Lorebook(name=name, revision=0)
        row.source, row.sha256, row.revision = source, digest, row.revision + 1
        row.added_by, row.added_at = by, time.time()
        row.save()
        _attached.all_written()
        return _value(row)


def get_book(name: str) -> StoredBook:
    """The lorebook of this name; NotStoredError names those there are."""
    return _value(_row(name))


def book_names() -> tuple[str, ...]:
    """The names of all lorebooks, in alphabetical order."""
    return tuple(models.Lorebook.objects.order_by("name").values_list("name", flat=True))


def attach(name: str, scope: Scope, *, by: str) -> None:
    """Let a lorebook count in `scope`; again changes nothing."""
    row = _row(name)
    with changing(LOREBOOKS, f"attaching lorebook '{name}'"):
        models.LorebookAttachment.objects.get_or_create(
            lorebook=row,
            scope_kind=scope.kind,
            scope_ref=scope.ref,
            defaults={"attached_by": by, "attached_at": time.time()},
        )
        _attached.written(scope)


def detach(name: str, scope: Scope, *, by: str) -> bool:
    """Let a lorebook no longer count in `scope`; whether it did."""
    row = _row(name)
    with changing(LOREBOOKS, f"detaching lorebook '{name}' for {by}"):
        removed, _ = models.LorebookAttachment.objects.filter(
            lorebook=row, scope_kind=scope.kind, scope_ref=scope.ref
        ).delete()
        _attached.written(scope)
    return removed > 0


def scopes_of(name: str) -> tuple[Scope, ...]:
    """Where a lorebook is attached, from wide to narrow."""
    rows = models.LorebookAttachment.objects.filter(lorebook__name=name)
    scopes = [Scope(kind=k, ref=r) for k, r in rows.values_list("scope_kind", "scope_ref")]
    return tuple(sorted(scopes, key=lambda scope: (SCOPE_RANK[scope.kind], scope.ref)))


def books_for(scopes: Iterable[Scope]) -> tuple[StoredBook, ...]:
    """The lorebooks attached to `scopes`, each once, those of the narrowest scope first.

    Inside a scope they stand in the order of their attachment.
    """
    found: dict[str, StoredBook] = {}
    narrow_first = sorted(set(scopes), key=lambda scope: (-SCOPE_RANK[scope.kind], scope.ref))
    for scope in narrow_first:
        for book in _attached.read(scope):
            found.setdefault(book.name, book)
    return tuple(found.values())


def _row(name: str) -> models.Lorebook:
    row = models.Lorebook.objects.filter(name=name).first()
    if row is None:
        raise NotStoredError("lorebook", name, book_names())
    return row


def _value(row: models.Lorebook, scope: Scope | None = None) -> StoredBook:
    return StoredBook(
        name=row.name, source=row.source, sha256=row.sha256, revision=row.revision, scope=scope
    )


def _load(scope: Scope) -> tuple[StoredBook, ...]:
    rows = models.LorebookAttachment.objects.filter(scope_kind=scope.kind, scope_ref=scope.ref)
    return tuple(
        _value(row.lorebook, scope) for row in rows.select_related("lorebook").order_by("pk")
    )


_attached: Final = Snapshots(LOREBOOKS, _load)
