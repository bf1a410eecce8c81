"""The switches of `ai` that operate the game's NPCs: pause, stop, limits, the list and the log."""

from typing import Any

from evennia_ai.commands.inspect_limits import limit_lines
from evennia_ai.commands.inspect_log import log_lines
from evennia_ai.commands.inspect_overview import overview_lines
from evennia_ai.commands.naming import npc_named
from evennia_ai.commands.numbered import counted_number, npc_and_number
from evennia_ai.commands.strict import CommandError, StrictCommand
from evennia_ai.game import emergency
from evennia_ai.game.emergency import Stopped
from evennia_ai.game.stopping import is_stopped


class OperatingSwitches(StrictCommand):
    """
    Switches of `ai` that operate NPCs; see there.
    """

    def list_all(self) -> None:
        """All NPCs of the game, or those whose name or room has a word in it."""
        if self.rhs is not None:
            raise CommandError("Usage: ai/list [<part of a name>][/<page>], without '='.")
        part, _, page = (self.args or "").strip().partition("/")
        number = counted_number(page.strip(), what="page") if page else 1
        self.show("\n".join(overview_lines(part.strip(), number)))

    def log(self) -> None:
        """What an NPC did, and what was set for it."""
        usage = "ai/log <npc>[/<page>]"
        if self.rhs is not None:
            raise CommandError(f"Usage: {usage}, without '='.")
        npc, page = npc_and_number(self.caller, self.wanted(usage), what="page")
        self.show("\n".join(log_lines(npc, page or 1)))

    def limits(self) -> None:
        """What may be used and what was."""
        if self.rhs is not None:
            raise CommandError("Usage: ai/limits [<npc>], without '='.")
        npc = npc_named(self.caller, self.lhs) if self.lhs else None
        self.show("\n".join(limit_lines(npc)))

    def pause(self) -> None:
        """Have an NPC ask no model for now."""
        npc = npc_named(self.caller, self.wanted("ai/pause <npc> [= <reason>]"))
        done = emergency.pause(npc, by=self.typed_by, reason=self.rhs or "")
        self.say(
            f"{npc.key} is paused until ai/resume {npc.key}; it still hears and remembers."
            f"{_in_words(done)}"
        )

    def resume(self) -> None:
        """Let a paused NPC go on."""
        if self.rhs is not None:
            raise CommandError("Usage: ai/resume <npc>, without '='. Nothing was changed.")
        npc = npc_named(self.caller, self.wanted("ai/resume <npc>"))
        if not emergency.resume(npc, by=self.typed_by):
            raise CommandError(f"{npc.key} is not paused.")
        self.say(f"{npc.key} goes on.{_still_stopped()}")

    def stop_all(self) -> None:
        """Stop all NPCs of the game at once."""
        reason = self._reason("ai/stopall [= <reason>]")
        done = emergency.stop_all(by=self.typed_by, reason=reason)
        self.say(
            "ALL NPCs of the game are stopped until ai/startall: no model is asked for anything."
            f" They still hear and remember.{_in_words(done)}"
        )

    def start_all(self) -> None:
        """Let all NPCs answer again."""
        if (self.args or "").strip():
            raise CommandError("Usage: ai/startall, and nothing else. Nothing was changed.")
        if not emergency.start_all(by=self.typed_by):
            raise CommandError("The game's NPCs are not stopped.")
        self.say("The game's NPCs answer again. Those that are paused stay so: see ai/list.")

    def _reason(self, usage: str) -> str:
        """What stands behind "=", before which nothing may stand."""
        if self.lhs:
            raise CommandError(f"Usage: {usage}. Nothing was stopped; ai/pause stops one NPC.")
        return self.rhs or ""


def _in_words(done: Stopped) -> str:
    """What came of a stop, as sentences; nothing where it ended nothing."""
    counts = {"Answers dropped": done.dropped, "Calls of models given up": done.given_up}
    return "".join(f" {what}: {count}." for what, count in counts.items() if count)


def _still_stopped() -> Any:
    return " The whole game is stopped, though: ai/startall." if is_stopped() else ""
