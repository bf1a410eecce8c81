"""Looking pages up by their names: titles first, then aliases, then one redirect.

For the store alone: what is found here are rows. A redirect to a page that is not there is itself
what is found, so that whoever asks sees where it leads.
"""

import json
from collections.abc import Collection, Iterable, Sequence

from evennia_ai import models
from evennia_ai.knowledge.pages.metadata import meta_of
from evennia_ai.knowledge.pages.pages import PageName
from evennia_ai.store.page_revisions import MOST_NAMES, Named, batches, named

Row = models.KnowledgePage


def title_row(base_id: int, name: PageName) -> Row | None:
    """The row of the page that has this very title, however it is written."""
    return Row.objects.filter(base_id=base_id, namespace=name.namespace, folded=name.folded).first()


def title_rows(base_id: int, names: Iterable[PageName], *columns: str) -> dict[Named, Row]:
    """The rows of the pages that have these titles; with `columns` alone, where some are named."""
    pages = Row.objects.filter(base_id=base_id).only(*columns)
    return {
        (namespace, row.folded): row
        for namespace, titles in batches(map(named, names))
        for row in pages.filter(namespace=namespace, folded__in=titles)
    }


def rows_named(
    base_id: int, names: Sequence[PageName], *columns: str, follow: bool = True
) -> list[Row | None]:
    """For each name the row of its page, None where there is none.

    `follow` follows one redirect.
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
    """The pages that have these aliases; of several with one alias the first by its title."""
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
    return meta_of(json.loads(row.meta), name).redirect
