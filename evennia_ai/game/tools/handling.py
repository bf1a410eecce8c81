"""Tools for things and places: look, go, take, give and drop, by Evennia's own rules."""

from typing import Any

from evennia.server.signals import SIGNAL_EXIT_TRAVERSED
from pydantic import Field

from evennia_ai.game.senses.presence import NPC, with_labels
from evennia_ai.game.senses.text import plain_name
from evennia_ai.game.speech.output import gave, pose
from evennia_ai.game.tools.sight import carried, exits, people, person, shown_name, thing, things
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


def put_down(npc: NPC, item: Any) -> None:
    """Put down what the NPC holds, where it is; `Refused`: the hooks do not let it."""
    place, refused = npc.location, f"You cannot drop {one_of(npc, item)} here."
    if place is None or not item.at_pre_drop(npc):
        raise Refused(refused)
    item.move_to(place, quiet=True, move_type="drop")
    if item.location == npc:
        raise Refused(refused)
    item.at_drop(npc)


def hand_over(npc: NPC, item: Any, to: Any) -> None:
    """Give somebody what the NPC holds; `Refused`: the hooks of thing or receiver do not let it."""
    refused = f"You cannot give {one_of(npc, item)} to {shown_name(npc, to)}."
    if not item.at_pre_give(npc, to):
        raise Refused(refused)
    item.move_to(to, quiet=True, move_type="give")
    if item.location == npc:
        raise Refused(refused)
    item.at_give(npc, to)
    gave(npc, to, item)


def one_of(npc: NPC, item: Any) -> str:
    """What the NPC calls a thing, with its article: "a lantern"."""
    return plain_name(str(item.get_numbered_name(1, npc, return_string=True)))


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


def _target(npc: NPC, name: str | None) -> Any:
    """The place, or what of it the NPC may see is called so."""
    if npc.location is None:
        raise Refused("You are nowhere; there is nothing to see.")
    if name is None:
        return npc.location
    among = [*people(npc), *things(npc), *exits(npc), *carried(npc)]
    return thing(npc, name, among, none="You see no {} here.")


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
