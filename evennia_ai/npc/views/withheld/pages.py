"""Which knowledge pages are hidden from a viewer by the locks of bases and pages.

For a deleted page, the locks at its deletion still apply. Pages of a base of which nothing is left
are visible only to superusers.
"""

from collections.abc import Iterable
from typing import Final

from evennia_ai.engine.knowledge.pages.page import BaseInfo, PageName, TitleError, page_name
from evennia_ai.npc.views.withheld.viewer import Viewer
from evennia_ai.store.knowledge import knowledge_bases, pages

STORED: Final = "database"
_NOBODY: Final = "view:superuser()"


class HiddenPages:
    """Decides which knowledge pages are hidden from one viewer."""

    def __init__(self, viewer: Viewer) -> None:
        self._viewer = viewer
        self._bases: dict[str, bool] = {}
        self._pages: dict[tuple[str, str], bool] = {}
        self._locks_in: dict[str, bool] = {}

    @property
    def are_some(self) -> bool:
        """True if any base or page that exists is hidden from the viewer."""
        return any(
            self.covers_base(info.key) or not self._sees_all_of(info.key)
            for info in knowledge_bases.list_bases()
        )

    def may_cover(self, bases: Iterable[str]) -> bool:
        """True if a page of these knowledge bases may be hidden from the viewer.

        It is false in most games, and then needs only a few queries.
        """
        infos = [knowledge_bases.base_or_none(key) for key in bases]
        if any(info is None or info.backend == "help" for info in infos):
            return True
        return self.are_some or pages.removed_with_locks()

    def covers_base(self, key: str) -> bool:
        """True if the viewer may see nothing of the knowledge base, or if it does not exist."""
        if key not in self._bases:
            info = knowledge_bases.base_or_none(key)
            self._bases[key] = not self._allows(_NOBODY if info is None else info.locks)
        return self._bases[key]

    def covers(self, base: str, title: str) -> bool:
        """True if the viewer may not see the page. Locks of its removed revisions count too."""
        if (base, title) not in self._pages:
            self._pages[base, title] = not self._sees(base, title)
        return self._pages[base, title]

    def _sees(self, base: str, title: str) -> bool:
        info = knowledge_bases.base_or_none(base)
        if info is not None and not self._allows(info.locks):
            return False
        try:
            name = page_name(title)
        except TitleError:
            return self._allows(_NOBODY)
        if info is not None and info.backend != STORED:
            return self._sees_elsewhere(info, name)
        return all(map(self._allows, self._locks_of(base, name, is_there=info is not None)))

    def _locks_of(self, base: str, name: PageName, *, is_there: bool) -> list[str]:
        """Return all locks that must allow the viewer to see a page in the database."""
        changes = pages.page_revisions(base, name)
        removed = [one.locks for one in changes if one.action == "removed"]
        newest = [one.locks for one in reversed(changes) if one.action != "removed"][:1]
        now = pages.page_or_none(base, name) if is_there else None
        if now is not None:
            return [*removed, *newest, now.locks]
        left = pages.locks_in(base) if is_there else ()
        return [*removed, *newest, *left] if changes or is_there else [_NOBODY]

    def _sees_elsewhere(self, info: BaseInfo, name: PageName) -> bool:
        """True if the viewer may see a page that is not in our tables. Wiki pages have no locks."""
        if info.backend != "help":
            return True
        page = self._viewer.help_page(info.key, name)
        return self._allows(_NOBODY if page is None else page.locks)

    def _sees_all_of(self, base: str) -> bool:
        if base not in self._locks_in:
            info = knowledge_bases.base_or_none(base)
            stored = info is not None and info.backend == STORED
            locks = pages.locks_in(base) if stored else ()
            self._locks_in[base] = all(map(self._allows, locks))
        return self._locks_in[base]

    def _allows(self, locks: str) -> bool:
        return self._viewer.may_view(locks)
