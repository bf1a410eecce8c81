"""The switches of `kb` about drafts: pages somebody, mostly a model, wants to write, and approval.

Nothing of a draft is in a knowledge base before a builder approved it. What is approved is written
by the base's own backend, which may be another machine; the decision is stored when it has said
that the page is written, so a write that fails leaves the draft waiting.
"""

from collections.abc import Generator, Iterator
from dataclasses import replace
from difflib import unified_diff
from typing import Any, Final

from twisted.internet.defer import Deferred

from evennia_ai.commands.background_work import Steps, waits
from evennia_ai.commands.naming import counted_number
from evennia_ai.commands.setup.knowledge import named
from evennia_ai.commands.setup.knowledge.pages import KnowledgeHints
from evennia_ai.commands.shown import day_and_time
from evennia_ai.commands.strict import CommandError
from evennia_ai.game.knowledge.backends import later
from evennia_ai.game.mind.viewers import viewer_of
from evennia_ai.game.runtime import runtime
from evennia_ai.knowledge.pages.markup import write_page
from evennia_ai.knowledge.pages.page import BaseInfo, Page, PageDraft
from evennia_ai.minds.seer import may_see_package
from evennia_ai.store.knowledge import page_drafts as store
from evennia_ai.store.knowledge.page_drafts import StoredDraft
from evennia_ai.text.columns import WIDTH, clipped, hanging, visible

_MOST_DRAFTS: Final = 40
_MOST_LINES: Final = 200
# A wiki may take its time, and a builder may type it again meanwhile.
_being_written: Final[set[int]] = set()


