"""`ai/keep` and `ai/kept`: good answers of NPCs, kept with what must hold of their prompts.

`ai/keep` writes a turn as a case into the folder of kept cases. `ai/kept` composes the cases with
the texts that the game has now, as `evennia-ai check` does on the command line.
"""

from collections.abc import Iterator
from typing import Any, Final

from evennia_ai.commands.base import CommandError, StrictCommand
from evennia_ai.commands.folder import FolderKind, path_in, shown_path
from evennia_ai.commands.kept_cases import check_kept
from evennia_ai.commands.naming import npc_and_number, turn_or_newest
from evennia_ai.commands.screens import Row, diffed
from evennia_ai.engine.text.columns import WIDTH, clip_text, escape_controls, wrap_text
from evennia_ai.formats.kept import SUFFIX, change_lines
from evennia_ai.npc.mind.kept import MOST_CASES, accept_case, keep_turn, refuse_hidden
from evennia_ai.npc.senses.presence import find_again
from evennia_ai.npc.views.kept import CheckedCase, KeptChecker
from evennia_ai.services.settings.conf import conf

KEPT: Final = FolderKind("kept case", "EVENNIA_AI_KEPT_FOLDER")
_STATES: Final = {"same": "same", "differs": "DIFFERS", "unreadable": "UNREADABLE"}


class KeptSwitches(StrictCommand):
    """The switches `ai/keep`, `ai/kept` and `ai/kept/accept`."""

    def keep(self) -> None:
        """Write a turn as a kept case."""
        usage = "ai/keep <npc>[/<turn>] [= <what this case is about>]"
        npc, number = npc_and_number(self.caller, self.wanted(usage), what="turn")
        turn = turn_or_newest(npc, number)
        path, case = keep_turn(self.caller, turn, about=(self.rhs or "").strip())
        self.say(
            f"Kept turn {turn.number} of {npc.key} as {path.stem} in"
            f" {shown_path(conf().kept_folder)}: the prompt must stay as it was,"
            f" {case.expect.tokens} tokens. ai/kept tells when it differs. Anyone who has the file"
            " can read all of it."
        )

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
        accept_case(self.caller, found)
        self.say(f"Accepted: from now on, {found.name} must have the prompt that it gets now.")

    def _checked_case(self) -> CheckedCase:
        name, folder = self.args.strip(), conf().kept_folder
        path = path_in(folder, name, command="ai/kept", suffixes=(SUFFIX,), kind=KEPT)
        return KeptChecker(find_again).check(path)


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
    refuse_hidden(caller, found)
    about = f": {found.case.about}" if found.case and found.case.about else ""
    yield clip_text(escape_controls(f"{found.name} DIFFERS{about}"), WIDTH)
    lines = [
        piece
        for line in change_lines(found.change)
        for piece in (wrap_text(escape_controls(line), WIDTH) or [""])
    ]
    yield from diffed(line.removeprefix("  ") for line in lines)
