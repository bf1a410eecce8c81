"""The command `lorekeeper`: builders let a model write pages of a knowledge base.

The command only translates; `evennia_ai.npc.lorekeeper` does the work. The result is a draft.
Builders read and approve drafts with `kb`.
"""

from collections.abc import Sequence
from typing import Any, Final

from twisted.internet.defer import CancelledError
from twisted.python.failure import Failure

from evennia_ai.commands.background_work import CardWork, Steps, waits
from evennia_ai.commands.base import BUILDER_LOCK, CommandError
from evennia_ai.commands.naming import counted_number
from evennia_ai.commands.setup.knowledge import shown
from evennia_ai.engine.knowledge.assembly.panel import context_panel, field_lines, why_no_package
from evennia_ai.engine.knowledge.pages.markup import write_page
from evennia_ai.engine.knowledge.pages.page import PageName, page_name
from evennia_ai.engine.prompt.messages import Message
from evennia_ai.npc.lorekeeper.keeping import LorekeeperAnswer, lorekeeper
from evennia_ai.npc.lorekeeper.writing import page_of_answer
from evennia_ai.npc.mind.viewers import viewer_of
from evennia_ai.npc.runtime import runtime
from evennia_ai.npc.speech.output import escape_block
from evennia_ai.npc.views.visibility import may_see_package
from evennia_ai.store.knowledge import page_drafts as store
from evennia_ai.store.knowledge import page_drafts as tasks
from evennia_ai.store.knowledge.page_drafts import StoredDraft, StoredTask


def without_answer(task: StoredTask) -> list[str]:
    """Return lines that say why a task has no answer, or no lines if it has one."""
    if task.error:
        return field_lines("no answer", task.error)
    if task.ended_at is None:
        return field_lines("no answer", "none yet, or the server stopped before the answer came")
    return []


AT_WORK: Final = "The lorekeeper is working on it; you get a message when it is done."


