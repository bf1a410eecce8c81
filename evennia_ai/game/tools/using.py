"""The tool to use a thing: what that does, the game says by a hook of the thing.

Evennia has no such hook of its own. A thing that can be used has a method
`at_use(user, target)`; it gives back what the user perceives, None where there is nothing to tell,
False where it did not work.
"""

from typing import Any, Final

from pydantic import Field

from evennia_ai.game.tools.handling import one_of
from evennia_ai.game.tools.sight import carried, exits, people, thing, things
from evennia_ai.game.tools.tool import Name, Refused, Tool, ToolArguments, Use

HOOK: Final = "at_use"


class UseItem(Tool):
    """Uses a thing, on another or on somebody where that is said."""

    name = "use"
    description = "Use something that you carry or that lies here, on somebody or something or not."
    dangerous = True

    class Arguments(ToolArguments):
        item: Name = Field(description="what to use")
        on: Name | None = Field(
            default=None, description="whom or what to use it on; leave it out for nothing"
        )

    def run(self, use: Use, arguments: Arguments) -> str:
        """Have the thing do what it does, if its lock lets the NPC."""
        npc = use.npc
        own = carried(npc)
        item = thing(npc, arguments.item, [*own, *things(npc)], none="There is no {} to use here.")
        name = one_of(npc, item)
        if not _may_use(npc, item, is_carried=item in own):
            raise Refused(f"You may not use {name}.")
        target = None if arguments.on is None else _target(npc, arguments.on)
        hook = getattr(item, HOOK, None)
        if not callable(hook):
            raise Refused(f"Nothing can be done with {name}.")
        told = hook(npc, target)
        if told is False:
            raise Refused(f"Using {name} did not work.")
        return f"You used {name}." if told in (None, True) else str(told)


def _may_use(npc: Any, item: Any, *, is_carried: bool) -> bool:
    """The lock `use` decides; without one, what is carried may be used, or could be picked up."""
    default = is_carried or bool(item.access(npc, "get"))
    return bool(item.access(npc, "use", default=default))


def _target(npc: Any, name: str) -> Any:
    among = [*people(npc), *things(npc), *carried(npc), *exits(npc)]
    return thing(npc, name, among, none="There is no {} here.")
