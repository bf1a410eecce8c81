"""Which pages the locks of knowledge bases and pages hide from somebody who looks.

Of a page that is gone the locks count with which it, or its base, was removed; of a base that left
no word behind nobody but a superuser may see anything.
"""

from collections.abc import Iterable
from typing import Final

from evennia_ai.engine.knowledge.pages.page import BaseInfo, PageName, TitleError, page_name
from evennia_ai.npc.views.withheld.viewer import Viewer
from evennia_ai.store.knowledge import knowledge_bases, pages

STORED: Final = "database"
_NOBODY: Final = "view:superuser()"


class HiddenPages:
    """What of the game's knowledge bases may not be seen by somebody."""

    def __init__(self, viewer: Viewer) -> None:
        self._viewer = viewer
        self._bases: dict[str, bool] = {}
        self._pages: dict[tuple[str, str], bool] = {}
        self._locks_in: dict[str, bool] = {}

    @property
    def are_some(self) -> bool:
        """True if anything of the bases there are is hidden."""
        return any(
            self.covers_base(info.key) or not self._sees_all_of(info.key)
            for info in knowledge_bases.list_bases()
        )

    def may_cover(self, bases: Iterable[str]) -> bool:
        """True if a page of these bases may be hidden; false in most games, after a few queries."""
        infos = [knowledge_bases.base_or_none(key) for key in bases]
        if any(info is None or info.backend == "help" for info in infos):
            return True
        return self.are_some or pages.removed_with_locks()

    def covers_base(self, key: str) -> bool:
        """True if nothing of a base may be seen; so it is with one that there is not."""
        if key not in self._bases:
            info = knowledge_bases.base_or_none(key)
            self._bases[key] = not self._allows(_NOBODY if info is None else info.locks)
        return self._bases[key]

    def covers(self, base: str, title: str) -> bool:
        """True if a page may not be seen, as it is or as it was."""
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
        """Every lock that must let somebody see a page of the game's database."""
        changes = pages.page_revisions(base, name)
        removed = [one.locks for one in changes if one.action == "removed"]
        newest = [one.locks for one in reversed(changes) if one.action != "removed"][:1]
        now = pages.page_or_none(base, name) if is_there else None
        if now is not None:
            return [*removed, *newest, now.locks]
        left = pages.locks_in(base) if is_there else ()
        return [*removed, *newest, *left] if changes or is_there else [_NOBODY]

    def _sees_elsewhere(self, info: BaseInfo, name: PageName) -> bool:
        """True if a page may be seen that is not in our tables; a wiki's have no locks."""
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
