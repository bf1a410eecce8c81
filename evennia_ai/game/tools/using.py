"""The tool to use a thing: what that does, the game says by a hook of the thing.

Evennia has no such hook of its own. A thing that can be used has a method `at_use(user, target)`;
for all others the game may name a function of user, thing and target in EVENNIA_AI_USE_ITEM. Either
gives back what the user perceives, None where there is nothing to tell, False where it did not
work.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from django.utils.module_loading import import_string
from evennia.utils import logger
from pydantic import Field

from evennia_ai.game.senses.presence import NPC
from evennia_ai.game.tools.handling import one_of
from evennia_ai.game.tools.sight import carried, exits, people, thing, things
from evennia_ai.game.tools.tool import Name, Refused, Tool, ToolArguments, Use
from evennia_ai.settings.conf import conf

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
        target = None if arguments.on is None else _used_on(npc, arguments.on)
        use_it = _way_to_use(item)
        if use_it is None:
            raise Refused(f"Nothing can be done with {name}.")
        told = use_it(npc, target)
        if told is False:
            raise Refused(f"Using {name} did not work.")
        return f"You used {name}." if told in (None, True) else str(told)


def use_problem(path: str) -> str:
    """What is wrong with the function at `path`, "" where nothing is."""
    if not path:
        return ""
    try:
        found = import_string(path)
    except Exception as error:  # importing a game's module runs its code
        return f"{path}: it cannot be imported: {error}"
    return "" if callable(found) else f"{path}: it is no function"


def _way_to_use(item: Any) -> Callable[[Any, Any], Any] | None:
    """What is called to use a thing: its own hook, else the game's function."""
    hook = getattr(item, HOOK, None)
    if callable(hook):
        own: Callable[[Any, Any], Any] = hook
        return own
    function = _games_function(conf().use_item)
    return None if function is None else lambda user, target: function(user, item, target)


@lru_cache(maxsize=4)
def _games_function(path: str) -> Callable[[Any, Any, Any], Any] | None:
    """The game's function at `path`; one that cannot be had is told once and left out."""
    problem = use_problem(path)
    if problem:
        logger.log_err(f"evennia_ai: EVENNIA_AI_USE_ITEM: {problem}")
    if problem or not path:
        return None
    found: Callable[[Any, Any, Any], Any] = import_string(path)
    return found


def _may_use(npc: NPC, item: Any, *, is_carried: bool) -> bool:
    """The lock `use` decides; without one, what is carried may be used, or could be picked up."""
    default = is_carried or bool(item.access(npc, "get"))
    return bool(item.access(npc, "use", default=default))


def _used_on(npc: NPC, name: str) -> Any:
    among = [*people(npc), *things(npc), *carried(npc), *exits(npc)]
    return thing(npc, name, among, none="There is no {} here.")
