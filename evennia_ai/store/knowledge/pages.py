"""Pages of knowledge bases in the game's own database: read, write, rename and link them.

If two builders edit one page, the second one gets an error, so nobody overwrites what they have not
seen. A lock string is stored as it is; the callers decide whom it lets in. Rows, aliases, links and
revisions are written in batches, inside a transaction of `changing(KNOWLEDGE, ...)`.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from django.db import connection

from evennia_ai import models
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import NotStoredError, PageConflictError, StoreError
from evennia_ai.engine.knowledge.pages.markup import find_links
from evennia_ai.engine.knowledge.pages.page import (
    Namespace,
    Page,
    PageDraft,
    PageMeta,
    PageName,
    alias_names,
)
from evennia_ai.store.core.authoring import Change
from evennia_ai.store.core.snapshots import KNOWLEDGE, changing
from evennia_ai.store.knowledge.knowledge_bases import (
    add_to_counts,
    base_id,
    base_row,
    refuse_locked,
)
from evennia_ai.store.knowledge.page_rows import (
    MOST_NAMES,
    REVISIONS,
    Row,
    check_page,
    key_of,
    last_changed_by,
    named,
    newest_numbers,
    page_columns,
    page_value,
    record_changes,
    refuse_locked_pages,
    rows_named,
    title_row,
)
from evennia_ai.store.knowledge.page_search import INDEXED, PageChange, index_changes

BATCH: Final = 200

_LINK_COLUMNS: Final = ("base_id", "page_id", "kind", "place", "namespace", "title", "folded")


@dataclass(frozen=True, slots=True, kw_only=True)
class PageWrite:
    """A page to write. It replaces `row`, or is new if `row` is None."""

    page: Page
    row: Row | None
    action: str = ""

    @property
    def told(self) -> str:
        """Return the kind of change as one word for the revision, such as "updated"."""
        return self.action or ("updated" if self.row else "created")


def own_base(base: str) -> models.KnowledgeBase:
    """Return the row of a knowledge base with pages in this database.

    Raises:
        StoreError: its pages are in another backend.
    """
    row = base_row(base)
    if row.backend != "database":
        raise StoreError(
            f"the pages of knowledge base '{base}' are not in the game's database ({row.backend});"
            " change them there"
        )
    return row


def refuse_stale(base: str, name: PageName, row: Row | None, was: str) -> None:
    """Check that a page still has the revision `was`; "" means that there was no page.

    Raises:
        PageConflictError: it has another revision.
    """
    if was != (str(row.revision) if row else ""):
        newest = newest_numbers(base, [named(name)]).get(named(name), 0)
        seen = int(was) if was.isdecimal() else 0
        what = f"page '{name}' of knowledge base '{base}'"
        raise PageConflictError(what, seen, newest, last_changed_by(base, name))


def is_same(row: Row | None, page: Page) -> bool:
    """True if a row has the same text, metadata and lock as a page."""
    return row is not None and (row.sha256, row.locks) == (page.sha256, page.locks)


def write_all(
    base: models.KnowledgeBase,
    changes: Sequence[PageWrite],
    *,
    by: Actor,
    note: str = "",
    done: Callable[[int], None] = lambda _: None,
) -> list[Row]:
    """Write pages with their revisions, and return their rows.

    Args:
        done: Called after each batch with the number of pages written so far.

    Raises:
        ComponentValueError: a page cannot be stored.
        NotPermittedError: a lock forbids the change.
    """
    doing = f"writing pages of knowledge base '{base.key}'"
    refuse_locked(base, doing, by=by)
    refuse_locked_pages(base, doing, by=by, rows=[one.row for one in changes if one.row])
    written: list[Row] = []
    changed: list[PageChange] = []
    for start in range(0, len(changes), BATCH):
        batch = changes[start : start + BATCH]
        were = [_was(base, change.row) for change in batch]
        rows = _write(base, batch, by=by, note=note)
        changed += (
            PageChange(page_id=row.pk, was=was, now=change.page)
            for row, was, change in zip(rows, were, batch, strict=True)
        )
        if len(changed) >= INDEXED or start + BATCH >= len(changes):
            index_changes(base.pk, changed)
            changed = []
        written += rows
        done(len(written))
    return written


def remove_all(base: models.KnowledgeBase, rows: Sequence[Row], *, by: Actor) -> None:
    """Remove pages. Their revisions stay."""
    doing = f"removing pages of knowledge base '{base.key}'"
    refuse_locked(base, doing, by=by)
    refuse_locked_pages(base, doing, by=by, rows=rows)
    for row in rows:
        row.revision += 1
    record_changes(base.key, [(row, "removed") for row in rows], by=by, note="")
    for start in range(0, len(rows), INDEXED):
        gone = [
            PageChange(page_id=row.pk, was=_was(base, row), now=None)
            for row in rows[start : start + INDEXED]
        ]
        index_changes(base.pk, gone)
    for start in range(0, len(rows), BATCH):
        ids = [row.pk for row in rows[start : start + BATCH]]
        Row.objects.filter(pk__in=ids).delete()
    add_to_counts(base, pages=-len(rows), characters=-sum(row.characters for row in rows))


def _was(base: models.KnowledgeBase, row: Row | None) -> Page | None:
    return page_value(row, base=base.key, revision=row.revision) if row else None


def _write(
    base: models.KnowledgeBase, changes: Sequence[PageWrite], *, by: Actor, note: str
) -> list[Row]:
    characters = -sum(change.row.characters for change in changes if change.row)
    numbers = newest_numbers(base.key, (named(change.page.name) for change in changes))
    rows = [_filled_row(base, change, numbers) for change in changes]
    new = [row for row in rows if row.pk is None]
    Row.objects.bulk_create(new, batch_size=BATCH)
    old = [change.row for change in changes if change.row]
    for row in old:
        row.save()
    ids = [row.pk for row in old]
    models.KnowledgeAlias.objects.filter(page_id__in=ids).delete()
    models.KnowledgeLink.objects.filter(page_id__in=ids).delete()
    _name_and_link(base, changes, rows)
    told = zip(rows, (change.told for change in changes), strict=True)
    record_changes(base.key, told, by=by, note=note)
    characters += sum(row.characters for row in rows)
    add_to_counts(base, pages=len(new), characters=characters)
    return rows


def _filled_row(
    base: models.KnowledgeBase, change: PageWrite, numbers: dict[tuple[str, str], int]
) -> Row:
    check_page(change.page)
    row = change.row or Row(base=base)
    for column, value in page_columns(change.page).items():
        setattr(row, column, value)
    row.revision = 1 + numbers.get(named(change.page.name), 0)
    return row


def _name_and_link(
    base: models.KnowledgeBase, changes: Sequence[PageWrite], rows: Sequence[Row]
) -> None:
    aliases: list[tuple[Any, ...]] = []
    links: list[tuple[Any, ...]] = []
    for change, row in zip(changes, rows, strict=True):
        page, ids = change.page, (base.pk, row.pk)
        aliases += [(*ids, *named(alias)) for alias in alias_names(page.meta, page.name)]
        for kind, targets in (("link", find_links(page.body)), ("requires", page.meta.requires)):
            links += [
                (*ids, kind, place, target.namespace, target.title, target.folded)
                for place, target in enumerate(targets)
            ]
    _insert(models.KnowledgeAlias, ("base_id", "page_id", "namespace", "folded"), aliases)
    _insert(models.KnowledgeLink, _LINK_COLUMNS, links)


def _insert(model: Any, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows with raw SQL.

    An import may have a million links, and Django's ORM is ten times slower.
    """
    quote = connection.ops.quote_name
    names = ", ".join(map(quote, columns))
    marks = ", ".join(["%s"] * len(columns))
    into = f"INSERT INTO {quote(model._meta.db_table)} ({names})"
    with connection.cursor() as cursor:
        cursor.executemany(f"{into} VALUES ({marks})", rows)


