"""The switches of `kb` that change pages and hints: edit, rename, lock, remove, revert.

Each change knows the revision from which it was made. If another builder has changed the page
since, the command says so and overwrites nothing. A page is edited in Evennia's line editor, with
its metadata in front as in a file. The editor survives a reload and shows unsaved text when it is
left. A hint is what an NPC may reveal about a page. If it repeats protected words of its page, the
command warns the author but keeps it, because the author may want it so.
"""

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Any, Final

from evennia_ai.commands.base import BUILDER_LOCK, CommandError, Run, StrictCommand
from evennia_ai.commands.naming import checked_locks, counted_number
from evennia_ai.commands.screens import diffed
from evennia_ai.commands.setup.editor import EDITOR_KINDS, Edited, EditorKind, open_editor
from evennia_ai.commands.setup.knowledge import shown
from evennia_ai.commands.setup.knowledge.shown import (
    ACCESS,
    base_named,
    base_to_change,
    may_see,
    stored_base,
)
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.knowledge.pages.markup import read_page, write_page
from evennia_ai.engine.knowledge.pages.page import BaseInfo, Page, PageDraft, PageName, page_name
from evennia_ai.engine.knowledge.restricted.hinting import (
    HINTS_FIELD,
    MOST_HINT,
    page_hints,
    set_hints,
)
from evennia_ai.engine.knowledge.restricted.leaks import find_leak, protect_texts
from evennia_ai.engine.text.columns import wrap_hanging
from evennia_ai.engine.text.differences import diff_texts
from evennia_ai.npc.mind.viewers import lock_allows
from evennia_ai.store.knowledge import pages as store
from evennia_ai.store.knowledge.pages import PageRevision


def page_to_change(caller: Any, info: BaseInfo, name: PageName) -> Page | None:
    """Return the stored page, without following a redirect, or None if there is none.

    Raises:
        CommandError: A lock hides the page from `caller`, or its base is not in the database.
    """
    page = store.page_or_none(stored_base(info).key, name, follow=False)
    if page is not None and not may_see(caller, page):
        raise CommandError(
            f"You may not write {info.key}/{name}: it is hidden from you. Nothing was changed."
        )
    return page


PAGE: Final = "<base>/<page>"
_MOST_OF_A_PAGE: Final = 20


