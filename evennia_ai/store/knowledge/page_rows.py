"""Rows of pages: their columns, their revisions, and lookups by name. Only for use in the store.

The tables of pages, revisions and drafts share columns. Revisions stay when a page or its base is
removed. A page that is created again continues the numbers of its revisions.

A name is looked up among titles first and then among aliases. Then one redirect is followed. If a
redirect leads to a missing page, the redirect itself is returned, so that the reader sees where it
leads.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from django.db.models import Max

from evennia_ai import models
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import ComponentValueError
from evennia_ai.engine.history.records import make_storable
from evennia_ai.engine.knowledge.pages.markup import MAX_META, MAX_TEXT, find_links
from evennia_ai.engine.knowledge.pages.page import (
    MetaError,
    Page,
    PageName,
    alias_names,
    meta_values,
    parse_meta,
)
from evennia_ai.store.core.authoring import Revisions, check_locks

WRITTEN: Final = ("namespace", "title", "body", "meta", "locks")
"""The columns with what an author writes."""

Named = tuple[str, str]
"""The key by which a page is looked up: its namespace and its folded title."""
# The most names in one query, because databases limit the number of parameters.
MOST_NAMES: Final = 500
REVISIONS: Final = Revisions(models.KnowledgePageRevision)
Row = models.KnowledgePage


def written_columns(page: Page) -> dict[str, Any]:
    """Return what an author wrote of a page, as columns."""
    return {
        "namespace": page.name.namespace,
        "title": page.name.title,
        "body": page.body,
        "meta": _meta_text(page),
        "locks": page.locks,
    }


def page_columns(page: Page) -> dict[str, Any]:
    """Return a page as the columns of its row, without the revision."""
    return {
        **written_columns(page),
        "folded": page.name.folded,
        "aliases": "\n".join(alias.title for alias in alias_names(page.meta, page.name)),
        "sha256": page.sha256,
        "characters": len(page.body),
    }


def page_value(row: Any, *, base: str, revision: int | str) -> Page:
    """Return the page that a row with these columns contains."""
    name = PageName(namespace=row.namespace, title=row.title)
    return Page(
        name=name,
        body=row.body,
        meta=parse_meta(json.loads(row.meta or "{}"), name),
        links=find_links(row.body),
        base=base,
        revision=str(revision),
        locks=row.locks,
    )


def check_page(page: Page) -> None:
    """Check that a page can be stored.

    Raises:
        ComponentValueError: it is too long, or has characters or metadata that cannot be stored.
    """
    what = f"page '{page.name}'"
    if len(page.body) > MAX_TEXT:
        raise ComponentValueError(f"text of {what}", page.body, f"at most {MAX_TEXT} characters")
    if make_storable(page.body) != page.body:
        raise ComponentValueError(f"text of {what}", page.body, "without null characters")
    check_locks(page.locks)
    meta = _meta_text(page)
    if len(meta) > MAX_META or make_storable(meta) != meta:
        wanted = f"at most {MAX_META} characters that can be stored"
        raise ComponentValueError(f"metadata of {what}", meta, wanted)
    _check_meta(page, meta)


def _check_meta(page: Page, text: str) -> None:
    """Check that metadata does not change when it is stored and read again.

    Raises:
        ComponentValueError: it would change.
    """
    try:
        same = parse_meta(json.loads(text), page.name) == page.meta
    except MetaError as error:
        raise ComponentValueError(f"metadata of page '{page.name}'", text, str(error)) from error
    if not same:
        wanted = "texts without blanks around them, each once, and no known field among the others"
        raise ComponentValueError(f"metadata of page '{page.name}'", text, wanted)


def _meta_text(page: Page) -> str:
    values = meta_values(page.meta, page.name)
    return json.dumps(values, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def named(name: PageName) -> Named:
    """Return the key by which a page with this name is looked up."""
    return name.namespace, name.folded


def newest_numbers(base: str, names: Iterable[Named]) -> dict[Named, int]:
    """Return the newest revision number of each of these names that ever had a revision."""
    found: dict[Named, int] = {}
    for namespace, titles in batches(names):
        rows = models.KnowledgePageRevision.objects.filter(
            base_key=base, namespace=namespace, folded__in=titles
        )
        newest = rows.values_list("folded").annotate(Max("number")).order_by()
        found.update({(namespace, title): number for title, number in newest})
    return found


def batches(names: Iterable[Named]) -> Iterator[tuple[str, list[str]]]:
    """Yield the names of one namespace after the other, in batches that fit into a query.

    The indexes of pages begin with base and namespace. A query without both would read a whole
    base.
    """
    for namespace, group in groupby(sorted(set(names)), key=itemgetter(0)):
        titles = [folded for _, folded in group]
        for start in range(0, len(titles), MOST_NAMES):
            yield namespace, titles[start : start + MOST_NAMES]


def last_changed_by(base: str, name: PageName) -> str:
    """Return the name of the person who made the newest change of a page."""
    return REVISIONS.last_changed_by(**key_of(base, name))


def refuse_locked_pages(
    base: models.KnowledgeBase, doing: str, *, by: Actor, rows: Iterable[Row] | None = None
) -> None:
    """Check that the locks of these pages allow seeing and changing them.

    If `rows` is None, all pages of the base are checked. The error does not name the page, because
    the person may not be allowed to know that it exists.

    Raises:
        NotPermittedError: a lock forbids it.
    """
    if rows is None:
        stored = Row.objects.filter(base=base).exclude(locks="")
        locks = set(stored.values_list("locks", flat=True).distinct())
    else:
        locks = {row.locks for row in rows}
    by.check_locks(doing, f"a page of knowledge base '{base.key}' that this would change", locks)


def record_changes(
    base: str,
    changed: Iterable[tuple[models.KnowledgePage, str]],
    *,
    by: Actor,
    note: str,
) -> None:
    """Store revisions of changed pages inside the transaction of the change.

    Each has its action.

    For a removal, the revision of the row is that of the removal.
    """
    REVISIONS.write_all(
        (
            {
                "base_key": base,
                "folded": row.folded,
                "number": row.revision,
                "action": action,
                "note": note,
                **(_ends(row) if action == "removed" else _stays(row)),
            }
            for row, action in changed
        ),
        by=by,
    )


def record_removal_of_all(base: models.KnowledgeBase, *, by: Actor) -> None:
    """Store that every page of a knowledge base was removed.

    Call this in the transaction that removes the pages.
    """
    rows = models.KnowledgePage.objects.filter(base=base)
    gone = []
    for row in rows.only("namespace", "title", "folded", "revision").iterator():
        row.revision += 1
        # The locks are kept, because a later base with the same key must not reveal the pages.
        row.locks = base.locks
        gone.append((row, "removed"))
    record_changes(base.key, gone, by=by, note="")


def _stays(row: models.KnowledgePage) -> dict[str, Any]:
    return {column: getattr(row, column) for column in (*WRITTEN, "sha256")}


def _ends(row: models.KnowledgePage) -> dict[str, Any]:
    return {"namespace": row.namespace, "title": row.title, "locks": row.locks}


def key_of(base: str, name: PageName) -> dict[str, str]:
    """Return the columns that identify the revisions of a page."""
    return {"base_key": base, "namespace": name.namespace, "folded": name.folded}


def title_row(base_id: int, name: PageName) -> Row | None:
    """Return the row of the page with this title, in any case, or None."""
    return Row.objects.filter(base_id=base_id, namespace=name.namespace, folded=name.folded).first()


def title_rows(base_id: int, names: Iterable[PageName], *columns: str) -> dict[Named, Row]:
    """Return the rows of the pages with these titles, with all columns or some."""
    pages = Row.objects.filter(base_id=base_id).only(*columns)
    return {
        (namespace, row.folded): row
        for namespace, titles in batches(map(named, names))
        for row in pages.filter(namespace=namespace, folded__in=titles)
    }


def rows_named(
    base_id: int, names: Sequence[PageName], *columns: str, follow: bool = True
) -> list[Row | None]:
    """Return the row of each name's page, or None.

    Args:
        follow: True if one redirect is followed.
    """
    found = _titles_and_aliases(base_id, names, columns)
    if not follow:
        return [found.get(named(name)) for name in names]
    targets = {key: target for key, row in found.items() if (target := _target(row))}
    led = _titles_and_aliases(base_id, targets.values(), columns)
    for key, target in targets.items():
        found[key] = led.get(named(target), found[key])
    return [found.get(named(name)) for name in names]


def _titles_and_aliases(
    base_id: int, names: Collection[PageName], columns: Sequence[str]
) -> dict[Named, Row]:
    found = title_rows(base_id, names, *columns)
    missing = {named(name) for name in names} - found.keys()
    return found | _aliased(base_id, missing, columns) if missing else found


def _aliased(base_id: int, names: set[Named], columns: Sequence[str]) -> dict[Named, Row]:
    """Return the pages that have these aliases.

    If several pages share an alias, the first by title is returned.
    """
    aliases = models.KnowledgeAlias.objects.filter(base_id=base_id)
    owners = [
        ((namespace, folded), page)
        for namespace, titles in batches(names)
        for folded, page in aliases.filter(namespace=namespace, folded__in=titles).values_list(
            "folded", "page"
        )
    ]
    rows = _by_id({page for _, page in owners}, columns)
    owners.sort(key=lambda owner: (rows[owner[1]].namespace, rows[owner[1]].title))
    return {key: rows[page] for key, page in reversed(owners)}


def _by_id(ids: set[int], columns: Sequence[str]) -> dict[int, Row]:
    pages, ordered = Row.objects.only(*columns), sorted(ids)
    starts = range(0, len(ordered), MOST_NAMES)
    some = (ordered[start : start + MOST_NAMES] for start in starts)
    return {row.pk: row for batch in some for row in pages.filter(pk__in=batch)}


def _target(row: Row) -> PageName | None:
    if '"redirect"' not in row.meta:
        return None
    name = PageName(namespace=row.namespace, title=row.title)
    return parse_meta(json.loads(row.meta), name).redirect
