"""Pages as columns: what a row of a page holds, and the page that a row is.

The tables of pages, of their revisions and of drafts share these columns.
"""

import json
from typing import Any, Final

from evennia_ai.errors import ComponentValueError
from evennia_ai.history.records import storable
from evennia_ai.knowledge.pages.markup import MAX_META, MAX_TEXT, links_of
from evennia_ai.knowledge.pages.metadata import MetaError, alias_names, meta_of, values_of
from evennia_ai.knowledge.pages.pages import Page, PageName
from evennia_ai.store.checks import check_locks

WRITTEN: Final = ("namespace", "title", "body", "meta", "locks")
"""The columns that say what an author wrote."""


def written_columns(page: Page) -> dict[str, Any]:
    """What an author wrote, as columns.

    ComponentValueError: the page is too long, or holds what cannot be stored.
    """
    return {
        "namespace": page.name.namespace,
        "title": page.name.title,
        "body": page.body,
        "meta": _meta_text(page),
        "locks": page.locks,
    }


def page_columns(page: Page) -> dict[str, Any]:
    """A page as the columns of its row, but for its revision."""
    return {
        **written_columns(page),
        "folded": page.name.folded,
        "aliases": "\n".join(alias.title for alias in alias_names(page.meta, page.name)),
        "sha256": page.sha256,
        "characters": len(page.body),
    }


def page_value(row: Any, *, base: str, revision: int | str) -> Page:
    """The page that a row with these columns is."""
    name = PageName(namespace=row.namespace, title=row.title)
    return Page(
        name=name,
        body=row.body,
        meta=meta_of(json.loads(row.meta or "{}"), name),
        links=links_of(row.body),
        base=base,
        revision=str(revision),
        locks=row.locks,
    )


def check_page(page: Page) -> None:
    """ComponentValueError where a page is too long, or holds what cannot be stored."""
    what = f"page '{page.name}'"
    if len(page.body) > MAX_TEXT:
        raise ComponentValueError(f"text of {what}", page.body, f"at most {MAX_TEXT} characters")
    if storable(page.body) != page.body:
        raise ComponentValueError(f"text of {what}", page.body, "without null characters")
    check_locks(page.locks)
    meta = _meta_text(page)
    if len(meta) > MAX_META or storable(meta) != meta:
        wanted = f"at most {MAX_META} characters that can be stored"
        raise ComponentValueError(f"metadata of {what}", meta, wanted)
    _check_meta(page, meta)


def _check_meta(page: Page, text: str) -> None:
    """Refuse metadata that would be read as something else than was given."""
    try:
        same = meta_of(json.loads(text), page.name) == page.meta
    except MetaError as error:
        raise ComponentValueError(f"metadata of page '{page.name}'", text, str(error)) from error
    if not same:
        wanted = "texts without blanks around them, each once, and no known field among the others"
        raise ComponentValueError(f"metadata of page '{page.name}'", text, wanted)


def _meta_text(page: Page) -> str:
    values = values_of(page.meta, page.name)
    return json.dumps(values, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