class KnowledgePages(StrictCommand):
    """The switches that change pages in the game's database, and their hints."""

    def edit(self) -> None:
        """Write the text of a page, which may be a new one, or open the editor on the page."""
        info, name = self._typed("edit", " [= <text>]")
        shown.refuse_change(self.caller, info)
        page = page_to_change(self.caller, info, name)
        if self.rhs is not None:
            self.refuse_empty(off="kb/remove")
            before = page or Page(base=info.key, name=name, body="")
            # Read it again, because the links of a page are found in its text.
            new = read_page(before.name, write_page(replace(before, body=self.rhs)))
            after = self._save(info, new, was=page.revision if page else "", note="")
            told = wrap_hanging(f"Saved {info.key}/{after.name} as revision {after.revision}.")
            self.show(diffed([*told, *diff_texts(before.body, self.rhs)]))
            return
        label = f"{info.key}/{page.name if page else name}"
        if page is None:
            self.say(f"{label} is new; it is created when you save.")
        edited = _edited(info.key, page, name)
        open_editor(self.caller, "page", edited, label=label)

    def rename(self) -> None:
        """Give a page another title. A redirect stays at the old one."""
        usage = f"kb/rename {PAGE} = <new title>"
        text, title = self.both(usage)
        info, page = self._page(text, usage)
        new = page_name(title, default=page.name.namespace)
        shown.refuse_change(self.caller, info)
        # Raises if a page that the caller may not see has the new title, without naming it.
        page_to_change(self.caller, info, new)
        after = store.rename_page(info.key, page.name, new, by=self.actor, was=page.revision)
        self.say(
            f"{info.key}/{page.name} is {info.key}/{after.name} now; the old title leads there."
        )

    def lock(self) -> Run:
        """Show or set the lock of a page. Ask first if the new lock would shut out the caller."""
        usage = f"kb/lock {PAGE} [= <lock string> | off]"
        info, page = self._page(self.wanted(usage), usage)
        before = page.locks or "none"
        if self.rhs is None:
            self.say(f"{info.key}/{page.name}: lock: {before}.")
            return None
        locks = self._new_locks(usage)
        if not lock_allows(self.caller, locks, "view"):
            return self._lock_after_yes(info, page, locks)
        self._lock(info, page, locks)
        return None

    def remove_page(self, text: str) -> None:
        """Remove the page that was typed."""
        info, page = self._page(text, f"kb/remove {PAGE}")
        shown.refuse_change(self.caller, info)
        store.remove_page(info.key, page.name, was=page.revision, by=self.actor)
        self.say(
            f"Removed {info.key}/{page.name};"
            f" kb/revert {info.key}/{page.name} = {page.revision} brings it back."
        )

    def revisions(self) -> None:
        """Show who changed a page. With a number, show what that revision changed."""
        info, name = self._typed("revisions", " [= <revision>]")
        page_to_change(self.caller, info, name)
        changes = store.page_revisions(info.key, name)
        if not changes or not self._may_see_past(info, name):
            raise CommandError(f"There are no revisions of {info.key}/{name}.")
        if self.rhs is None:
            self.show(shown.history_of(f"{info.key}/{name}", changes))
            return
        number = counted_number(self.rhs, what="revision")
        then = self.then(info, name, number)
        older = next((one.number for one in reversed(changes) if one.number < number), 0)
        before = store.page_at_revision(shown.stored_base(info).key, name, older)
        if before is not None and not self._sees(before):
            raise CommandError(
                f"You may not see what revision {number} changed: its lock hides it."
            )
        told = list(diff_texts(_text(before), write_page(then))) or ["Nothing is different."]
        self.show(
            [*wrap_hanging(f"{info.key}/{name}, what revision {number} changed:"), *diffed(told)]
        )

    def revert(self) -> Run:
        """Revert a page to a revision, after a question. A removed page comes back."""
        usage = f"kb/revert {PAGE} = <revision>"
        text, value = self.both(usage)
        info, name = shown.page_typed(self.caller, text, usage=usage)
        number = counted_number(value, what="revision")
        shown.refuse_change(self.caller, info)
        now = page_to_change(self.caller, info, name)
        then = self.then(info, name, number)
        back = replace(then, locks=now.locks if now else then.locks)
        return self._revert_after_yes(info, now, back, number)

    def _revert_after_yes(
        self, info: BaseInfo, was: Page | None, back: Page, number: int
    ) -> Generator[str, Any, None]:
        name = back.name
        changes = list(diff_texts(_text(was), write_page(back)))
        what = f"{info.key}/{name}"
        if not (yield from self.goes_back(what, number, changes=changes)):
            return
        note = f"as in revision {number}"
        after = self._save(info, back, was=was.revision if was else "", note=note)
        self.say(
            f"{info.key}/{after.name} is what it was at revision {number}; this is revision"
            f" {after.revision}."
        )

    def then(self, info: BaseInfo, name: PageName, number: int) -> Page:
        """Return the page as it was at a revision, if the caller may also see its later locks."""
        page = store.page_at_revision(shown.stored_base(info).key, name, number)
        if page is None or not self._may_see_past(info, name) or not self._sees(page):
            raise CommandError(
                f"There is no text of {info.key}/{name} at revision {number}; kb/revisions"
                f" {info.key}/{name} lists them."
            )
        return page

    def _sees(self, page: Page) -> bool:
        return shown.may_see(self.caller, page)

    def _may_see_past(self, info: BaseInfo, name: PageName) -> bool:
        """True if the newest lock and every lock at a removal let the caller see the page."""
        changes = store.page_revisions(info.key, name)
        locks = [change.locks for change in changes if change.action == "removed"]
        return all(lock_allows(self.caller, lock, "view") for lock in (*locks, _newest(changes)))

    def _typed(self, switch: str, value: str = "") -> tuple[BaseInfo, PageName]:
        usage = f"kb/{switch} {PAGE}{value}"
        return shown.page_typed(self.caller, self.wanted(usage), usage=usage)

    def _page(self, text: str, usage: str) -> tuple[BaseInfo, Page]:
        """Return the page to change. CommandError if it does not exist."""
        info, name = shown.page_typed(self.caller, text, usage=usage)
        page = page_to_change(self.caller, info, name)
        if page is None:
            raise CommandError(
                f"Knowledge base '{info.key}' has no page '{name}'; kb/pages {info.key} lists"
                " them. Nothing was changed."
            )
        return info, page

    def _lock_after_yes(self, info: BaseInfo, page: Page, locks: str) -> Generator[str, Any, None]:
        label = f"{info.key}/{page.name}"
        question = f"With the lock {locks} you could no longer see {label} or undo this."
        if (yield from self.agreed(f"{question} Set it?")):
            self._lock(info, page, locks)
        else:
            self.say(f"The lock of {label} stays; nothing was changed.")

    def _lock(self, info: BaseInfo, page: Page, locks: str) -> None:
        after = self._save(info, replace(page, locks=locks), was=page.revision, note="lock")
        out = "" if lock_allows(self.caller, locks, "view") else " You can no longer see it."
        before, now = page.locks or "none", after.locks or "none"
        self.say(f"{info.key}/{page.name}: lock before: {before}; now: {now}.{out}")

    def _new_locks(self, usage: str) -> str:
        if not self.rhs:
            raise CommandError(f"Usage: {usage}")
        if self.rhs.lower() == "off":
            return ""
        return checked_locks(self.caller, self.rhs, access=shown.ACCESS, thing="page")

    def _save(self, info: BaseInfo, page: Page, *, was: str, note: str) -> Page:
        shown.refuse_change(self.caller, info)
        draft = PageDraft(page=page, was=was, by=self.actor, note=note)
        return store.save_page(info.key, draft)

    def hints(self) -> None:
        usage = f"kb/hints <base> or kb/hints {PAGE} [= <hint>]"
        text = self.wanted(usage)
        if "/" not in text:
            self.refuse_value()
            self._list(shown.base_named(self.caller, text))
            return
        info, page = self._page(text, usage)
        if self.rhs is None:
            self.show(_lines(info, [page]))
            return
        self._add(info, page, " ".join(self.rhs.split()))

    def remove_hint(self) -> None:
        usage = f"kb/hints/remove {PAGE} = <number>"
        text, value = self.both(usage)
        info, page = self._page(text, usage)
        before, number = page_hints(page), counted_number(value, what="number of a hint")
        if number > len(before):
            raise CommandError(
                f"{info.key}/{page.name} has {len(before)} hints; kb/hints {info.key}/{page.name}"
                " lists them. Nothing was changed."
            )
        kept = (*before[: number - 1], *before[number:])
        self._keep(info, page, kept)
        self.say(f"{info.key}/{page.name}: removed the hint '{before[number - 1]}'.")

    def _add(self, info: BaseInfo, page: Page, hint: str) -> None:
        before = page_hints(page)
        if not 0 < len(hint) <= MOST_HINT:
            raise CommandError(f"A hint has 1 to {MOST_HINT} characters. Nothing was changed.")
        if len(before) >= _MOST_OF_A_PAGE:
            raise CommandError(f"A page has {_MOST_OF_A_PAGE} hints at most. Nothing was changed.")
        if hint in before:
            self.say(f"{info.key}/{page.name} has this hint already; nothing was changed.")
            return
        self._keep(info, page, (*before, hint))
        self.say(f"{info.key}/{page.name}: hint {len(before) + 1}: {hint}{_warning(page, hint)}")
        if info.mediation != "hints":
            self.say(
                f"NPCs get the hints of {info.key} only after kb/set {info.key}/mediation = hints."
            )

    def _keep(self, info: BaseInfo, page: Page, hints: tuple[str, ...]) -> None:
        fields = set_hints(page.meta.fields, hints)
        new = replace(page, meta=replace(page.meta, fields=fields))
        self._save(info, new, was=page.revision, note="hints")

    def _list(self, info: BaseInfo) -> None:
        found = store.pages_with_field(shown.stored_base(info).key, HINTS_FIELD)
        seen = [page for page in found if shown.may_see(self.caller, page)]
        self.show(_lines(info, seen))


