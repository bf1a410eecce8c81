"""Pages about a whole lorebook: its lints, bulk edits, and its revisions with revert.

A bulk edit makes one revision: all ticked entries get the value, or none of them.
"""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse

from evennia_ai.engine.errors import FormatError, NotStoredError
from evennia_ai.formats.lorebooks.editing.comparing import book_differences
from evennia_ai.formats.lorebooks.editing.edits import change_entry
from evennia_ai.formats.lorebooks.editing.lints import lint_book
from evennia_ai.formats.lorebooks.editing.typed import (
    find_field,
    in_words_of,
    parse_number,
    parse_value,
)
from evennia_ai.npc.mind.viewers import viewer_of
from evennia_ai.npc.views.parse_cache import attached_book
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.authored import lorebooks
from evennia_ai.store.authored.components import shown_outlets
from evennia_ai.store.authored.life_cycle import Revision
from evennia_ai.store.authored.lorebooks import StoredBook
from evennia_ai.web.site.differing import difference_values
from evennia_ai.web.site.kept import make_or_foresee
from evennia_ai.web.site.page import Page, read_seen_revision

MOST_LINTS: Final = 200


def get_visible_book(page: Page, name: str) -> StoredBook:
    """Return the lorebook with this name.

    Raises:
        NotStoredError: There is no such book, or the viewer may not see it.
    """
    stored = lorebooks.get_book(name)
    if not viewer_of(page.request.user).may_view(stored.locks):
        raise NotStoredError("lorebook", name)
    return stored


def edit_ticked(page: Page, name: str) -> None:
    """Change all entries that are ticked in the form of a book's page, as one revision.

    Raises:
        FormatError, TypedError: A value is invalid, or no entry is ticked.
        NotStoredError: The viewer may not see the book or a ticked entry.
        EditConflictError: The book was changed since the form was shown.
    """
    form = page.request.POST
    stored, uids = get_visible_book(page, name), form.getlist("entry")
    locks = lorebooks.entry_locks(name)
    may_view = viewer_of(page.request.user).may_view
    if not all(may_view(locks.get(uid, "")) for uid in uids):
        raise NotStoredError(f"entry of lorebook '{name}' called", uids[0])
    if not uids:
        raise FormatError("form", "no entry is ticked; nothing was changed")
    seen, fields = read_seen_revision(form.get("seen", "")), _wanted(form)
    data: Any = json.loads(stored.source)
    for uid in uids:
        with in_words_of(f"entry {uid}"):
            data = change_entry(data, uid, fields)
    text = json.dumps(data, ensure_ascii=False)
    lorebooks.save_book(name, text, by=page.actor, seen_revision=seen)


def _wanted(form: Mapping[str, str]) -> dict[str, Any]:
    """Return the field and value of a bulk edit. `do` is the name of the pressed button."""
    do = form.get("do", "")
    if do in ("on", "off"):
        return {"enabled": do == "on"}
    word, text = form.get("field", "").strip(), form.get("value", "").strip()
    if do != "set" or not word or not text:
        raise FormatError("form", "no field and value to set were given; nothing was changed")
    if word == "order":
        return {"order": parse_number(text)}
    field = find_field(word)
    return {field.name: parse_value(field, text)}


class LintsPage(Page):
    """`/ai/lore/<book>/lints/`: problems in a book that its author should check."""

    template = "evennia_ai/lints.html"
    section = "lore"

    def page_values(self, name: str) -> dict[str, Any]:
        stored, given = get_visible_book(self, name), conf()
        locks = lorebooks.entry_locks(name)
        may_view = viewer_of(self.request.user).may_view
        found = [
            {"uid": lint.uid, "kind": lint.kind, "text": lint.text}
            for lint in lint_book(
                attached_book(stored),
                rules=given.lore,
                limit_tokens=given.limit_tokens,
                outlets=shown_outlets(),
                source=json.loads(stored.source),
            )
            if may_view(locks.get(lint.uid, ""))
        ]
        return {"book": name, "count": len(found), "lints": found[:MOST_LINTS]}


class BookRevisionPage(Page):
    """`/ai/lore/<book>/revision/<n>/`: what a revision changed. POST reverts the book to it."""

    template = "evennia_ai/book_revision.html"
    section = "lore"

    def page_values(self, name: str, number: int) -> dict[str, Any]:
        change = self._seen(name, number)
        before = lorebooks.LOREBOOKS.revision_before(name, number)
        now = lorebooks.get_book(name) if name in lorebooks.LOREBOOKS.list_keys() else None
        return {
            "book": name,
            "number": number,
            "action": change.action,
            "by": change.changed_by,
            "at": change.changed_at,
            "in_force": now.revision if now else None,
            "newest": lorebooks.LOREBOOKS.newest_number(name),
            **self._compared(name, number, "difference", _text(before), _text(change)),
            **self._compared(name, number, "back", now.source if now else None, _text(change)),
        }

    def post(self, request: HttpRequest, name: str, number: int) -> HttpResponseBase:
        """Revert the book to this revision.

        Raises:
            EditConflictError: The book was changed since the page was shown.
        """
        self._seen(name, number)
        seen = read_seen_revision(request.POST.get("seen", ""))
        revert = partial(
            lorebooks.LOREBOOKS.revert, name, number, by=self.actor, seen_revision=seen
        )
        foreseen = make_or_foresee(self, revert)
        if foreseen is not None:
            return self.render_values({**self.page_values(name, number), "foreseen": foreseen})
        return HttpResponseRedirect(reverse("evennia_ai:book", kwargs={"name": name}))

    def _seen(self, name: str, number: int) -> Revision[lorebooks.StoredBook]:
        change = lorebooks.LOREBOOKS.revision(name, number)
        lock, _ = lorebooks.LOREBOOKS.locks_of(name, number)
        if not viewer_of(self.request.user).may_view(lock):
            raise NotStoredError(f"lorebook '{name}' with revision", number)
        return change

    def _compared(
        self, name: str, number: int, what: str, before: str | None, after: str | None
    ) -> dict[str, Any]:
        """Return the differences of two texts without hidden entries; None if they are too long."""
        locks = {**lorebooks.LOREBOOKS.locks_of(name, number)[1]}
        may_view = viewer_of(self.request.user).may_view
        lines = book_differences(before, after, sees=lambda uid: may_view(locks.get(uid, "")))
        return {what: None if lines is None else difference_values(lines)}


def _text(revision: Revision[lorebooks.StoredBook] | None) -> str | None:
    """Return the text of an approved revision; None if there is none or it removed the book."""
    if revision is None or not revision.takes_effect:
        return None
    return lorebooks.LOREBOOKS.whole(revision.value).source