_CHANGE: Final = ("number", "action", "changed_by", "changed_at", "note", "sha256", "locks")


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRevision(Change):
    """One change of a page, without its text.

    The action is created, updated, removed or renamed.
    """

    name: PageName
    note: str
    sha256: str
    """The hash of the page after the change; "" for a removal."""
    locks: str = ""
    """The locks of the page, or of the base if the page was removed with it."""


def page_or_none(base: str, name: PageName, *, follow: bool = True) -> Page | None:
    """Return the page with this name, or None.

    A title is preferred to an alias. If a redirect leads to a missing page, the redirect is
    returned.

    Args:
        follow: True if one redirect is followed.

    Raises:
        NotStoredError: there is no such base.
    """
    (row,) = rows_named(base_id(base), [name], follow=follow)
    return _value(base, row) if row else None


def pages_named(base: str, names: Sequence[PageName]) -> tuple[Page | None, ...]:
    """Return the pages with these names, like `page_or_none`, with few queries."""
    rows = rows_named(base_id(base), names)
    return tuple(_value(base, row) if row else None for row in rows)


def list_pages(base: str, namespace: Namespace, *, prefix: str = "") -> tuple[PageName, ...]:
    """Return the names of pages in a namespace whose titles have a prefix, in any case. Sorted."""
    rows = Row.objects.filter(base_id=base_id(base), namespace=namespace)
    titles = rows.filter(folded__startswith=prefix.casefold()).values_list("title", flat=True)
    return tuple(PageName(namespace=namespace, title=title) for title in sorted(titles))


