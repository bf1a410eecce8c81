"""`ai/keep` and `ai/kept`: good answers of NPCs, kept with what must hold of their prompts.

`ai/keep` writes a turn as a case into the folder of kept cases. `ai/kept` composes the cases with
the texts that the game has now, as `evennia-ai check` does on the command line.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from evennia_ai.commands.base import CommandError, StrictCommand
from evennia_ai.commands.folder import FolderKind, path_in, shown_path
from evennia_ai.commands.kept_cases import MOST_CASES, check_kept
from evennia_ai.commands.naming import npc_and_number, turn_or_newest
from evennia_ai.commands.screens import Row, diffed
from evennia_ai.engine.history.records import RecordKind
from evennia_ai.engine.text.columns import WIDTH, clip_text, escape_controls, wrap_text
from evennia_ai.formats.kept import SUFFIX, case_text, change_lines
from evennia_ai.npc.mind.viewers import READS_WHISPERS, lock_allows, seer_for
from evennia_ai.npc.senses.presence import NPC, find_again, object_of
from evennia_ai.npc.views.kept import (
    CheckedCase,
    KeptChecker,
    free_path,
    kept_case,
    write_whole,
)
from evennia_ai.npc.views.looking import past_inputs_for
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.history.past_turns import acts_of, replay_stored_turn
from evennia_ai.store.history.turns import StoredTurn

KEPT: Final = FolderKind("kept case", "EVENNIA_AI_KEPT_FOLDER")
_UNSAFE: Final = re.compile(r"[^a-z0-9]+")
_MOST_NAME: Final = 60
_NOTHING: Final = "Nothing was written."
_STATES: Final = {"same": "same", "differs": "DIFFERS", "unreadable": "UNREADABLE"}


class KeptSwitches(StrictCommand):
    """The switches `ai/keep`, `ai/kept` and `ai/kept/accept`."""

    def keep(self) -> None:
        """Write a turn as a kept case."""
        usage = "ai/keep <npc>[/<turn>] [= <what this case is about>]"
        npc, number = npc_and_number(self.caller, self.wanted(usage), what="turn")
        self.say(_keep(self.caller, npc, turn_or_newest(npc, number), (self.rhs or "").strip()))

    def kept(self) -> None:
        """List the kept cases with their states, or show what differs in one."""
        if self.args.strip():
            self.show(_difference(self.caller, self._checked_case()))
            return
        waiting = "The kept cases are being read."
        self.tell_of(check_kept(), by=lambda got: self.show(_listed(*got)), waiting=waiting)

    def kept_accept(self) -> None:
        """Write the prompt that a case gets now as what must hold of it."""
        if not self.args.strip():
            raise CommandError("Usage: ai/kept/accept <case>. Nothing was changed.")
        found = self._checked_case()
        if found.state == "same":
            raise CommandError(f"{found.name} is the same as it was kept. Nothing was changed.")
        _refuse_hidden(self.caller, found)
        KeptChecker(find_again).accept(found.path)
        self.say(f"Accepted: from now on, {found.name} must have the prompt that it gets now.")

    def _checked_case(self) -> CheckedCase:
        name, folder = self.args.strip(), conf().kept_folder
        path = path_in(folder, name, command="ai/kept", suffixes=(SUFFIX,), kind=KEPT)
        return KeptChecker(find_again).check(path)


def _keep(caller: Any, npc: NPC, turn: StoredTurn, about: str) -> str:
    """Write a turn into a new file of the folder of kept cases. Return a line about it.

    Raises:
        CommandError: Something in it is hidden from `caller`, or the turn cannot be replayed.
        NotReadBackError: Some of its inputs can no longer be read back.
        KeptCaseError: Its inputs do not give the prompt that was sent.
    """
    sent = replay_stored_turn(turn)
    if sent.problem:
        raise CommandError(f"Turn {turn.number} cannot be replayed: {sent.problem}. {_NOTHING}")
    seer, acts = seer_for(caller, npc.ai.ref), acts_of(turn)
    past = past_inputs_for(seer, turn)
    if past.hidden or seer.hides_some(acts):
        raise CommandError(
            f"Turn {turn.number} of {npc.key} has words, lore, memories or facts that locks hide"
            f" from you. {_NOTHING} A builder who may see them can keep it."
        )
    reply = "\n".join(one.body for one in acts if one.kind is RecordKind.ASSISTANT and one.body)
    case = kept_case(turn, past, about=about, reply=reply, name_of=_key_of)
    name = _UNSAFE.sub("-", f"{npc.key} {about or turn.number}".lower()).strip("-")
    path = free_path(conf().kept_folder, name[:_MOST_NAME].strip("-") or "case")
    write_whole(path, case_text(case))
    return (
        f"Kept turn {turn.number} of {npc.key} as {path.stem} in {shown_path(conf().kept_folder)}:"
        f" the prompt must stay as it was, {case.expect.tokens} tokens. ai/kept tells when it"
        " differs. Anyone who has the file can read all of it."
    )


def _key_of(ref: str) -> str:
    found = object_of(ref)
    return "" if found is None else str(found.key)


def _listed(found: list[CheckedCase], total: int) -> Iterator[str | Row]:
    """Yield the kept cases of the game with their states."""
    where = shown_path(conf().kept_folder)
    if not total:
        yield f"There are no kept cases in {where}; ai/keep <npc> keeps the newest answer."
        return
    yield f"Kept cases in {where}:"
    for one in found:
        about = one.case.about if one.case else one.problem.removeprefix(f"{one.path}: ")
        yield clip_text(
            f"  {_STATES[one.state]:10} {escape_controls(one.name)}: {escape_controls(about)}",
            WIDTH,
        )
    if len(found) < total:
        yield from wrap_text(
            f"  and {total - len(found)} more that were not checked: the game checks at most"
            f" {MOST_CASES} at once; evennia-ai check checks all",
            WIDTH,
        )
    if any(one.state == "differs" for one in found):
        yield "ai/kept <case> shows what differs; ai/kept/accept <case> accepts it."


def _difference(caller: Any, found: CheckedCase) -> Iterator[str | Row]:
    """Yield what differs in the prompt of a case."""
    if found.change is None:
        told = found.problem.removeprefix(f"{found.path}: ") or "the same prompt as it was kept"
        yield from wrap_text(escape_controls(f"{found.name}: {told}"), WIDTH)
        return
    _refuse_hidden(caller, found)
    about = f": {found.case.about}" if found.case and found.case.about else ""
    yield clip_text(escape_controls(f"{found.name} DIFFERS{about}"), WIDTH)
    lines = [
        piece
        for line in change_lines(found.change)
        for piece in (wrap_text(escape_controls(line), WIDTH) or [""])
    ]
    yield from diffed(line.removeprefix("  ") for line in lines)


def _refuse_hidden(caller: Any, found: CheckedCase) -> None:
    """Refuse to show or accept the prompt of a case that has texts hidden from `caller`.

    Raises:
        CommandError: Something is hidden.
    """
    case, inputs = found.case, found.inputs
    if case is None or inputs is None:
        raise CommandError(f"{found.problem or found.name}. Nothing was changed.")
    is_private = case.conversation == "private"
    npc_ref = find_again(case.npc.name, case.npc.ref, True)
    if (is_private and not lock_allows(caller, READS_WHISPERS, "view")) or seer_for(
        caller, npc_ref
    ).seen(inputs).hidden:
        raise CommandError(
            f"{found.name} has words, lore, memories or facts that locks hide from you. A builder"
            " who may see them can look at it and accept it. Nothing was changed."
        )
