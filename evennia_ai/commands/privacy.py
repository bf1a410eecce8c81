"""Players' commands about NPCs and themselves: `ai off`, `ai me`, `ai report` and `ignore`.

`ai off` is a command of its own, with a blank in its name, because `ai` belongs to builders.
Evennia picks the command with the longest name that fits, so `ai off` means the player and
`ai/off oren` means an NPC.
"""

import time
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, Final

from evennia.utils import logger

from evennia_ai.commands.base import (
    CommandError,
    Run,
    StrictCommand,
    counted,
    day_and_time,
    name_of,
    titled,
)
from evennia_ai.commands.forgetting import forget_player
from evennia_ai.commands.naming import npc_here
from evennia_ai.engine.text.columns import escape_controls, wrap_hanging
from evennia_ai.npc.mind.own_data import OwnData, newest_words_to, own_data
from evennia_ai.npc.runtime import runtime
from evennia_ai.npc.senses import choices
from evennia_ai.npc.senses.presence import object_of
from evennia_ai.npc.senses.text import one_line, plain_name, strip_markup
from evennia_ai.store.history.reports import add_report, reports_by
from evennia_ai.store.personal_data import npcs_keeping, personal_data

_WHOLE_WORD: Final = r"[ /=]|$"
_DAY_SECONDS: Final = 24 * 60 * 60
_MOST_A_DAY: Final = 20
"""The most reports of one character in 24 hours."""
_MOST_WHY: Final = 500
"""The most characters of what a player writes in a report."""


class PlayersCommand(StrictCommand):
    """A command about the choices of the player who types it."""

    locks = "cmd:all()"
    help_category = "General"
    auto_help = True

    @property
    def player(self) -> Any:
        """Return the account of the player.

        Raises:
            CommandError: A script typed this for a character that nobody plays.
        """
        account = self.caller.account
        if account is None:
            raise CommandError("Only the player of a character can decide this.")
        return account


class CmdPrivacy(PlayersCommand):
    """
    Decide what NPCs hear of you

    Usage:
      ai off         - no NPC hears or sees you
      ai on          - they hear and see you again

    Examples:
      ai off
      ai on

    This holds for all your characters. After ai off, nothing that you say or do
    reaches a model, a record, a memory or a log of the NPCs. What they remember
    from before stays. To hide what an NPC says from you, see help ignore.
    """

    key = "ai off"
    aliases = ("ai on",)
    arg_regex = _WHOLE_WORD
    verbs = {"": "choose"}
    without_value = frozenset({""})

    def choose(self) -> None:
        """Switch NPCs off or on for the player."""
        word = str(self.cmdstring).removeprefix("ai ").lower()
        if self.args.strip():
            raise CommandError(
                f"The command ai {word} is about yourself and takes no name. Nothing was changed.",
                instead=f"ai/{word} {self.args.strip()}" if "ai" in self._other_commands() else "",
            )
        if word == "on":
            choices.opt_in(self.player)
            self.say("NPCs hear and see you again. To be left alone: ai off")
            return
        choices.opt_out(self.player)
        self.say(
            "From now on no NPC hears or sees you: nothing that you say or do is kept or sent to a"
            " model. What NPCs remember from before stays. To be heard again: ai on"
        )


