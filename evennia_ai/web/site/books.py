"""The list of lorebooks, and the page with the entries of one book."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse

from evennia_ai.formats.lorebooks.entry_fields import TYPED_FIELDS
from evennia_ai.npc.mind import npc_list
from evennia_ai.npc.mind.viewers import viewer_of
from evennia_ai.npc.views.books import SeenEntry, see_book
from evennia_ai.npc.views.parse_cache import attached_book
from evennia_ai.store.authored import lorebooks
from evennia_ai.web.site.book_editing import edit_ticked, get_visible_book
from evennia_ai.web.site.kept import make_or_foresee
from evennia_ai.web.site.lore_turns import newest_lore_verdicts, usual_npc, verdict_item
from evennia_ai.web.site.page import Page, name_of, scopes_in_words

PAGE_ENTRIES: Final = 50
SHOWN: Final[Mapping[str, tuple[str, Callable[[SeenEntry], bool]]]] = {
    "": ("all", lambda entry: True),
    "on": ("on", lambda entry: entry.enabled),
    "off": ("off", lambda entry: not entry.enabled),
    "constant": ("constant", lambda entry: entry.enabled and entry.constant),
    "keys": ("activated by keys", lambda entry: entry.enabled and not entry.constant),
}
"""The filters of the page by key: the words that it shows, and the test of an entry."""
AWAKE: Final = "awake"
"""The filter for entries that were in the newest prompt."""


class BooksPage(Page):
    """`/ai/lore/`: the lorebooks that the viewer may see."""

    template = "evennia_ai/books.html"
    section = "lore"

    def page_values(self) -> dict[str, Any]:
        may_view = viewer_of(self.request.user).may_view
        attached = {
            name: lorebooks.LOREBOOKS.assigned_to(name) for name in lorebooks.LOREBOOKS.list_keys()
        }
        names = npc_list.object_names([one.ref for scopes in attached.values() for one in scopes])
        return {
            "books": [
                {
                    "name": name,
                    "revision": book.revision,
                    "attached": scopes_in_words(attached[name], names),
                }
                for name in attached
                if may_view((book := lorebooks.get_book(name)).locks)
            ]
        }


class BookPage(Page):
    """`/ai/lore/<book>/`: the entries of one book that the viewer may see."""

    template = "evennia_ai/book.html"
    section = "lore"

    def page_values(self, name: str) -> dict[str, Any]:
        stored = get_visible_book(self, name)
        viewer, locks = viewer_of(self.request.user), lorebooks.entry_locks(name)
        book = see_book(stored, attached_book(stored), viewer, locks=locks)
        wanted = self.request.GET.get("find", "")[:80]
        shown = self.request.GET.get("show", "")
        newest = _newest(name, book.entries, self.request.user)
        found = [entry for entry in book.entries if not wanted or entry.contains(wanted)]
        if shown == AWAKE:
            found = [entry for entry in found if entry.uid in newest["awake"]]
        else:
            shown = shown if shown in SHOWN else ""
            found = [entry for entry in found if SHOWN[shown][1](entry)]
        page, pages = self.requested_page(len(found), PAGE_ENTRIES)
        here = tuple(found[(page - 1) * PAGE_ENTRIES : page * PAGE_ENTRIES])
        on = [entry for entry in book.entries if entry.enabled]
        return {
            "book": replace(book, entries=here),
            "find": wanted,
            "show": shown,
            "page": page,
            "pages": pages,
            "count": len(found),
            "totals": {
                "entries": len(book.entries),
                "on": len(on),
                "constant": sum(entry.constant for entry in on),
                "tokens": sum(entry.tokens for entry in on),
            },
            "newest": {**newest, "awake": len(newest["awake"])},
            "revisions": [
                {
                    "number": change.number,
                    "action": change.action,
                    "by": change.changed_by,
                    "at": change.changed_at,
                }
                for change in list(reversed(lorebooks.LOREBOOKS.revisions(name)))[:20]
            ],
        }

    def html_values(self, told: Mapping[str, Any]) -> dict[str, Any]:
        words = {key: name for key, (name, _) in SHOWN.items()}
        if told["newest"]["npc"]:
            words[AWAKE] = f"active in the newest turn of {told['newest']['npc']}"
        return {
            "words": ["order", *TYPED_FIELDS],
            "filters": [
                {"key": key, "name": name, "is_on": key == told["show"]}
                for key, name in words.items()
            ],
        }

    def post(self, request: HttpRequest, name: str) -> HttpResponseBase:
        """Change all entries that are ticked, or say which kept answers that would change."""
        foreseen = make_or_foresee(self, partial(edit_ticked, self, name))
        if foreseen is not None:
            ticked = set(request.POST.getlist("entry"))
            told = {**self.page_values(name), "foreseen": foreseen, "ticked": ticked}
            return self.render_values(told)
        return HttpResponseRedirect(reverse("evennia_ai:book", kwargs={"name": name}))


def _newest(name: str, seen: Sequence[SeenEntry], account: Any) -> dict[str, Any]:
    """Return what the page shows of the newest turn of the NPC that usually uses the lorebook.

    `awake` has the tokens of each entry that was in the prompt of this turn, by uid. `turn` is None
    if the account may see no turn of this NPC.
    """
    ref = usual_npc(name)
    newest = newest_lore_verdicts(account, ref, 1) if ref else {}
    if not newest:
        return {"ref": ref, "npc": "", "turn": None, "awake": {}, "tokens": 0}
    ((number, by_item),) = newest.items()
    last = {item: told[-1] for item, told in by_item.items()}
    kept = {item: told.tokens or 0 for item, told in last.items() if told.kept}
    own = verdict_item(name, "")
    uids = {entry.uid for entry in seen} if kept else set()
    awake = {
        uid: tokens
        for item, tokens in kept.items()
        if item.startswith(own) and (uid := item.removeprefix(own)) in uids
    }
    return {
        "ref": ref,
        "npc": name_of(ref),
        "turn": number,
        "awake": awake,
        "tokens": sum(awake.values()),
    }
