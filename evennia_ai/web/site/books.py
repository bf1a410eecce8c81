"""Lorebooks: which there are, and the entries of one, a page of them at a time."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from django.http import HttpRequest, HttpResponseBase

from evennia_ai.lorebook.book import Lorebook
from evennia_ai.lorebook.entry import LoreEntry
from evennia_ai.lorebook.formats.entry_fields import TYPED_FIELDS
from evennia_ai.minds.parse_cache import attached_book
from evennia_ai.store.authored import lorebooks
from evennia_ai.web.site.book_editing import book_seen, edit_ticked
from evennia_ai.web.site.door import door
from evennia_ai.web.site.page import Page

PAGE_ENTRIES: Final = 50


class BooksPage(Page):
    """`/ai/lore/`: the books that may be seen."""

    template = "evennia_ai/books.html"

    def told(self) -> dict[str, Any]:
        may_view = door().viewer_of(self.request.user).may_view
        return {
            "books": [
                {
                    "name": name,
                    "revision": book.revision,
                    "attached": [
                        f"{scope.kind} {scope.ref}".strip() for scope in lorebooks.attachments(name)
                    ],
                }
                for name in lorebooks.book_names()
                if may_view((book := lorebooks.get_book(name)).locks)
            ]
        }


class BookPage(Page):
    """`/ai/lore/<book>/`: the entries of one book that may be seen."""

    template = "evennia_ai/book.html"

    def told(self, name: str) -> dict[str, Any]:
        may_view = door().viewer_of(self.request.user).may_view
        stored = book_seen(self, name)
        locks = lorebooks.entry_locks(name)
        book = attached_book(stored)
        wanted = self.request.GET.get("find", "")[:80]
        seen = [e for e in book.entries if may_view(locks.get(e.uid, ""))]
        found = [entry for entry in seen if _has(entry, wanted.casefold())]
        page, pages = self.paged(len(found), PAGE_ENTRIES)
        return {
            "book": name,
            "revision": stored.revision,
            "mode": book.mode,
            "find": wanted,
            "page": page,
            "pages": pages,
            "count": len(found),
            "hidden": len(book.entries) - len(seen),
            "totals": _totals(book),
            "entries": list(_entries(found[(page - 1) * PAGE_ENTRIES : page * PAGE_ENTRIES])),
            "revisions": [
                {
                    "number": change.number,
                    "action": change.action,
                    "by": change.changed_by,
                    "at": change.changed_at,
                }
                for change in list(reversed(lorebooks.book_revisions(name)))[:20]
            ],
        }

    def beside(self, told: Mapping[str, Any]) -> dict[str, Any]:
        return {"words": ["order", *TYPED_FIELDS]}

    def post(self, request: HttpRequest, name: str) -> HttpResponseBase:
        """Edit all entries that are ticked."""
        return edit_ticked(self, name)


def _has(entry: LoreEntry, wanted: str) -> bool:
    texts = (entry.name, entry.uid, entry.template.source, *entry.keys, *entry.secondary_keys)
    return any(wanted in text.casefold() for text in texts)


def _totals(book: Lorebook) -> dict[str, int]:
    return {
        "entries": len(book.entries),
        "on": sum(entry.enabled for entry in book.entries),
        "constant": sum(entry.constant and entry.enabled for entry in book.entries),
    }


def _entries(entries: list[LoreEntry]) -> Iterator[dict[str, Any]]:
    for entry in entries:
        yield {
            "uid": entry.uid,
            "name": entry.name,
            "keys": list(entry.keys),
            "secondary_keys": list(entry.secondary_keys) if entry.selective else [],
            "logic": entry.logic,
            "on": entry.enabled,
            "constant": entry.constant,
            "position": entry.position,
            "depth": entry.depth,
            "order": entry.order,
            "text": entry.template.source,
        }
