"""Ask a person, then erase what NPCs keep of a player: for Admins, and for players themselves."""

from collections.abc import Callable, Generator
from typing import Any

from evennia_ai.commands.base import name_of
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.text.phrases import Phrase
from evennia_ai.npc.mind.own_data import forget_question, forgotten_in_words, forgotten_things
from evennia_ai.npc.senses.presence import NPC
from evennia_ai.store.erasing import forget_person, forgettable

Asked = Generator[str, Any, bool]


def forget_player(
    player_ref: str, npc: NPC | None, *, by: Actor, agreed: Callable[[Phrase], Asked]
) -> Generator[Any, Any, Phrase]:
    """Ask, then erase what one NPC, or every NPC, has of a player. Return a line about it."""
    npc_ref, npc_name = (npc.ai.ref, str(npc.key)) if npc else (None, "")
    player = name_of(player_ref)
    found = forgettable(player_ref, npc_ref=npc_ref)
    question = forget_question(found, player=player, npc=npc_name)
    if question is None:
        what = forgotten_things(player, npc_name)
        return Phrase("There is nothing to erase of {what}.", what=what)
    if not (yield from agreed(question)):
        return Phrase("Nothing was erased.")
    done = forget_person(player_ref, by=by, npc_ref=npc_ref)
    return forgotten_in_words(done, player=player, npc=npc_name)
