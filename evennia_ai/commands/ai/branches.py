"""`ai/branch`: a builder continues a conversation from a past turn, unheard by the game."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from twisted.internet.defer import Deferred

from evennia_ai.commands.base import CommandError, StrictCommand, counted, in_words, name_of
from evennia_ai.commands.naming import npc_and_number, npc_named, turn_of
from evennia_ai.commands.prompt_shown import part_called
from evennia_ai.commands.screens import Row
from evennia_ai.commands.turn_shown import context_lines
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.history.records import Record, RecordKind
from evennia_ai.engine.text.columns import WIDTH, escape_controls, wrap_hanging
from evennia_ai.npc.mind.control import open_visible_branch
from evennia_ai.npc.mind.viewers import seer_for
from evennia_ai.npc.senses.presence import NPC, object_of
from evennia_ai.npc.turn.rehearsal import Rehearsed, part_in, rehearse
from evennia_ai.npc.views.visibility import Seer
from evennia_ai.store.erasing import Erased, erase_branches
from evennia_ai.store.history import branches, turns
from evennia_ai.store.history.branches import Branch

_SAID: Final = (RecordKind.USER, RecordKind.ASSISTANT, RecordKind.FALLBACK)


class BranchSwitches(StrictCommand):
    """The switches `ai/branch`, `ai/branch/prompt` and `ai/branch/close`."""

    def branch(self) -> None:
        """Open a branch, say something in it, or show what was said in it."""
        if not self.lhs:
            self.show(_list_lines(self.caller))
            return
        npc, number = npc_and_number(self.caller, self.lhs, what="turn")
        if number is not None:
            self.show(_open_branch(self.caller, npc, number, by=self.actor))
        if self.rhs:
            waiting = f"{npc.key} thinks about it; please wait."
            self.tell_of(_say_in_branch(self.caller, npc, self.rhs), by=self.show, waiting=waiting)
        elif self.rhs is not None:
            raise CommandError("Usage: ai/branch <npc> = <text>. Nothing was said.")
        elif number is None:
            self.show(_branch_lines(self.caller, npc))

    def branch_prompt(self) -> None:
        usage = "ai/branch/prompt <npc>[/<turn of the branch>] [= <part>]"
        npc, number = npc_and_number(self.caller, self.wanted(usage), what="turn")
        self.show(_prompt_lines(self.caller, npc, number, part_called(self.rhs or "")))

    def branch_close(self) -> None:
        wanted = self.wanted("ai/branch/close <npc>")
        gone = next((ref for ref in _deleted_npc_refs(self.caller) if wanted == name_of(ref)), None)
        if gone is not None:
            done = erase_branches(gone, str(self.caller.id), by=self.actor)
            self.say(
                f"Your branch of {wanted}, who was deleted, is erased: {_counts_in_words(done)}."
            )
            return
        npc = npc_named(self.caller, wanted)
        self.say(_close_branch(self.caller, npc, by=self.actor))


def _list_lines(caller: Any) -> list[str]:
    """Return lines that list the caller's branches."""
    found = branches.branches_by(str(caller.id))
    if not found:
        return ["You have no branch. ai/branch <npc>/<turn> opens one from a turn in ai/log <npc>."]
    gone = _deleted_npc_refs(caller)
    return [
        "Your branches:",
        *(
            f"  {name_of(ref)}" + (" (deleted; ai/branch/close erases it)" if ref in gone else "")
            for ref in found
        ),
    ]


def _deleted_npc_refs(caller: Any) -> tuple[str, ...]:
    """Return the IDs of deleted NPCs of which the caller still has branches."""
    known = branches.branches_by(str(caller.id))
    return tuple(ref for ref in known if object_of(ref) is None)


def _open_branch(caller: Any, npc: NPC, number: int, *, by: Actor) -> list[str]:
    """Open a branch from a turn. Return lines that say what it copies and what to type next."""
    turn = turn_of(npc, number)
    before = branches.newest_branch(npc.ai.ref, str(caller.id))
    branch = open_visible_branch(caller, npc, turn, by=by)
    as_whom = escape_controls(part_in(npc, branch, typist=caller).name)
    lines = [
        f"Branch of {npc.key} from turn {branch.turn}, {in_words(turn.conversation)}.",
        *_round_lines(number, branch),
        *([f"It replaces your branch {_begin_in_words(before)}."] if before else []),
        (
            f"You speak as {as_whom}. Nobody in the game hears it, no tool is used, and nothing is"
            " remembered."
        ),
        f"Say something: ai/branch {npc.key} = <text>",
    ]
    return [shown for line in lines for shown in wrap_hanging(line)]


