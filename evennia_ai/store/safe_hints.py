"""Safe hints: what of a restricted base's hint may be told, its own pages being looked at.

The pages that have the most of the hint's words are asked for, whatever the size of the base: the
one that the hint was copied from is among them, and so are those whose titles stand in it.
"""

from typing import Final

from evennia_ai.errors import EvenniaAIError
from evennia_ai.knowledge.pages.pages import BaseInfo
from evennia_ai.knowledge.restricted.safe_metadata import safe_hint
from evennia_ai.store.knowledge_backend import DatabaseBackend
from evennia_ai.store.knowledge_bases import base
from evennia_ai.store.snapshots import Snapshots
from evennia_ai.store.state import KNOWLEDGE

MOST_PAGES: Final = 20


def safe_hint_of(key: str) -> str:
    """The hint of a base without what its pages say; "" for none. Warm, without a query."""
    return _hints.read(key)


def _load(key: str) -> str:
    info = base(key)
    if info is None or not info.hint:
        return ""
    if info.backend != "database":  # a page elsewhere is not there at once
        return safe_hint(info.hint)
    return _compared(info)


def _compared(info: BaseInfo) -> str:
    """The hint beside the pages; where they cannot be read there is none."""
    try:
        hits = DatabaseBackend(info.key).search(info.hint, limit=MOST_PAGES)
    except EvenniaAIError:
        return ""
    pages = [hit.page for hit in hits]
    titles = {name for page in pages for name in (page.name.title, *page.meta.aliases)}
    return safe_hint(info.hint, titles=titles, texts=[page.body for page in pages])


_hints: Final = Snapshots(KNOWLEDGE, _load)
