"""The switches of `kb` that import a folder of pages: first what it would change, then do it.

A name is only ever that of a folder in the one that the settings name, and a folder is read whole
before anything is written: one wrong file, and nothing is.
"""

from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from twisted.internet.defer import Deferred

from evennia_ai.commands.background_work import CardWork, Steps, waits
from evennia_ai.commands.locks import checked_locks
from evennia_ai.commands.setup.knowledge import named
from evennia_ai.commands.strict import CommandError
from evennia_ai.foreign.documents import Progress
from evennia_ai.game.mind.overview import look_at_all
from evennia_ai.game.mind.viewers import allows
from evennia_ai.knowledge.pages.files import ImportProblems, PageFolder, read_folder
from evennia_ai.settings.conf import conf
from evennia_ai.store.knowledge import knowledge_bases, page_imports, pages
from evennia_ai.store.knowledge.page_imports import FolderPlan
from evennia_ai.text.columns import WIDTH, clipped, visible

MOST_WRITTEN: Final = 2000
"""Pages that are imported while the game stands still for it; more are for the command line."""
_MOST_FOLDERS: Final = 40
_MOST_NAMES: Final = 20
_USAGE: Final = "kb/import <folder> [= <base>]"


class KnowledgeFolder(CardWork):
    """Everything between a folder and a knowledge base."""

    @waits
    def import_plan(self) -> Steps:
        """What a folder would change, or the folders there are."""
        if not self.lhs:
            self.show("\n".join(_offered(conf().knowledge_folder)))
            return
        plan = yield from self._planned()
        if plan is not None:
            self.show("\n".join([*_plan_lines(plan), *_how_to_run(plan, self.args.strip())]))

    @waits
    def import_run(self) -> Steps:
        """Import a folder."""
        self.wanted("kb/import/run <folder> [= <base>]")
        plan = yield from self._planned()
        if plan is None:
            return
        if plan.changes > MOST_WRITTEN:
            raise CommandError(
                f"That is {plan.changes} pages, and the game would stand still while they are"
                f" written: type it on the command line, evennia-ai knowledge import. At most"
                f" {MOST_WRITTEN} are imported here. Nothing was imported."
            )
        page_imports.import_folder(plan, by=self.typed_by)
        look_at_all(plan.info)
        self.show("\n".join([*_plan_lines(plan), "Imported." if plan.changes else _NOTHING]))

    def _planned(self) -> Generator[Deferred[Any], Any, FolderPlan | None]:
        """What the folder that was typed would do; None where it is told what is wrong with it."""
        if self.rhs is not None and not self.rhs:
            raise CommandError(f"Usage: {_USAGE}")
        path = _folder_named(conf().knowledge_folder, self.lhs)
        try:
            folder = yield self.worked(f"Reading {path.name}", _reading(path, self.rhs or ""))
        except ImportProblems as error:
            lines = [f"{visible(path.name)}: nothing was imported, mend this first:"]
            lines += [visible(f"  {problem}") for problem in error.problems[:_MOST_NAMES]]
            self.show("\n".join([*lines, *_more(error.problems)]))
            return None
        self._refuse_hidden_base(folder.info.key)
        plan = page_imports.plan_folder(folder, folder_name=path.resolve().name)
        self._refuse_locks(plan)
        return plan

    def _refuse_hidden_base(self, key: str) -> None:
        known = knowledge_bases.base(key)
        locks = known.locks if known is not None else ""
        if not all(allows(self.caller, locks, kind) for kind in named.LOSABLE):
            raise CommandError(
                f"You may not import into '{key}'; give the base another key: {_USAGE}."
            )

    def _refuse_locks(self, plan: FolderPlan) -> None:
        """Refuse locks that are none, and to write over or tell of what a lock hides."""
        touched = (*(page.name for page in plan.pages.changed), *plan.pages.gone)
        now = [] if plan.is_new else pages.pages_named(plan.info.key, touched)
        if not all(named.may_see(self.caller, page) for page in now if page is not None):
            raise CommandError(
                f"Knowledge base '{plan.info.key}' has pages that you may not see, and this import"
                " is about them too. Nothing was imported."
            )
        written = (*plan.pages.new, *plan.pages.changed)
        if plan.info.locks:
            checked_locks(
                self.caller, plan.info.locks, access=named.BASE_ACCESS, thing="knowledge base"
            )
        for locks in sorted({page.locks for page in written} - {""}):
            checked_locks(self.caller, locks, access=named.ACCESS, thing="page")


def _reading(path: Path, key: str) -> Any:
    def work(progress: Progress) -> PageFolder:
        progress("its files", 0, 1)
        return read_folder(path, key=key.lower())

    return work


_NOTHING: Final = "Everything is so already; nothing was changed."


def _plan_lines(plan: FolderPlan) -> Iterator[str]:
    """What an import does."""
    state = ", a new one" if plan.is_new else ""
    yield visible(f"Knowledge base {plan.info.key}{state}:")
    told = {
        "new": [page.name.full for page in plan.pages.new],
        "changed": [page.name.full for page in plan.pages.changed],
        "not in the folder, they stay": [name.full for name in plan.pages.gone],
        "said of the base": list(plan.fields),
    }
    for kind, names in told.items():
        if names:
            yield f"  {kind}: {len(names)}"
            yield from (clipped(visible(f"    {name}"), WIDTH) for name in names[:_MOST_NAMES])
            yield from (f"  {line}" for line in _more(names))
    yield f"  as before: {len(plan.pages.same)}"


def _how_to_run(plan: FolderPlan, typed: str) -> list[str]:
    return [f"Nothing was written. To do it: kb/import/run {typed}"] if plan.changes else [_NOTHING]


def _more(listed: Sequence[object]) -> list[str]:
    return [f"  and {len(listed) - _MOST_NAMES} more"] if len(listed) > _MOST_NAMES else []


def _folder_named(inside: Path, name: str) -> Path:
    """The folder `name` of the one that the settings name, and no other whatever its name says."""
    plain = Path(name).name == name and name.isprintable() and "\\" not in name
    path = inside / name
    if not plain or not _is_folder(path):
        raise CommandError(
            f"There is no folder '{name}' to import; kb/import lists those there are."
        )
    if path.resolve().parent != inside.resolve():
        raise CommandError(f"'{name}' leads out of the folder for imports; nothing was imported.")
    return path


def _offered(inside: Path) -> list[str]:
    """The folders that can be imported."""
    found = sorted(visible(path.name) for path in inside.glob("[!.]*") if _is_folder(path))
    if not found:
        return [f"There are no folders in {inside} (EVENNIA_AI_KNOWLEDGE_FOLDER)."]
    more = [f"  and {len(found) - _MOST_FOLDERS} more"] if len(found) > _MOST_FOLDERS else []
    return [f"Folders in {inside}:", *(f"  {name}" for name in found[:_MOST_FOLDERS]), *more]


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):  # no folder has so long a name, or one with a null character
        return False
