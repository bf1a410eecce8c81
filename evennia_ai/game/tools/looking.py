"""The tool to look around."""

from typing import Any

from pydantic import Field

from evennia_ai.game.naming import with_labels
from evennia_ai.game.tools.sight import carried, exits, people, thing, things
from evennia_ai.game.tools.tool import Name, Refused, Tool, ToolArguments, Use


class Look(Tool):
    """Looks at the place, or at one thing or person."""

    name = "look"
    description = "Look around where you are, or look at somebody or something here."

    class Arguments(ToolArguments):
        at: Name | None = Field(
            default=None, description="who or what to look at; leave it out to look around"
        )

    def run(self, use: Use, arguments: Arguments) -> str:
        """What the game describes to the NPC, by its own hook."""
        shown = str(use.npc.at_look(_target(use.npc, arguments.at)))
        return with_labels(use.npc, shown, people(use.npc))


def _target(npc: Any, name: str | None) -> Any:
    """The place, or what of it the NPC may see is called so."""
    if npc.location is None:
        raise Refused("You are nowhere; there is nothing to see.")
    if name is None:
        return npc.location
    among = [*people(npc), *things(npc), *exits(npc), *carried(npc)]
    return thing(npc, name, among, none="You see no {} here.")