class CmdOwnData(PlayersCommand):
    """
    See what NPCs keep of you, and erase it

    Usage:
      ai me                      - which NPCs keep something of you
      ai me/export               - read all of it, in pages
      ai me/forget [<npc>]       - erase it, after a question

    Examples:
      ai me
      ai me/export
      ai me/forget oren

    This is about the character that you play. ai me/forget erases what NPCs
    remember of you, what you whispered and their answers, your persona and the
    words of your reports. What you said aloud belongs to the room: ask the
    staff to erase it.
    """

    key = "ai me"
    arg_regex = _WHOLE_WORD
    verbs = {"": "summary", "export": "export", "forget": "forget"}
    without_value = frozenset({"", "export", "forget"})
    whole_words = frozenset({"forget"})

    def summary(self) -> None:
        """Show which NPCs keep how much of the player."""
        self._read(self._show_summary)

    def export(self) -> None:
        """Show everything that NPCs keep of the player."""
        self._read(self._show_everything)

    def forget(self) -> Run:
        """Ask, then erase what one NPC or all NPCs keep of the player."""
        npc = self._npc_that_keeps(self.args.strip()) if self.args.strip() else None
        return self._forgotten(npc)

    def _forgotten(self, npc: Any) -> Generator[Any, Any, None]:
        by, ref = self.actor, str(self.caller.id)
        self.say((yield from forget_player(ref, npc, by=by, agreed=self.agreed)))

    def _npc_that_keeps(self, name: str) -> Any:
        """Return the NPC of this name among those that keep something of the player."""
        keep = [object_of(ref) for ref in npcs_keeping(str(self.caller.id))]
        found = [one for one in keep if one is not None and one.key.lower() == name.lower()]
        if len(found) != 1:
            raise CommandError(
                f"{len(found) or 'No'} NPCs called '{name}' keep something of you. Nothing was"
                " erased. To see which do: ai me"
            )
        return found[0]

    def _read(self, show: Callable[[OwnData], None]) -> None:
        reading = runtime().writer.read(partial(personal_data, str(self.caller.id)))
        reading.addCallback(partial(own_data, self.caller))
        self.tell_of(reading, by=show, waiting="What NPCs keep of you is being read.")

    def _show_summary(self, data: OwnData) -> None:
        if not (data.npcs or data.persona or data.reports):
            self.say("No NPC keeps anything of you.")
            return
        lines = ["What NPCs keep of you:"]
        for npc in data.npcs:
            kept = [
                *([counted(len(npc.memories), "memory", "memories")] if npc.memories else []),
                *([f"{counted(len(npc.private), 'line')} in private"] if npc.private else []),
                *([f"{counted(len(npc.aloud), 'line')} aloud"] if npc.aloud else []),
            ]
            lines += titled(npc.name, ", ".join(kept))
        if data.persona is not None:
            lines += titled("persona", "the text that you wrote; see help persona")
        if data.reports:
            lines += titled("reports", counted(len(data.reports), "report"))
        self.show([*lines, "To read all of it: ai me/export. To erase it: ai me/forget [<npc>]"])

    def _show_everything(self, data: OwnData) -> None:
        lines: list[str] = []
        for npc in data.npcs:
            lines.append(f"{npc.name} keeps of you:")
            for text in npc.memories:
                lines += wrap_hanging(escape_controls(f"    memory: {text}"))
            for place, said in (("private", npc.private), ("aloud", npc.aloud)):
                for line in said:
                    when = f"{day_and_time(line.said_at)}, {place}"
                    lines += wrap_hanging(escape_controls(f"    {when}: {line.name}: {line.text}"))
        if data.persona is not None:
            lines += wrap_hanging(escape_controls(f"Your persona: {data.persona.text}"))
        for report in data.reports:
            about = f"{day_and_time(report.reported_at)}: {report.why}: {report.words}"
            lines += wrap_hanging(escape_controls(f"Your report of {about}"))
        self.show(lines or ["No NPC keeps anything of you."])


class CmdReport(PlayersCommand):
    """
    Tell the staff about something that an NPC said

    Usage:
      ai report [<npc>] = <why>

    Examples:
      ai report oren = He asked for my password.
      ai report = That was rude.

    The staff gets the newest words that you could hear of this NPC, or of any
    NPC here, and the prompt behind them. They also read what you write.
    """

    key = "ai report"
    arg_regex = _WHOLE_WORD
    verbs = {"": "report"}

    def report(self) -> None:
        """Store a report about the newest words of an NPC."""
        if not self.rhs:
            raise CommandError("Usage: ai report [<npc>] = <why>. Nothing was reported.")
        ref, why = str(self.caller.id), one_line(strip_markup(self.rhs))[:_MOST_WHY]
        day = [one for one in reports_by(ref) if one.reported_at > time.time() - _DAY_SECONDS]
        if len(day) >= _MOST_A_DAY:
            raise CommandError(f"You reported {len(day)} times today; ask the staff directly.")
        npc = npc_here(self.caller, self.lhs) if self.lhs else None
        found = newest_words_to(self.caller, npc)
        if found is None:
            who = "This NPC" if npc is not None else "No NPC here"
            raise CommandError(f"{who} has said nothing that you could hear. Nothing was reported.")
        turn, said = found
        number = add_report(turn, words=said.body, why=why, reporter_ref=ref)
        logger.log_msg(f"evennia_ai: report {number} of a player is new; ai/reports shows it")
        self.say(f"The staff can read it as report {number}: {said.body}")


class CmdIgnore(PlayersCommand):
    """
    Hide what an NPC says from you

    Usage:
      ignore            - list the NPCs that you ignore
      ignore <npc>      - ignore it, or no longer ignore it

    Examples:
      ignore oren
      ignore

    You no longer read what it says and does. It still hears you; see help ai off.
    """

    key = "ignore"
    verbs = {"": "ignore"}
    without_value = frozenset({""})

    def ignore(self) -> None:
        """List the ignored NPCs, or change whether one of them is ignored."""
        player, name = self.player, self.args.strip()
        ignored = {ref: self._name(ref) for ref in choices.ignored_npcs(player)}
        if not name:
            names = ", ".join(ignored.values())
            self.say(f"You ignore {names}." if names else "You ignore nobody: ignore <npc>")
            return
        found = [ref for ref, known in ignored.items() if known.lower() == name.lower()]
        if len(found) == 1:
            choices.stop_ignoring(player, found[0])
            self.say(f"You read what {ignored[found[0]]} says again.")
            return
        npc = npc_here(self.caller, name)
        ref, shown = str(npc.id), plain_name(npc.get_display_name(self.caller))
        if ref in ignored:
            choices.stop_ignoring(player, ref)
            self.say(f"You read what {shown} says again.")
            return
        choices.ignore(player, ref)
        self.say(f"You no longer read what {shown} says and does. To change it: ignore {name}")

    def _name(self, ref: str) -> str:
        npc = object_of(ref)
        return name_of(ref) if npc is None else plain_name(npc.get_display_name(self.caller))
