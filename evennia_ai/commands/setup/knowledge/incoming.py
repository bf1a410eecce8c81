"""The switches of `kb` that add pages: drafts and their approval, folders and their import.

A draft is usually written by a model. Nothing of it is in a knowledge base until a builder approves
it. An approved page is written by the base's own backend, which may be another machine. The
approval is stored only after the backend has written the page, so a failed write leaves the draft
waiting.

A folder to import is inside the folder that the settings name. The command reads all of it and
shows what would change before it writes. If one file is wrong, nothing is written.
"""

from collections.abc import Generator, Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Any, Final

from twisted.internet.defer import Deferred

from evennia_ai.commands.background_work import CardWork, Steps, waits
from evennia_ai.commands.base import CommandError, and_more, day_and_time
from evennia_ai.commands.naming import checked_locks, counted_number
from evennia_ai.commands.setup.knowledge import shown
from evennia_ai.engine.foreign.documents import Progress
from evennia_ai.engine.knowledge.pages.files import ImportProblems, PageFolder, read_folder
from evennia_ai.engine.knowledge.pages.markup import write_page
from evennia_ai.engine.knowledge.pages.page import BaseInfo, Page
from evennia_ai.engine.text.columns import WIDTH, clip_text, escape_controls, wrap_hanging
from evennia_ai.npc.knowledge.backends import as_deferred
from evennia_ai.npc.mind.guard_watch import record_guards_of
from evennia_ai.npc.mind.viewers import lock_allows, viewer_of
from evennia_ai.npc.runtime import runtime
from evennia_ai.npc.views.drafting import is_written, may_see_draft, page_to_write
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.knowledge import knowledge_bases, page_imports, pages
from evennia_ai.store.knowledge import page_drafts as store
from evennia_ai.store.knowledge.page_drafts import StoredDraft
from evennia_ai.store.knowledge.page_imports import FolderPlan

_MOST_DRAFTS: Final = 40
_MOST_LINES: Final = 200
# The numbers of drafts that are being written. A wiki can be slow, and a second `kb/approve` must
# not write the same draft again.
_being_written: Final[set[int]] = set()


class KnowledgeDrafts(CardWork):
    """The switches that show, approve and reject drafts."""

    @waits
    def drafts(self) -> Steps:
        infos = list(shown.visible_bases(self.caller))
        if self.lhs:
            infos = [shown.base_named(self.caller, self.lhs)]
        waiting: list[StoredDraft] = []
        for info in infos:
            waiting += yield from self._waiting_in(info)
        if not waiting:
            self.say("No draft is waiting.")
            return
        rows = [clip_text(_row(one), WIDTH) for one in waiting]
        head = "Drafts that wait; kb/draft <n> shows one:"
        self.show([head, *and_more(rows, most=_MOST_DRAFTS)])

    @waits
    def draft(self) -> Steps:
        found, info = self._draft("draft")
        now = yield from self._now(found, info)
        lines = [*_head(found), *_difference(now, found.draft.page)]
        if found.state == "waiting":
            number = found.number
            lines += [
                "",
                f"kb/approve {number} writes the page; kb/reject {number} drops the draft.",
            ]
        self.show(lines)

    @waits
    def approve(self) -> Steps:
        found, info = self._waiting("approve")
        if found.number in _being_written:
            raise CommandError(f"Draft {found.number} is being written already; wait for it.")
        _being_written.add(found.number)
        try:
            now = yield from self._written(found, info)
            store.decide_draft(found.number, approved=True, by=self.actor)
        finally:
            _being_written.discard(found.number)
        self.say(
            f"Approved draft {found.number}: {info.key}/{now.name} is written, revision"
            f" {now.revision}."
        )

    @waits
    def reject(self) -> Steps:
        found, info = self._waiting("reject")
        yield from self._now(found, info)
        store.decide_draft(found.number, approved=False, by=self.actor)
        self.say(f"Rejected draft {found.number} of {info.key}/{found.draft.page.name}.")

    def _written(self, found: StoredDraft, info: BaseInfo) -> Generator[Deferred[Any], Any, Page]:
        """Write the page of a draft.

        Fires with the page; one that is already written is not rewritten.
        """
        now = yield from self._now(found, info)
        if now is not None and is_written(found, now):
            return now
        draft = page_to_write(found, now, by=self.actor)
        page: Page = yield as_deferred(runtime().backends.of(info).write(draft))
        return page

    def _waiting_in(self, info: BaseInfo) -> Generator[Deferred[Any], Any, list[StoredDraft]]:
        """Return the waiting drafts of a knowledge base that the caller may see."""
        found = store.waiting_drafts(info.key)
        if not found:
            return []
        now = yield as_deferred(
            runtime().backends.of(info).fetch([one.draft.page.name for one in found])
        )
        return [one for one, page in zip(found, now, strict=True) if self._sees_draft(one, page)]

    def _draft(self, switch: str) -> tuple[StoredDraft, BaseInfo]:
        """Return the typed draft and its knowledge base, if the caller may see the base."""
        number = counted_number(self.wanted(f"kb/{switch} <number>"), what="number of a draft")
        found = store.draft_or_none(number)
        seen = {info.key: info for info in shown.visible_bases(self.caller)}
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
        shown.refuse_change(self.caller, info)
        return found, info

    def _now(
        self, found: StoredDraft, info: BaseInfo
    ) -> Generator[Deferred[Any], Any, Page | None]:
        """Return the page as it is now, or None if the draft would create it."""
        (page,) = yield as_deferred(runtime().backends.of(info).fetch([found.draft.page.name]))
        if not self._sees_draft(found, page):
            raise _no_draft(found.number)
        return page

    def _sees_draft(self, found: StoredDraft, now: Page | None) -> bool:
        """True if the caller may see a draft, the present page, and everything it was made from."""
        return may_see_draft(viewer_of(self.caller), found, now)