def linked_pages(base: str, names: Sequence[PageName]) -> tuple[tuple[PageName, ...], ...]:
    """Return, for each of these pages, the names of the pages that it links to, in order.

    The list of a missing page is empty.
    """
    rows = rows_named(base_id(base), names, "namespace", "title", "folded", "meta")
    found: dict[int, list[PageName]] = {row.pk: [] for row in rows if row}
    ids = list(found)
    for start in range(0, len(ids), MOST_NAMES):
        links = models.KnowledgeLink.objects.filter(
            kind="link", page_id__in=ids[start : start + MOST_NAMES]
        )
        for page_id, namespace, title in links.order_by("page_id", "place").values_list(
            "page_id", "namespace", "title"
        ):
            found[page_id].append(PageName(namespace=namespace, title=title))
    return tuple(tuple(found[row.pk]) if row else () for row in rows)


def pages_linking_to(base: str, name: PageName) -> tuple[PageName, ...]:
    """Return the names of the pages that link to a page or require it, sorted."""
    links = models.KnowledgeLink.objects.filter(
        base_id=base_id(base), namespace=name.namespace, folded=name.folded
    )
    found = links.values_list("page__namespace", "page__title")
    return tuple(sorted({PageName(namespace=space, title=title) for space, title in found}))


def all_pages(base: str, *, most_characters: int) -> tuple[Page, ...] | None:
    """Return all pages of a knowledge base, sorted by name.

    Return None if they have more characters than allowed.
    """
    if base_row(base).characters > most_characters:
        return None
    rows = Row.objects.filter(base_id=base_id(base))
    return tuple(sorted((_value(base, row) for row in rows), key=lambda one: one.name))


def pages_with_field(base: str, field: str) -> tuple[Page, ...]:
    """Return the pages of a knowledge base whose metadata has this field, sorted by name."""
    rows = Row.objects.filter(base_id=base_id(base), meta__contains=f"{json.dumps(field)}:")
    found = [page for row in rows if field in (page := _value(base, row)).meta.fields]
    return tuple(sorted(found, key=lambda page: page.name))


def locks_in(base: str) -> tuple[str, ...]:
    """Return the different locks of a knowledge base's pages."""
    rows = Row.objects.filter(base_id=base_id(base)).exclude(locks="")
    return tuple(rows.order_by("locks").values_list("locks", flat=True).distinct())