def _text(page: Page | None) -> str:
    """Return a page as its author writes it, or "" if there is none."""
    return "" if page is None else write_page(page)


def _newest(changes: Sequence[PageRevision]) -> str:
    """Return the lock of the newest text."""
    return next((one.locks for one in reversed(changes) if one.action != "removed"), "")


def revision_typed(text: str) -> tuple[str, int | None]:
    """Split `<page>/<number>` into the page and the number, or None if it ends in no number."""
    head, slash, tail = text.rpartition("/")
    is_number = bool(slash) and tail.strip().isascii() and tail.strip().isdigit()
    return (head.strip(), int(tail)) if is_number and len(tail) < 10 else (text, None)


def _lines(info: BaseInfo, pages: list[Page]) -> list[str]:
    """Return the hints of pages, each with its number on its page."""
    lines = []
    for page in pages:
        hints = page_hints(page)
        lines += wrap_hanging(f"{info.key}/{page.name}:") if hints else []
        for number, hint in enumerate(hints, start=1):
            lines += wrap_hanging(f"  {number}  {hint}{_warning(page, hint)}")
    return lines or [f"There are no hints; kb/hints {info.key}/<page> = <hint> writes one."]


def _warning(page: Page, hint: str) -> str:
    """Return a warning if a hint repeats what its page says, else ""."""
    kind = find_leak(hint, protect_texts([page.body], titles=[page.name.title]))
    return f" (this repeats a {_KINDS[kind]} of the page)" if kind in _KINDS else ""


_KINDS: Final = {
    "words": "passage",
    "letters": "passage",
    "number": "number",
    "title": "title",
}


def _edited(base: str, page: Page | None, name: PageName) -> Edited:
    now, was = (page.name, page.revision) if page else (name, "")
    return {"base": base, "page": now.full, "was": was}


def _load(caller: Any, edited: Edited) -> str:
    page = page_to_change(caller, base_named(caller, edited["base"]), page_name(edited["page"]))
    return write_page(page) if page else ""


def _save(caller: Any, edited: Edited, text: str, by: Actor) -> tuple[Edited, str]:
    name = page_name(edited["page"])
    now = page_to_change(caller, base_to_change(caller, edited["base"]), name)
    page = read_page(name, text)
    if page.locks and page.locks != (now.locks if now else ""):
        checked_locks(caller, page.locks, access=ACCESS, thing="page")
    draft = PageDraft(page=page, was=edited["was"], by=by)
    saved = store.save_page(edited["base"], draft)
    told = f"Saved {saved.base}/{saved.name} as revision {saved.revision}."
    return _edited(edited["base"], saved, name), told


EDITOR_KINDS["page"] = EditorKind(_load, _save, BUILDER_LOCK.format(key="kb"))