def _no_draft(number: int) -> CommandError:
    return CommandError(f"There is no draft {number}; kb/drafts lists those that wait.")


def _row(found: StoredDraft) -> str:
    page = f"{found.base}/{found.draft.page.name}"
    kind = "change of" if found.draft.was else "new page"
    row = f"{found.number:5}  {day_and_time(found.made_at)}  {kind} {page} by {found.draft.by}"
    return escape_controls(row)


def _head(found: StoredDraft) -> Iterator[str]:
    state = "waits" if found.state == "waiting" else f"{found.state} by {found.decided_by}"
    page = f"{found.base}/{found.draft.page.name}"
    yield from wrap_hanging(f"Draft {found.number} of {page}, {state}")
    yield from wrap_hanging(f"  by {found.draft.by}, {day_and_time(found.made_at)}")
    task, note = " ".join(found.task.split()), " ".join(found.draft.note.split())
    if task:
        yield from wrap_hanging(f"  task: {task}")
    # The note of the lorekeeper repeats the beginning of the task.
    if note and not task.startswith(note):
        yield from wrap_hanging(f"  note: {note}")


def _difference(now: Page | None, wanted: Page) -> list[str]:
    """Return the lines that the draft adds and removes."""
    before = write_page(now).splitlines() if now else []
    lines = list(unified_diff(before, write_page(wanted).splitlines(), "now", "draft", lineterm=""))
    if not lines:
        return ["  The page has this text already."]
    return and_more(lines, most=_MOST_LINES, more="and {} more lines")


MOST_WRITTEN: Final = 2000
"""The most pages that are imported in the game, which waits meanwhile. The command line has no such
limit."""
_MOST_FOLDERS: Final = 40
_MOST_NAMES: Final = 20
_USAGE: Final = "kb/import <folder> [= <base>]"


