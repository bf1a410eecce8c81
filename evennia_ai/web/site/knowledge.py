"""Pages about knowledge bases: the list, the titles of a base, searches, and one knowledge page.

Only pages in the game's own database are shown; for another base, the page says where it is kept.
No page except the vault shows texts of a restricted base.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from django.http import HttpRequest, HttpResponseBase

from evennia_ai.engine.errors import FormatError, NotStoredError
from evennia_ai.engine.knowledge.pages.markup import write_page
from evennia_ai.engine.knowledge.pages.page import NAMESPACES, BaseInfo, Namespace, Page, page_name
from evennia_ai.npc.mind import npc_list
from evennia_ai.npc.mind.viewers import viewer_of
from evennia_ai.npc.views.drafting import may_see_draft
from evennia_ai.npc.views.withheld.pages import STORED, HiddenPages
from evennia_ai.npc.views.withheld.viewer import Viewer
from evennia_ai.store.knowledge import knowledge_bases, page_drafts, pages
from evennia_ai.store.knowledge.backend import DatabaseBackend
from evennia_ai.store.knowledge.page_drafts import StoredDraft
from evennia_ai.web.site import page as site
from evennia_ai.web.site import running_game
from evennia_ai.web.site.differing import text_differences
from evennia_ai.web.site.page import find_npc_ref, name_of, scopes_in_words

PAGE_TITLES: Final = 50
MOST_HITS: Final = 10
MOST_TYPED: Final = 400
MOST_REVISIONS: Final = 30


def get_visible_base(viewer: Viewer, key: str) -> BaseInfo:
    """Return the knowledge base with this key.

    Raises:
        NotStoredError: There is no such base, or the viewer may not see it.
    """
    info = knowledge_bases.base_or_none(key)
    if info is None or not viewer.may_view(info.locks):
        raise NotStoredError("knowledge base", key)
    return info


def shows_texts(info: BaseInfo) -> bool:
    """True if web pages may show the texts of a knowledge base.

    The base must be stored in this game and must not be restricted.
    """
    return info.backend == STORED and not info.restricted


class BasesPage(site.Page):
    """`/ai/kb/`: the knowledge bases that the viewer may see, and the drafts that wait."""

    template = "evennia_ai/bases.html"
    section = "knowledge"

    def page_values(self) -> dict[str, Any]:
        viewer = viewer_of(self.request.user)
        seen = [info for info in knowledge_bases.list_bases() if viewer.may_view(info.locks)]
        names = _names_of_places(seen)
        return {
            "bases": [_base(info, names) for info in seen],
            "drafts": [draft for info in seen for draft in _drafts(viewer, info)],
        }


class BasePage(site.Page):
    """`/ai/kb/<key>/`: what is known about a knowledge base, the titles of its pages, and a search.

    The search as an NPC is a POST. In a base that is searched by meaning, it may ask a model to
    embed pages that have no embedding yet.
    """

    template = "evennia_ai/base.html"
    section = "knowledge"

    def page_values(self, key: str) -> dict[str, Any]:
        viewer = viewer_of(self.request.user)
        info = get_visible_base(viewer, key)
        space = self.request.GET.get("namespace", "Main")
        namespace: Namespace = next((one for one in NAMESPACES if one == space), "Main")
        part = self.request.GET.get("find", "")[:MOST_TYPED]
        titles = _titles(viewer, info, namespace, part) if info.backend == STORED else []
        page, count = self.requested_page(len(titles), PAGE_TITLES)
        words = self.request.GET.get("words", "")[:MOST_TYPED].strip()
        return {
            "key": info.key,
            "name": info.name,
            "summary": info.summary,
            "topics": list(info.topics),
            "restricted": info.restricted,
            "tells_texts": shows_texts(info),
            "elsewhere": "" if info.backend == STORED else info.backend,
            "assigned_to": scopes_in_words(
                knowledge_bases.assigned_to(key), _names_of_places([info])
            ),
            "namespaces": list(NAMESPACES),
            "namespace": namespace,
            "find": part,
            "page": page,
            "pages": count,
            "count": len(titles),
            "titles": titles[(page - 1) * PAGE_TITLES : page * PAGE_TITLES],
            "words": words,
            "hits": _hits(viewer, info, words) if words and shows_texts(info) else [],
            "as_npc": None,
            "drafts": _drafts(viewer, info),
        }

    def post(self, request: HttpRequest, key: str) -> HttpResponseBase:
        """Show what the NPC in the field `npc` finds with the words in the field `words`."""
        told = self.page_values(key)
        words = request.POST.get("words", "")[:MOST_TYPED].strip()
        if not words:
            raise FormatError("form", "there are no words to search for; type some")
        npc = find_npc_ref(request.POST.get("npc", ""))
        found = running_game.search_as(npc, key, words)
        hidden = HiddenPages(viewer_of(request.user))
        as_npc = {
            "ref": npc,
            "name": name_of(npc),
            "words": words,
            "may_search": found.may_search,
            "guards": found.guards,
            "count": len(found.passages),
            "passages": [
                {"title": one.title, "score": one.score, "text": one.content}
                for one in found.passages
                if shows_texts(knowledge_bases.get_base(key)) and not hidden.covers(key, one.title)
            ],
        }
        return self.render_values({**told, "as_npc": as_npc})


class PageOfBase(site.Page):
    """`/ai/kb/<key>/page/<title>/`: one knowledge page. `?revision=n` shows what revision n
    changed.
    """

    template = "evennia_ai/page_of_base.html"
    section = "knowledge"

    def page_values(self, key: str, title: str) -> dict[str, Any]:
        viewer = viewer_of(self.request.user)
        info = get_visible_base(viewer, key)
        name = page_name(title)
        hidden = HiddenPages(viewer)
        if not shows_texts(info) or hidden.covers(key, title):
            raise NotStoredError(
                f"page that you may read here in knowledge base '{key}' with the title", title
            )
        page = pages.page_or_none(key, name, follow=False)
        changes = pages.page_revisions(key, name)
        if page is None and not changes:
            raise NotStoredError(f"page in knowledge base '{key}' with the title", title)
        return {
            "key": key,
            "title": name.full,
            "is_there": page is not None,
            "revision": page.revision if page else "",
            "text": write_page(page) if page else "",
            "links": [link.full for link in page.links] if page else [],
            "linked_from": [
                one.full
                for one in pages.pages_linking_to(key, name)
                if not hidden.covers(key, one.full)
            ],
            **self._change(viewer, key, name.full),
            "revisions": [
                {
                    "number": one.number,
                    "action": one.action,
                    "by": one.changed_by,
                    "at": one.changed_at,
                    "note": one.note,
                }
                for one in list(reversed(changes))[:MOST_REVISIONS]
            ],
        }

    def _change(self, viewer: Viewer, key: str, title: str) -> dict[str, Any]:
        """Return what the revision in `?revision=n` changed."""
        text = self.request.GET.get("revision", "")
        if not text.isdecimal() or len(text) > 9:
            return {"shown_revision": None, "difference": []}
        name, number = page_name(title), int(text)
        numbers = [one.number for one in pages.page_revisions(key, name)]
        older = max((one for one in numbers if one < number), default=0)
        before, after = (pages.page_at_revision(key, name, one) for one in (older, number))
        if number not in numbers or not all(
            viewer.may_view(one.locks) for one in (before, after) if one is not None
        ):
            raise NotStoredError(f"page '{title}' with revision", text)
        return {
            "shown_revision": number,
            "difference": text_differences(_text(before), _text(after)),
        }


def _base(info: BaseInfo, names: Mapping[str, str]) -> dict[str, Any]:
    return {
        "key": info.key,
        "name": info.name,
        "pages": info.pages if info.backend == STORED else None,
        "elsewhere": "" if info.backend == STORED else info.backend,
        "restricted": info.restricted,
        "assigned_to": scopes_in_words(knowledge_bases.assigned_to(info.key), names),
    }


def _names_of_places(infos: Iterable[BaseInfo]) -> Mapping[str, str]:
    """Return the names of the objects to which these knowledge bases are assigned.

    This makes one query.
    """
    places = (scope for info in infos for scope in knowledge_bases.assigned_to(info.key))
    return npc_list.object_names([scope.ref for scope in places])


def _titles(viewer: Viewer, info: BaseInfo, namespace: Namespace, part: str) -> list[str]:
    hidden, wanted = HiddenPages(viewer), part.casefold()
    found = [name.full for name in pages.list_pages(info.key, namespace) if wanted in name.folded]
    if not hidden.may_cover([info.key]):
        return found
    return [title for title in found if not hidden.covers(info.key, title)]


def _hits(viewer: Viewer, info: BaseInfo, words: str) -> list[dict[str, Any]]:
    hidden = HiddenPages(viewer)
    return [
        {"title": hit.page.name.full, "score": hit.score, "text": hit.passage}
        for hit in DatabaseBackend(info.key).search(words, limit=MOST_HITS)
        if not hidden.covers(info.key, hit.page.name.full)
    ]


def _drafts(viewer: Viewer, info: BaseInfo) -> list[dict[str, Any]]:
    return [draft_row(one) for one in visible_waiting_drafts(viewer, info)]


def visible_waiting_drafts(viewer: Viewer, info: BaseInfo) -> Iterator[StoredDraft]:
    """Yield the drafts of a knowledge base that wait for a decision and that the viewer may see."""
    waiting = page_drafts.waiting_drafts(info.key) if shows_texts(info) else ()
    if waiting:
        now = pages.pages_named(info.key, [one.draft.page.name for one in waiting])
        for one, page in zip(waiting, now, strict=True):
            if may_see_draft(viewer, one, page):
                yield one


def draft_row(found: StoredDraft) -> dict[str, Any]:
    """Return the values of a draft for one line of a list."""
    return {
        "number": found.number,
        "base": found.base,
        "title": found.draft.page.name.full,
        "is_new": not found.draft.was,
        "by": found.draft.by.name,
        "at": found.made_at,
        "state": found.state,
        "decided_by": found.decided_by,
    }


def _text(page: Page | None) -> str:
    return "" if page is None else write_page(page)
