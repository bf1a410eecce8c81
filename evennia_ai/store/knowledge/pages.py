"""Pages of a knowledge base in the game's own database: read, written, renamed, and linked.

Two builders who edit one page: the second is told, nothing is overwritten in silence. A lock is
kept as it is given; whom it lets in is for who asks.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from evennia_ai import models
from evennia_ai.errors import NotStoredError, StoreError
from evennia_ai.knowledge.backends import PageDraft
from evennia_ai.knowledge.pages.page import Namespace, Page, PageMeta, PageName
from evennia_ai.store.core.revisions import Change
from evennia_ai.store.core.state import KNOWLEDGE, changing
from evennia_ai.store.knowledge.knowledge_bases import base_id, base_row
from evennia_ai.store.knowledge.page_rows import (
    MOST_NAMES,
    REVISIONS,
    Row,
    key_of,
    named,
    page_value,
    rows_named,
    title_row,
)
from evennia_ai.store.knowledge.page_writing import (
    PageWrite,
    is_same,
    own_base,
    refuse_stale,
    remove_all,
    write_all,
)

_CHANGE: Final = ("number", "action", "changed_by", "changed_at", "note", "sha256", "locks")


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRevision(Change):
    """One change of a page, without its text: created, updated, removed or renamed."""

    name: PageName
    note: str
    sha256: str
    """That of the page after it, "" for a removal."""
    locks: str = ""
    """Those of the page, or, where it was removed with its base, those of the base."""


def page(base: str, name: PageName, *, follow: bool = True) -> Page | None:
    """The page of this name, None where there is none; `follow` follows one redirect.

    A title wins over an alias. A redirect to a page that is not there is itself the answer.
    NotStoredError: there is no such base.
    """
    (row,) = rows_named(base_id(base), [name], follow=follow)
    return _value(base, row) if row else None


def pages_named(base: str, names: Sequence[PageName]) -> tuple[Page | None, ...]:
    """The pages of these names as `page` finds them, in a few queries however many there are."""
    rows = rows_named(base_id(base), names)
    return tuple(_value(base, row) if row else None for row in rows)


def listed(base: str, namespace: Namespace, *, prefix: str = "") -> tuple[PageName, ...]:
    """The pages of a namespace whose titles begin so, in any case, by their titles."""
    rows = Row.objects.filter(base_id=base_id(base), namespace=namespace)
    titles = rows.filter(folded__startswith=prefix.casefold()).values_list("title", flat=True)
    return tuple(PageName(namespace=namespace, title=title) for title in sorted(titles))


def linking(base: str, names: Sequence[PageName]) -> tuple[tuple[PageName, ...], ...]:
    """For each of these pages the pages it links to, in its order; nothing where there is none."""
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


def linking_to(base: str, name: PageName) -> tuple[PageName, ...]:
    """The pages that link to a page or require it, by their names."""
    links = models.KnowledgeLink.objects.filter(
        base_id=base_id(base), namespace=name.namespace, folded=name.folded
    )
    found = links.values_list("page__namespace", "page__title")
    return tuple(sorted({PageName(namespace=space, title=title) for space, title in found}))


def all_pages(base: str, *, most_characters: int) -> tuple[Page, ...] | None:
    """All pages of a base by their names, None where they have more characters than that."""
    if base_row(base).characters > most_characters:
        return None
    rows = Row.objects.filter(base_id=base_id(base))
    return tuple(sorted((_value(base, row) for row in rows), key=lambda one: one.name))


def with_field(base: str, field: str) -> tuple[Page, ...]:
    """The pages of a base whose metadata have a field that is kept as it is, by their names."""
    rows = Row.objects.filter(base_id=base_id(base), meta__contains=f"{json.dumps(field)}:")
    found = [page for row in rows if field in (page := _value(base, row)).meta.fields]
    return tuple(sorted(found, key=lambda page: page.name))


def locks_in(base: str) -> tuple[str, ...]:
    """The different locks that pages of a base have."""
    rows = Row.objects.filter(base_id=base_id(base)).exclude(locks="")
    return tuple(rows.order_by("locks").values_list("locks", flat=True).distinct())


def save_page(base: str, draft: PageDraft) -> Page:
    """Write a page; the same again changes nothing.

    PageConflictError: the page has another revision than `draft.was` by now; it says who changed
    it. NotStoredError: there is no such base. ComponentValueError: the page cannot be stored.
    """
    name = draft.page.name
    with changing(KNOWLEDGE, f"saving page '{name}'"):
        known = own_base(base)
        row = title_row(known.pk, name)
        refuse_stale(base, name, row, draft.was)
        if row is None or not is_same(row, draft.page):
            change = PageWrite(page=draft.page, row=row)
            (row,) = write_all(known, [change], by=draft.by, note=draft.note)
        return _value(base, row)


def remove_page(base: str, name: PageName, *, was: str, by: str) -> None:
    """Remove a page; its revisions stay.

    PageConflictError: it has another revision than `was` by now. NotStoredError: there is no such
    page; an alias or a redirect to it is none.
    """
    with changing(KNOWLEDGE, f"removing page '{name}'"):
        known = own_base(base)
        row = _title_row(known, name)
        refuse_stale(base, name, row, was)
        remove_all(known, [row], by=by)


def rename_page(base: str, name: PageName, new: PageName, *, by: str) -> Page:
    """Give a page another name and leave a redirect; its talk page goes with it.

    A redirect to the page that has the new name gives way. NotStoredError: there is no such page.
    StoreError: another page has the new name.
    """
    with changing(KNOWLEDGE, f"renaming page '{name}'"):
        known = own_base(base)
        moved = _renamed(known, name, new, by=by)
        talked = title_row(known.pk, name.talk)
        if name.talk != name and talked and title_row(known.pk, new.talk) is None:
            _renamed(known, name.talk, new.talk, by=by)
        return moved


def revisions(base: str, name: PageName) -> tuple[PageRevision, ...]:
    """All changes of a page, oldest first; also of one that was removed."""
    rows = REVISIONS.of(**key_of(base, name)).values("namespace", "title", *_CHANGE)
    return tuple(
        PageRevision(
            name=PageName(namespace=row["namespace"], title=row["title"]),
            **{column: row[column] for column in _CHANGE},
        )
        for row in rows
    )


def at_revision(base: str, name: PageName, number: int) -> Page | None:
    """The page as it was after a change, None where it removed the page or never was."""
    rows = REVISIONS.of(**key_of(base, name)).filter(number=number)
    row = rows.exclude(action="removed").first()
    return page_value(row, base=base, revision=number) if row else None


def removed_with_locks() -> bool:
    """Whether any page, or its base, had a lock when it was removed."""
    rows = models.KnowledgePageRevision.objects.filter(action="removed")
    return bool(rows.exclude(locks="").exists())


def _renamed(known: models.KnowledgeBase, name: PageName, new: PageName, *, by: str) -> Page:
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
