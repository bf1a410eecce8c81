"""The tool to go through an exit, by the rules of Evennia's own exit commands."""

from evennia.server.signals import SIGNAL_EXIT_TRAVERSED
from pydantic import Field

from evennia_ai.game.tools.sight import exits, shown_name, thing
from evennia_ai.game.tools.tool import Name, Refused, Tool, ToolArguments, Use


class Move(Tool):
    """Goes through an exit; the turn ends with it, for it belongs to the place that was left."""

    name = "move"
    description = "Leave through an exit. Say what you want to say before you go."
    dangerous = True
    ends_turn = True

    class Arguments(ToolArguments):
        exit: Name = Field(description="the exit to take")

    def run(self, use: Use, arguments: Arguments) -> str:
        """Go, if the exit lets the NPC pass."""
        npc, left = use.npc, use.npc.location
        way = thing(npc, arguments.exit, exits(npc), none="There is no exit {} here.")
        closed = way.db.err_traverse or f"You cannot go {shown_name(npc, way)}."
        if not way.access(npc, "traverse"):
            if not way.db.err_traverse:
                way.at_failed_traverse(npc)
            raise Refused(closed)
        way.at_traverse(npc, way.destination)
        if npc.location == left and way.destination != left:
            raise Refused(closed)
        SIGNAL_EXIT_TRAVERSED.send(sender=way, traverser=npc)
        return f"You went {shown_name(npc, way)} and are now in {shown_name(npc, npc.location)}."