def _begin_in_words(branch: Branch) -> str:
    return f"from turn {branch.turn}" if branch.turn else "without a past"


def _round_lines(number: int, branch: Branch) -> Iterator[str]:
    if number != branch.turn:
        yield f"Turn {number} was a part of the answer that ended with turn {branch.turn}."


def _branch_lines(caller: Any, npc: NPC) -> list[str]:
    """Return lines with what was said in the caller's newest branch."""
    branch = _branch_of(caller, npc)
    head = f"Branch of {npc.key} {_begin_in_words(branch)}, {in_words(branch.conversation)}:"
    said = list(
        _spoken_lines(seer_for(caller, npc.ai.ref), npc, branches.records_in_branch(branch))
    )
    lines = [*wrap_hanging(head), *(said or ["  Nothing was said in it yet."])]
    return [
        *lines,
        f"Its prompt: ai/branch/prompt {npc.key}; to erase the branch: ai/branch/close {npc.key}",
    ]


def _branch_of(caller: Any, npc: NPC) -> Branch:
    """Return the caller's newest branch of an NPC.

    Raises:
        CommandError: There is none; the message says how to open one.
    """
    branch = branches.newest_branch(npc.ai.ref, str(caller.id))
    if branch is None:
        raise CommandError(
            f"You have no branch of {npc.key}; ai/branch {npc.key}/<turn> opens one from a turn in"
            f" ai/log {npc.key}."
        )
    return branch


def _say_in_branch(caller: Any, npc: NPC, text: str) -> "Deferred[list[str]]":
    """Say something in the branch. Fires with lines that show what came of it."""
    seer = seer_for(caller, npc.ai.ref)

    def told(done: Rehearsed) -> list[str]:
        failed = (f"  (no answer: {escape_controls(problem)})" for problem in done.problems)
        lines = [
            *_spoken_lines(seer, npc, done.records),
            *(x for f in failed for x in wrap_hanging(f)),
        ]
        return [f"In your branch of {npc.key}:", *lines]

    return rehearse(npc, _branch_of(caller, npc), text, typist=caller).addCallback(told)


def _prompt_lines(caller: Any, npc: NPC, number: int | None, part: str) -> Iterator[str | Row]:
    """Yield lines with the prompt of a turn of the branch, by default the newest turn."""
    branch = _branch_of(caller, npc)
    ref = branch.conversation.npc_ref
    last = turns.last_turn(ref)
    if last is None or last.conversation.id != branch.conversation.id:
        raise CommandError(f"Nothing was said in the branch yet: ai/branch {npc.key} = <text>")
    if number is not None and number > last.number:
        raise CommandError(f"The branch had no turn {number}; the newest is {last.number}.")
    turn = last if number is None else turns.get_turn(ref, number)
    yield f"In your branch of {npc.key} {_begin_in_words(branch)}:"
    yield from context_lines(caller, npc, turn, part, command="ai/branch/prompt")


def _close_branch(caller: Any, npc: NPC, *, by: Actor) -> str:
    """Erase the caller's branches of an NPC. Return a line with how much was erased."""
    _branch_of(caller, npc)
    done = erase_branches(npc.ai.ref, str(caller.id), by=by)
    counts = _counts_in_words(done)
    return f"Your branch of {npc.key} is erased: {counts}. The history of {npc.key} is unchanged."


def _counts_in_words(done: Erased) -> str:
    return f"{counted(done.records, 'record')} and {counted(done.turns, 'turn')}"


def _spoken_lines(seer: Seer, npc: NPC, records: Iterable[Record]) -> Iterator[str]:
    """Yield lines with what was said, what tools would have done and how turns failed."""
    known = tuple(records)
    for record in known:
        seen = seer.record(record, known)
        for line in _lines_of(seen, npc):
            yield from (f"  {shown}" for shown in wrap_hanging(escape_controls(line), WIDTH - 2))


def _lines_of(record: Record, npc: NPC) -> Iterator[str]:
    if record.kind in _SAID and record.body:
        yield f"{record.name or npc.key}: {' '.join(record.body.split())}"
    elif record.kind is RecordKind.TOOL_CALL:
        if record.body:
            yield f"{npc.key}: {' '.join(record.body.split())}"
        for call in record.meta.get("tool_calls", ()):
            yield f"({npc.key} would use {call['name']} {call['arguments']}; nothing was done)"
    elif record.kind is RecordKind.RUN_END and record.meta.get("state") != "done":
        yield f"(turn {record.meta.get('turn')} {record.meta.get('state')}: {record.body})"
    elif record.kind is RecordKind.RUN_END and record.body.startswith("chose"):
        yield f"({npc.key} {record.body})"