def save_page(base: str, draft: PageDraft) -> Page:
    """Write a page. The same page again changes nothing.

    Raises:
        PageConflictError: the page no longer has the revision `draft.was`; the message names the
            person who changed it.
        NotStoredError: there is no such base.
        ComponentValueError: the page cannot be stored.
    """
    name = draft.page.name
    with changing(KNOWLEDGE, f"saving page '{name}'", by=draft.by):
        known = own_base(base)
        row = title_row(known.pk, name)
        refuse_stale(base, name, row, draft.was)
        if row is None or not is_same(row, draft.page):
            change = PageWrite(page=draft.page, row=row)
            (row,) = write_all(known, [change], by=draft.by, note=draft.note)
        return _value(base, row)


def remove_page(base: str, name: PageName, *, was: str, by: Actor) -> None:
    """Remove a page. Its revisions stay.

    Raises:
        PageConflictError: it no longer has the revision `was`.
        NotStoredError: no page has this title. An alias or a redirect is not enough.
    """
    with changing(KNOWLEDGE, f"removing page '{name}'", by=by):
        known = own_base(base)
        row = _title_row(known, name)
        refuse_stale(base, name, row, was)
        remove_all(known, [row], by=by)


def rename_page(
    base: str, name: PageName, new: PageName, *, by: Actor, was: str | None = None
) -> Page:
    """Rename a page and its talk page, and leave a redirect.

    If the new name belongs to a redirect that leads to this page, the redirect is overwritten.

    Raises:
        PageConflictError: it no longer has the revision `was`.
        NotStoredError: there is no such page.
        StoreError: another page has the new name.
    """
    with changing(KNOWLEDGE, f"renaming page '{name}'", by=by):
        known = own_base(base)
        if was is not None:
            refuse_stale(base, name, title_row(known.pk, name), was)
        moved = _renamed(known, name, new, by=by)
        talked = title_row(known.pk, name.talk)
        if name.talk != name and talked and title_row(known.pk, new.talk) is None:
            _renamed(known, name.talk, new.talk, by=by)
        return moved


def page_revisions(base: str, name: PageName) -> tuple[PageRevision, ...]:
    """Return all changes of a page, oldest first, also if it was removed."""
    rows = REVISIONS.of(**key_of(base, name)).values("namespace", "title", *_CHANGE)
    return tuple(
        PageRevision(
            name=PageName(namespace=row["namespace"], title=row["title"]),
            **{column: row[column] for column in _CHANGE},
        )
        for row in rows
    )


def page_at_revision(base: str, name: PageName, number: int) -> Page | None:
    """Return the page as it was after a change.

    Return None if the change removed the page or does not exist.
    """
    rows = REVISIONS.of(**key_of(base, name)).filter(number=number)
    row = rows.exclude(action="removed").first()
    return page_value(row, base=base, revision=number) if row else None


def removed_with_locks() -> bool:
    """True if a removed page with this name had a lock, or if its knowledge base had one."""
    rows = models.KnowledgePageRevision.objects.filter(action="removed")
    return bool(rows.exclude(locks="").exists())


def _renamed(known: models.KnowledgeBase, name: PageName, new: PageName, *, by: Actor) -> Page:
    row = _title_row(known, name)
    old = _value(known.key, row)
    target: Row | None = row
    if named(new) != named(name):
        target = title_row(known.pk, new)
        _refuse_taken(known, target, old)
        stays = replace(old, body="", meta=PageMeta(redirect=new))
        write_all(
            known, [PageWrite(page=stays, row=row, action="renamed")], by=by, note=f"to {new}"
        )
    moved = PageWrite(page=replace(old, name=new), row=target, action="renamed")
    (written,) = write_all(known, [moved], by=by, note=f"from {name}")
    return _value(known.key, written)


def _refuse_taken(known: models.KnowledgeBase, taken: Row | None, old: Page) -> None:
    if taken is None:
        return
    page = _value(known.key, taken)
    if page.meta.redirect != old.name:
        raise StoreError(
            f"there is a page '{page.name}' in knowledge base '{known.key}' already; rename or"
            " remove it first"
        )


def _title_row(known: models.KnowledgeBase, name: PageName) -> Row:
    row = title_row(known.pk, name)
    if row is None:
        raise NotStoredError(f"page of knowledge base '{known.key}'", name.full)
    return row


def _value(base: str, row: Row) -> Page:
    return page_value(row, base=base, revision=row.revision)