class KnowledgeDrafts(KnowledgeHints):
    """Everything between a draft and a page."""

    @waits
    def drafts(self) -> Steps:
        """List the drafts that wait."""
        self.refuse_value()
        infos = list(named.visible_bases(self.caller))
        if self.lhs:
            infos = [named.base_named(self.caller, self.lhs)]
        waiting: list[StoredDraft] = []
        for info in infos:
            waiting += yield from self._waiting_in(info)
        if not waiting:
            self.say("No draft waits.")
            return
        lines = ["Drafts that wait; kb/draft <n> shows one:"]
        lines += [clipped(_row(one), WIDTH) for one in waiting[:_MOST_DRAFTS]]
        if len(waiting) > _MOST_DRAFTS:
            lines.append(f"  and {len(waiting) - _MOST_DRAFTS} more")
        self.show("\n".join(lines))

    @waits
    def draft(self) -> Steps:
        """Show what a draft would change."""
        self.refuse_value()
        found, info = self._draft("draft")
        now = yield from self._now(found, info)
        lines = [*_head(found), *_difference(now, found.draft.page)]
        if found.state == "waiting":
            lines += [
                "",
                f"kb/approve {found.number} writes it; kb/refuse {found.number} does not.",
            ]
        self.show("\n".join(lines))

    @waits
    def approve(self) -> Steps:
        """Write a draft into its base."""
        self.refuse_value()
        found, info = self._waiting("approve")
        if found.number in _being_written:
            raise CommandError(f"Draft {found.number} is being written already; wait for it.")
        _being_written.add(found.number)
        try:
            now = yield from self._written(found, info)
            store.decide(found.number, approved=True, by=self.typed_by)
        finally:
            _being_written.discard(found.number)
        self.say(
            f"Approved draft {found.number}: {info.key}/{now.name} is written, revision"
            f" {now.revision}."
        )

    @waits
    def refuse(self) -> Steps:
        """Let a draft never be written."""
        self.refuse_value()
        found, info = self._waiting("refuse")
        yield from self._now(found, info)
        store.decide(found.number, approved=False, by=self.typed_by)
        self.say(f"Refused draft {found.number} of {info.key}/{found.draft.page.name}.")

    def _written(self, found: StoredDraft, info: BaseInfo) -> Generator[Deferred[Any], Any, Page]:
        """The page that a draft has become."""
        now = yield from self._now(found, info)
        # Who writes drafts decides about no locks of pages that are there.
        wanted = replace(found.draft.page, locks=now.locks) if now else found.draft.page
        if now is not None and now.sha256 == wanted.sha256:
            return now  # it was written, and what was decided could not be stored
        self._refuse_stale(found, now)
        note = f"draft {found.number}"
        draft = PageDraft(page=wanted, was=found.draft.was, by=self.typed_by, note=note)
        page: Page = yield later(runtime().backends.of(info).write(draft))
        return page

    def _waiting_in(self, info: BaseInfo) -> Generator[Deferred[Any], Any, list[StoredDraft]]:
        """The drafts of a base that wait, but for those of pages that are hidden."""
        found = store.waiting(info.key)
        if not found:
            return []
        now = yield later(runtime().backends.of(info).fetch([one.draft.page.name for one in found]))
        return [one for one, page in zip(found, now, strict=True) if self._sees_draft(one, page)]

    def _draft(self, switch: str) -> tuple[StoredDraft, BaseInfo]:
        """The draft of this number, whose base and page the caller may see."""
        number = counted_number(self.wanted(f"kb/{switch} <number>"), what="number of a draft")
        found = store.draft(number)
        seen = {info.key: info for info in named.visible_bases(self.caller)}
        if found is None or found.base not in seen:
            raise _no_draft(number)
        return found, seen[found.base]

    def _waiting(self, switch: str) -> tuple[StoredDraft, BaseInfo]:
        found, info = self._draft(switch)
        if found.state != "waiting":
            raise CommandError(
                f"Draft {found.number} was {found.state} by {found.decided_by} already."
                " Nothing was changed."
            )
        named.refuse_change(self.caller, info)
        return found, info

    def _now(
        self, found: StoredDraft, info: BaseInfo
    ) -> Generator[Deferred[Any], Any, Page | None]:
        """The page as it is now, None where it is new."""
        (page,) = yield later(runtime().backends.of(info).fetch([found.draft.page.name]))
        if not self._sees_draft(found, page):
            raise _no_draft(found.number)
        return page

    def _sees_draft(self, found: StoredDraft, now: Page | None) -> bool:
        """Whether the caller may see a draft, the page as it is, and all it was made from."""
        pages = (found.draft.page, *([now] if now else []))
        is_open = all(named.may_see(self.caller, page) for page in pages)
        return is_open and may_see_package(viewer_of(self.caller), found.context_meta)

    def _refuse_stale(self, found: StoredDraft, now: Page | None) -> None:
        if (now.revision if now else "") != found.draft.was:
            state = f"revision {now.revision} by now" if now else "gone by now"
            raise CommandError(
                f"Draft {found.number} was written from revision {found.draft.was or 'none'} of"
                f" {found.base}/{found.draft.page.name}, which is {state}. Nothing was written:"
                f" take what is good of it over with kb/edit, then kb/refuse {found.number}."
            )


def _no_draft(number: int) -> CommandError:
    return CommandError(f"There is no draft {number}; kb/drafts lists those that wait.")


def _row(found: StoredDraft) -> str:
    page = f"{found.base}/{found.draft.page.name}"
    kind = "change of" if found.draft.was else "new page"
    row = f"{found.number:5}  {day_and_time(found.made_at)}  {kind} {page} by {found.draft.by}"
    return visible(row)


def _head(found: StoredDraft) -> Iterator[str]:
    state = "waits" if found.state == "waiting" else f"{found.state} by {found.decided_by}"
    page = f"{found.base}/{found.draft.page.name}"
    yield from hanging(f"Draft {found.number} of {page}, {state}")
    yield from hanging(f"  by {found.draft.by}, {day_and_time(found.made_at)}")
    task, note = " ".join(found.task.split()), " ".join(found.draft.note.split())
    if task:
        yield from hanging(f"  task: {task}")
    if note and not task.startswith(note):  # the lorekeeper's note is how the task begins
        yield from hanging(f"  note: {note}")


def _difference(now: Page | None, wanted: Page) -> list[str]:
    """The lines that the draft adds and takes away."""
    before = write_page(now).splitlines() if now else []
    lines = list(unified_diff(before, write_page(wanted).splitlines(), "now", "draft", lineterm=""))
    if not lines:
        return ["  The page says this already."]
    more = [f"and {len(lines) - _MOST_LINES} more lines"] if len(lines) > _MOST_LINES else []
    return [*lines[:_MOST_LINES], *more]
