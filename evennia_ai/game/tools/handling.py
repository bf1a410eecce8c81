"""Tools that move things: give, take and drop, by the rules of Evennia's own commands.

The locks and hooks are asked as for a player (`get`, `at_pre_get`, `at_pre_give`, `at_pre_drop`);
an NPC gives only what it carries and takes only what lies about.
"""

from typing import Any

from pydantic import Field

from evennia_ai.game.output import gave, pose
from evennia_ai.game.text import plain_name
from evennia_ai.game.tools.sight import carried, person, shown_name, thing, things
from evennia_ai.game.tools.tool import Name, Refused, Tool, ToolArguments, Use


class Take(Tool):
    """Picks up something that lies where the NPC is."""

    name = "take"
    description = "Pick up something that lies here."
    dangerous = True

    class Arguments(ToolArguments):
        item: Name = Field(description="what to pick up")

    def run(self, use: Use, arguments: Arguments) -> str:
        """Take it, if its lock and its hooks let the NPC."""
        npc = use.npc
        item = thing(npc, arguments.item, things(npc), none="There is no {} lying here.")
        name = one_of(npc, item)
        if not item.access(npc, "get"):
            raise Refused(item.db.get_err_msg or f"You cannot take {name}.")
        if not item.at_pre_get(npc):
            raise Refused(f"You cannot take {name}.")
        item.move_to(npc, quiet=True, move_type="get")
        if item.location != npc:
            raise Refused(f"You cannot take {name}.")
        item.at_get(npc)
        pose(npc, f"picks up {name}.", hops=use.hops)
        return f"You have {name} now."


class Drop(Tool):
    """Puts down something the NPC carries."""

    name = "drop"
    description = "Put down something you carry."
    dangerous = True

    class Arguments(ToolArguments):
        item: Name = Field(description="what to put down")

    def run(self, use: Use, arguments: Arguments) -> str:
        """Drop it, if its hooks let the NPC."""
        npc = use.npc
        item = thing(npc, arguments.item, carried(npc), none="You do not carry {}.")
        name = one_of(npc, item)
        put_down(npc, item)
        pose(npc, f"drops {name}.", hops=use.hops)
        return f"You dropped {name}."


class Give(Tool):
    """Gives something the NPC carries to somebody."""

    name = "give"
    description = "Give something you carry to somebody here. What you give is gone."
    dangerous = True

    class Arguments(ToolArguments):
        item: Name = Field(description="what to give")
        to: Name = Field(description="who gets it")

    def run(self, use: Use, arguments: Arguments) -> str:
        """Give it, if the hooks of thing and receiver let the NPC."""
        npc = use.npc
        item = thing(npc, arguments.item, carried(npc), none="You do not carry {}.")
        to = person(npc, arguments.to, answered=use.event.speaker_ref)
        name, whom = one_of(npc, item), shown_name(npc, to)
        hand_over(npc, item, to)
        return f"You gave {name} to {whom}."


def put_down(npc: Any, item: Any) -> None:
    """Put down what the NPC holds, where it is; `Refused`: the hooks do not let it."""
    place, refused = npc.location, f"You cannot drop {one_of(npc, item)} here."
    if place is None or not item.at_pre_drop(npc):
        raise Refused(refused)
    item.move_to(place, quiet=True, move_type="drop")
    if item.location == npc:
        raise Refused(refused)
    item.at_drop(npc)


def hand_over(npc: Any, item: Any, to: Any) -> None:
    """Give somebody what the NPC holds; `Refused`: the hooks of thing or receiver do not let it."""
    refused = f"You cannot give {one_of(npc, item)} to {shown_name(npc, to)}."
    if not item.at_pre_give(npc, to):
        raise Refused(refused)
    item.move_to(to, quiet=True, move_type="give")
    if item.location == npc:
        raise Refused(refused)
    item.at_give(npc, to)
    gave(npc, to, item)


def one_of(npc: Any, item: Any) -> str:
    """What the NPC calls a thing, with its article: "a lantern"."""
    return plain_name(str(item.get_numbered_name(1, npc, return_string=True)))