class CmdLorekeeper(CardWork):
    """
    Let a model write pages of a knowledge base

    Usage:
      lorekeeper <task>
      lorekeeper/in <base> = <task>
      lorekeeper/type <type of task> = <task>
      lorekeeper/pages <page>; <page> = <task>
      lorekeeper/revise <number of a draft> = <what to change>
      lorekeeper/context [= <number of a draft>]

    Switches:
      in      - write for this knowledge base instead of the usual one
      type    - choose the type of the task yourself
      pages   - read these pages in any case
      revise  - change a draft; the result is a new draft
      context - show what the model got for your last task, or for a draft

    Examples:
      lorekeeper Write an article about the leek show.
      lorekeeper/type create_source = Write an interview with Pell Anstey.
      lorekeeper/pages The Slee; Saltholm = Which of these is told better?
      lorekeeper/revise 3 = Half as long, and without the seal.
      lorekeeper/context = 3

    The lorekeeper first reads what the wiki says about the task, its world bible
    and its instructions. The model gets exactly these texts. A page that it
    writes is a draft: kb/draft shows what it would change, and kb/approve writes
    it. After each answer you see what the model got for it, and why. Pages that
    a lock hides from you are not read.
    """

    key = "lorekeeper"
    locks = BUILDER_LOCK.format(key="lorekeeper")
    help_category = "Building"
    auto_help = True
    verbs = {
        "": "ask",
        "in": "ask_in",
        "type": "ask_as",
        "pages": "ask_with",
        "revise": "revise",
        "context": "context",
    }

    @waits
    def ask(self) -> Steps:
        if not self.args.strip():
            raise CommandError("Usage: lorekeeper <task>; see help lorekeeper.")
        yield from self._kept(self.args, base=self._usual_base())

    @waits
    def ask_in(self) -> Steps:
        base, task = self.both("lorekeeper/in <base> = <task>")
        yield from self._kept(task, base=shown.base_named(self.caller, base).key)

    @waits
    def ask_as(self) -> Steps:
        kind, task = self.both("lorekeeper/type <type of task> = <task>")
        key = kind.strip().lower().replace(" ", "_")
        yield from self._kept(task, base=self._usual_base(), type_override=key)

    @waits
    def ask_with(self) -> Steps:
        titles, task = self.both("lorekeeper/pages <page>; <page> = <task>")
        pages = [page_name(title) for title in titles.split(";") if title.strip()]
        yield from self._kept(task, base=self._usual_base(), custom_pages=pages)

    @waits
    def revise(self) -> Steps:
        number, task = self.both("lorekeeper/revise <number of a draft> = <what to change>")
        found = self._draft(number)
        yield from self._kept(
            task,
            base=found.base,
            type_override=str(found.context_meta.get("task_type", "")),
            earlier=_conversation(found),
        )

    def context(self) -> None:
        number = self.rhs or self.lhs
        if number:
            found = self._draft(number)
            if "task_type" not in found.context_meta:
                raise CommandError(f"Draft {found.number} was not written by the lorekeeper.")
            title = f"draft {found.number}, {found.base}/{found.draft.page.name}"
            self.show(context_panel(title, found.task, found.context_meta))
            return
        last = tasks.newest_task(str(self.caller.id))
        if (
            last is None
            or last.base not in self._seen_bases()
            or not may_see_package(viewer_of(self.caller), last.context_meta)
        ):
            raise CommandError(
                "You have given the lorekeeper no task yet, or only for a base that you can no"
                " longer see; lorekeeper/context = <number> shows what a draft was made from."
            )
        panel = context_panel("your last task", last.task, last.context_meta)
        self._send([*panel, *without_answer(last)], last.context_meta)

    def failed(self, failure: Failure) -> None:
        """Tell the builder why the task failed. Say nothing if the server is stopping."""
        if not failure.check(CancelledError):
            super().failed(failure)

    def _kept(
        self,
        task: str,
        *,
        base: str,
        type_override: str = "",
        custom_pages: Sequence[PageName] = (),
        earlier: Sequence[Message] = (),
    ) -> Any:
        asked = lorekeeper(
            task,
            base=base,
            by=self.caller,
            type_override=type_override,
            custom_pages=custom_pages,
            earlier=earlier,
        )
        if not asked.called:
            self.say(AT_WORK)
        answer: LorekeeperAnswer = yield asked
        self._send(_answer_lines(answer), answer.context_meta)

    def _send(self, lines: Sequence[str], meta: Any) -> None:
        """Send lines, and for a web client's developer tools the data they were made from."""
        self.msg((escape_block("\n".join(lines)), {"context_meta": meta}))

    def _usual_base(self) -> str:
        """Return the key of the knowledge base that a task without a base is for."""
        usual = runtime().conf.lorekeeper.base
        if usual:
            return shown.base_named(self.caller, usual).key
        there = [one.key for one in shown.visible_bases(self.caller) if not one.restricted]
        if len(there) == 1:
            return there[0]
        told = f"there are {', '.join(there[:12])}" if there else "there is none yet; see help kb"
        raise CommandError(f"Name the knowledge base: lorekeeper/in <base> = <task>; {told}.")

    def _seen_bases(self) -> list[str]:
        return [one.key for one in shown.visible_bases(self.caller)]

    def _draft(self, text: str) -> StoredDraft:
        """Return the draft of this number, if the caller may see its base and its page."""
        number = counted_number(text.strip(), what="number of a draft")
        found = store.draft_or_none(number)
        if (
            found is None
            or found.base not in self._seen_bases()
            or not shown.may_see(self.caller, found.draft.page)
            or not may_see_package(viewer_of(self.caller), found.context_meta)
        ):
            raise CommandError(f"There is no draft {number}; kb/drafts lists those that wait.")
        return found


def _conversation(found: StoredDraft) -> tuple[Message, ...]:
    """Return the task of a draft and its page as earlier messages for the model."""
    page = found.draft.page
    return (
        Message(role="user", content=found.task),
        Message(role="assistant", content=page_of_answer(page.name, write_page(page))),
    )


def _answer_lines(answer: LorekeeperAnswer) -> list[str]:
    """Return what a builder reads: the answer, or the numbers of the drafts that hold it."""
    drafts = [f"{number}" for number in answer.drafts]
    lines = [] if drafts and not answer.notes else [answer.text or "(The model wrote nothing.)"]
    lines += list(answer.notes)
    if drafts:
        which = "Draft" if len(drafts) == 1 else "Drafts"
        pages = "a page" if len(drafts) == 1 else "pages"
        lines.append(
            f"The lorekeeper has written {pages}. {which} {', '.join(drafts)}: kb/draft {drafts[0]}"
            f" shows what would change, kb/approve {drafts[0]} writes it."
        )
    meta = answer.context_meta
    if meta["bypassed"]:
        return [*lines, why_no_package(meta)]
    return [*lines, *context_panel("this task", answer.task, meta)]
