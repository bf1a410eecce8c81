"""The switches of `kb` that change pages: edit, rename, lock, remove, and what was before.

Each change knows the revision it was made from. What somebody else changed meanwhile is told, and
nothing is overwritten.
"""

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any, Final

from evennia_ai.commands.numbered import counted_number
from evennia_ai.commands.setup import knowledge_named as named
from evennia_ai.commands.setup import knowledge_shown as shown
from evennia_ai.commands.setup.knowledge_bases import KnowledgeBases
from evennia_ai.commands.setup.knowledge_editor import open_editor, page_to_change
from evennia_ai.commands.setup.lore_locks import checked_locks
from evennia_ai.commands.strict import CommandError, Run
from evennia_ai.game.viewers import allows
from evennia_ai.knowledge.backends import Draft
from evennia_ai.knowledge.pages import BaseInfo, Page
from evennia_ai.knowledge.titles import PageName, page_name
from evennia_ai.store import pages as store
from evennia_ai.store.page_revisions import PageRevision

PAGE: Final = "<base>/<page>"


class KnowledgePages(KnowledgeBases):
    """Everything that changes a page in the game's database."""

    def edit(self) -> None:
        """Open the editor on a page."""
        self.refuse_value()
        info, name = self._typed("edit")
        named.refuse_change(self.caller, info)
        open_editor(self.caller, info, name, by=self.typed_by)

    def rename(self) -> None:
        """Give a page another title; a redirect stays where it was."""
        usage = f"kb/rename {PAGE} = <new title>"
        text, title = self.both(usage)
        info, page = self._page(text, usage)
        new = page_name(title, default=page.name.namespace)
        named.refuse_change(self.caller, info)
        page_to_change(self.caller, info, new)  # a page that is hidden there is not told of
        after = store.rename_page(info.key, page.name, new, by=self.typed_by)
        self.say(f"{info.key}/{page.name} is {info.key}/{after.name} now; a redirect leads there.")

    def lock(self) -> Run:
        """Show or set the lock of a page; one that hides it from who types it after a question."""
        usage = f"kb/lock {PAGE} [= <lock string> | off]"
        info, page = self._page(self.wanted(usage), usage)
        before = page.locks or "none"
        if self.rhs is None:
            self.say(f"{info.key}/{page.name}: lock: {before}.")
            return None
        locks = self._new_locks(usage)
        if not allows(self.caller, locks, "view"):
            return self._lock_after_yes(info, page, locks)
        self._lock(info, page, locks)
        return None

    def remove(self) -> Run:
        """Remove a page, or a whole base after a question."""
        self.refuse_value()
        text = self.wanted(f"kb/remove {PAGE} or kb/remove <base>")
        if "/" not in text:
            return self.remove_base(named.base_named(self.caller, text))
        info, page = self._page(text, f"kb/remove {PAGE}")
        named.refuse_change(self.caller, info)
        store.remove_page(info.key, page.name, was=page.revision, by=self.typed_by)
        self.say(
            f"Removed {info.key}/{page.name};"
            f" kb/revert {info.key}/{page.name} = {page.revision} brings it back."
        )
        return None

    def revisions(self) -> None:
        """Who changed a page, and when."""
        self.refuse_value()
        info, name = self._typed("revisions")
        page_to_change(self.caller, info, name)
        changes = store.revisions(info.key, name)
        if not changes or not self._may_see_past(info, name):
            raise CommandError(f"There are no revisions of {info.key}/{name}.")
        self.show("\n".join(shown.history_of(f"{info.key}/{name}", changes)))

    def revert(self) -> None:
        """Give a page the text it had at a revision; a removed one comes back."""
        usage = f"kb/revert {PAGE} = <revision>"
        text, value = self.both(usage)
        info, name = named.page_typed(self.caller, text, usage=usage)
        number = counted_number(value, what="revision")
        named.refuse_change(self.caller, info)
        now = page_to_change(self.caller, info, name)
        then = self.then(info, name, number)
        if now is not None and now.sha256 == then.sha256:
            self.say(f"{info.key}/{name} is so already; nothing was changed.")
            return
        back = replace(then, locks=now.locks if now else then.locks)
        note = f"as in revision {number}"
        after = self._save(info, back, was=now.revision if now else "", note=note)
        self.say(
            f"{info.key}/{after.name} is what it was at revision {number}; this is revision"
            f" {after.revision}."
        )

    def then(self, info: BaseInfo, name: PageName, number: int) -> Page:
        """The page as it was at a revision, where the caller may see what became of it too."""
        page = store.at_revision(named.stored_base(info).key, name, number)
        if page is None or not self._may_see_past(info, name) or not self._sees(page):
            raise CommandError(
                f"There is no text of {info.key}/{name} at revision {number};"
                f" kb/revisions {info.key}/{name} lists those there are."
            )
        return page

    def _sees(self, page: Page) -> bool:
        return named.may_see(self.caller, page)

    def _may_see_past(self, info: BaseInfo, name: PageName) -> bool:
        """Whether the newest lock of a page, and each one it was removed with, lets the caller."""
        changes = store.revisions(info.key, name)
        locks = [change.locks for change in changes if change.action == "removed"]
        return all(allows(self.caller, lock, "view") for lock in (*locks, _newest(changes)))

    def _typed(self, switch: str) -> tuple[BaseInfo, PageName]:
        usage = f"kb/{switch} {PAGE}"
        return named.page_typed(self.caller, self.wanted(usage), usage=usage)

    def _page(self, text: str, usage: str) -> tuple[BaseInfo, Page]:
        """The page that is to be changed, which is there."""
        info, name = named.page_typed(self.caller, text, usage=usage)
        page = page_to_change(self.caller, info, name)
        if page is None:
            raise CommandError(
                f"Knowledge base '{info.key}' has no page '{name}'; kb/pages {info.key} lists"
                " those there are. Nothing was changed."
            )
        return info, page

    def _lock_after_yes(self, info: BaseInfo, page: Page, locks: str) -> Generator[str, Any, None]:
        label = f"{info.key}/{page.name}"
        question = f"With the lock {locks} you could not see {label} any more, nor take that back."
        if (yield from self.agreed(f"{question} Set it?")):
            self._lock(info, page, locks)
        else:
            self.say(f"The lock of {label} stays; nothing was changed.")

    def _lock(self, info: BaseInfo, page: Page, locks: str) -> None:
        after = self._save(info, replace(page, locks=locks), was=page.revision, note="lock")
        out = "" if allows(self.caller, locks, "view") else " You may not see it any more."
        before, now = page.locks or "none", after.locks or "none"
        self.say(f"{info.key}/{page.name}: lock before: {before}; now: {now}.{out}")

    def _new_locks(self, usage: str) -> str:
        if not self.rhs:
            raise CommandError(f"Usage: {usage}")
        if self.rhs.lower() == "off":
            return ""
        return checked_locks(self.caller, self.rhs, access=named.ACCESS, thing="page")

    def _save(self, info: BaseInfo, page: Page, *, was: str, note: str) -> Page:
        named.refuse_change(self.caller, info)
        draft = Draft(page=page, was=was, by=self.typed_by, note=note)
        return store.save_page(info.key, draft)


def _newest(changes: Sequence[PageRevision]) -> str:
    """The lock of the newest text."""
    return next((one.locks for one in reversed(changes) if one.action != "removed"), "")


def revision_typed(text: str) -> tuple[str, int | None]:
    """`<page>/<number>` as the page and the number, None where the end is no number."""
    head, slash, tail = text.rpartition("/")
    is_number = bool(slash) and tail.strip().isascii() and tail.strip().isdigit()
    return (head.strip(), int(tail)) if is_number and len(tail) < 10 else (text, None)
