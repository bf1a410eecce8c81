"""The command `talk`: say something aloud to one NPC."""

from evennia_ai.commands.naming import npc_here
from evennia_ai.commands.strict import CommandError, StrictCommand
from evennia_ai.game.output import talk


class CmdTalk(StrictCommand):
    """
    Say something to somebody who is here

    Usage:
      talk <name> = <text>

    Examples:
      talk oren = Have you seen the ferry?
      talk ferryman = Good evening.

    You say it aloud, so everybody here can hear it; the one you name knows
    that it is meant. To be heard by nobody else, use whisper.
    """

    key = "talk"
    locks = "cmd:all()"
    help_category = "General"
    auto_help = True
    verbs = {"": "talk"}

    def talk(self) -> None:
        """Say the text aloud, to the one who was named."""
        name, text = self.both("talk <name> = <text>")
        if self.caller.location is None:
            raise CommandError("You are nowhere, so nobody can hear you.")
        npc = npc_here(self.caller, name)
        if not talk(self.caller, npc, text):
            raise CommandError("You cannot say that.")
