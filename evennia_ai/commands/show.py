"""The command `show`: let an NPC have a look at something."""

from typing import Any

from evennia_ai.commands.naming import npc_here
from evennia_ai.commands.strict import CommandError, StrictCommand
from evennia_ai.game.happenings import item_name
from evennia_ai.game.showing import show
from evennia_ai.game.text import plain_name


class CmdShow(StrictCommand):
    """
    Show something you carry to somebody who is here

    Usage:
      show <thing> to <name>
      show <thing> = <name>

    Examples:
      show map to oren
      show old coin = oren

    The one you show it to sees what it looks like. Everybody here sees that
    you show it. You keep it; to give it away, use give.
    """

    key = "show"
    locks = "cmd:all()"
    help_category = "General"
    auto_help = True
    rhs_split = ("=", " to ")
    verbs = {"": "show_thing"}

    def show_thing(self) -> None:
        """Show the thing to the one who was named."""
        name, whom = self.both("show <thing> to <name>")
        if self.caller.location is None:
            raise CommandError("You are nowhere, so nobody can see it.")
        item = self._carried(name)
        npc = npc_here(self.caller, whom)
        seen = show(self.caller, item, npc)
        their_name = plain_name(npc.get_display_name(self.caller))
        self.say(f"You show {item_name(self.caller, item)} to {their_name}.")
        if not seen:
            self.say(f"{their_name} does not notice.")

    def _carried(self, name: str) -> Any:
        """The thing that is meant; of things of one name any is as good."""
        found = self.caller.search(name, location=self.caller, quiet=True)
        if not found:
            raise CommandError(f"You do not carry '{name}'.")
        names = sorted({plain_name(item.get_display_name(self.caller)) for item in found})
        if len(names) > 1:
            raise CommandError(f"'{name}' could be {', '.join(names)}; name one of them.")
        return found[0]
