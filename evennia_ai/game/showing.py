"""Showing: somebody lets an NPC have a look at a thing, before everybody who is there."""

from typing import Any, Final

from evennia_ai.game.happenings import Happening, description, item_name, npcs_in, tell
from evennia_ai.game.output import SafeName, escaped

SEEN: Final = "{shower} shows {item} to {npc}."
MAX_DESCRIPTION: Final = 1000
"""Characters of a thing's description that an NPC takes in."""


class _OneOf:
    """A thing's name for a message, with its article: "a rope"."""

    def __init__(self, item: Any) -> None:
        self._item = item

    def get_display_name(self, looker: Any = None, **kwargs: Any) -> str:
        """The name for `looker`, as Evennia's hook of this name."""
        return escaped(item_name(looker, self._item))


def show(shower: Any, item: Any, npc: Any) -> bool:
    """Have `shower` show a thing to `npc`; false where the NPC does not see who does it.

    The NPC takes in what the thing is called and how it looks; others see that it was shown.
    """
    shower.location.msg_contents(
        (SEEN, {"type": "show"}),
        from_obj=shower,
        exclude=[shower],
        mapping={"shower": SafeName(shower), "item": _OneOf(item), "npc": SafeName(npc)},
    )
    for other in npcs_in(shower.location):
        if other != npc:
            tell(other, _seen(shower, item, npc))
    return tell(npc, _shown(shower, item, npc))


def _shown(shower: Any, item: Any, npc: Any) -> Happening:
    looks = description(npc, item, most=MAX_DESCRIPTION) if item.access(npc, "view") else ""
    return Happening(
        kind="show",
        text="{actor} shows you {item}.",
        actor=shower,
        item=item,
        to=npc,
        wants_answer=True,
        detail=f"It looks like this: {looks}" if looks else "",
    )


def _seen(shower: Any, item: Any, npc: Any) -> Happening:
    return Happening(
        kind="show", text="{actor} shows {item} to {to}.", actor=shower, item=item, to=npc
    )