class KnowledgeFolder(CardWork):
    """The switches that import a folder into a knowledge base."""

    @waits
    def import_plan(self) -> Steps:
        if not self.lhs:
            self.show(_offered(conf().knowledge_folder))
            return
        plan = yield from self._planned()
        if plan is not None:
            self.show([*_plan_lines(plan), *_how_to_run(plan, self.args.strip())])

    @waits
    def import_run(self) -> Steps:
        self.wanted("kb/import/run <folder> [= <base>]")
        plan = yield from self._planned()
        if plan is None:
            return
        if plan.changes > MOST_WRITTEN:
            raise CommandError(
                f"These are {plan.changes} pages. At most {MOST_WRITTEN} are imported here,"
                " because the game waits meanwhile. On the command line, evennia-ai knowledge"
                " import has no limit. Nothing was imported."
            )
        page_imports.import_folder(plan, by=self.actor)
        record_guards_of(plan.info)
        self.show([*_plan_lines(plan), "Imported." if plan.changes else _NOTHING])

    def _planned(self) -> Generator[Deferred[Any], Any, FolderPlan | None]:
        """Return what importing the typed folder would do, or None after showing its problems."""
        if self.rhs is not None and not self.rhs:
            raise CommandError(f"Usage: {_USAGE}")
        path = _folder_named(conf().knowledge_folder, self.lhs)
        try:
            folder = yield self.worked(f"Reading {path.name}", _reading(path, self.rhs or ""))
        except ImportProblems as error:
            lines = [f"{escape_controls(path.name)}: nothing was imported, fix this first:"]
            problems = [escape_controls(f"  {problem}") for problem in error.problems]
            self.show([*lines, *and_more(problems, most=_MOST_NAMES)])
            return None
        self._refuse_hidden_base(folder.info.key)
        plan = page_imports.plan_folder(folder, folder_name=path.resolve().name)
        self._refuse_locks(plan)
        return plan

    def _refuse_hidden_base(self, key: str) -> None:
        known = knowledge_bases.base_or_none(key)
        locks = known.locks if known is not None else ""
        if not all(lock_allows(self.caller, locks, kind) for kind in shown.LOSABLE):
            raise CommandError(
                f"You may not import into '{key}'; give the base another key: {_USAGE}."
            )

    def _refuse_locks(self, plan: FolderPlan) -> None:
        """Raise CommandError if a lock is invalid, or hides a page to change from the caller."""
        touched = (*(page.name for page in plan.pages.changed), *plan.pages.gone)
        now = [] if plan.is_new else pages.pages_named(plan.info.key, touched)
        if not all(shown.may_see(self.caller, page) for page in now if page is not None):
            raise CommandError(
                f"Knowledge base '{plan.info.key}' has pages that you may not see, and this import"
                " would change them. Nothing was imported."
            )
        written = (*plan.pages.new, *plan.pages.changed)
        if plan.info.locks:
            checked_locks(
                self.caller, plan.info.locks, access=shown.BASE_ACCESS, thing="knowledge base"
            )
        for locks in sorted({page.locks for page in written} - {""}):
            checked_locks(self.caller, locks, access=shown.ACCESS, thing="page")


def _reading(path: Path, key: str) -> Any:
    def work(progress: Progress) -> PageFolder:
        progress("its files", 0, 1)
        return read_folder(path, key=key.lower())

    return work


_NOTHING: Final = "The knowledge base has all of this already; nothing was changed."


def _plan_lines(plan: FolderPlan) -> Iterator[str]:
    """Yield lines that say what an import does."""
    state = ", a new one" if plan.is_new else ""
    yield escape_controls(f"Knowledge base {plan.info.key}{state}:")
    told = {
        "new": [page.name.full for page in plan.pages.new],
        "changed": [page.name.full for page in plan.pages.changed],
        "not in the folder, kept": [name.full for name in plan.pages.gone],
        "fields of the base": list(plan.fields),
    }
    for kind, names in told.items():
        if names:
            yield f"  {kind}: {len(names)}"
            rows = [clip_text(escape_controls(f"    {name}"), WIDTH) for name in names]
            yield from and_more(rows, most=_MOST_NAMES, more="    and {} more")
    yield f"  unchanged: {len(plan.pages.same)}"


def _how_to_run(plan: FolderPlan, typed: str) -> list[str]:
    return (
        [f"Nothing was written. To import it: kb/import/run {typed}"]
        if plan.changes
        else [_NOTHING]
    )


def _folder_named(inside: Path, name: str) -> Path:
    """Return the folder `name` inside the folder for imports. CommandError for any other path."""
    plain = Path(name).name == name and name.isprintable() and "\\" not in name
    path = inside / name
    if not plain or not _is_folder(path):
        raise CommandError(f"There is no folder '{name}' to import; kb/import lists them.")
    if path.resolve().parent != inside.resolve():
        raise CommandError(f"'{name}' leads out of the folder for imports; nothing was imported.")
    return path


def _offered(inside: Path) -> list[str]:
    """Return lines that list the folders that can be imported."""
    found = sorted(escape_controls(path.name) for path in inside.glob("[!.]*") if _is_folder(path))
    if not found:
        return [f"There are no folders in {inside} (EVENNIA_AI_KNOWLEDGE_FOLDER)."]
    rows = [f"  {name}" for name in found]
    return [f"Folders in {inside}:", *and_more(rows, most=_MOST_FOLDERS)]


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    # The system refuses a name that is too long or has a null character.
    except (OSError, ValueError):
        return False
