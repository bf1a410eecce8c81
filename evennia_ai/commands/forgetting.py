"""Ask a person, then erase what NPCs keep of a player: for Admins, and for players themselves."""

from collections.abc import Callable, Generator
from typing import Any

from evennia_ai.commands.base import name_of
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.text.phrases import Phrase
from evennia_ai.npc.senses.presence import NPC
from evennia_ai.store.erasing import Erased, Forgotten, forget_person, forgettable

Asked = Generator[str, Any, bool]


def forget_player(
    player_ref: str, npc: NPC | None, *, by: Actor, agreed: Callable[[Phrase], Asked]
) -> Generator[Any, Any, Phrase]:
    """Ask, then erase what one NPC, or every NPC, has of a player. Return a line about it."""
    npc_ref = npc.ai.ref if npc else None
    who = name_of(player_ref)
    what = Phrase(
        "the private conversations of {player} with {npc}, and the memories of {player}",
        player=who,
        npc=npc.key if npc else Phrase("every NPC"),
    )
    found = forgettable(player_ref, npc_ref=npc_ref)
    if found == Forgotten(said=Erased(), memories=0):
        return Phrase("There is nothing to erase of {what}.", what=what)
    question = Phrase(
        "Erase {what}: {counts}? This cannot be undone.", what=what, counts=counts_in_words(found)
    )
    if not (yield from agreed(question)):
        return Phrase("Nothing was erased.")
    done = forget_person(player_ref, by=by, npc_ref=npc_ref)
    told = Phrase(
        "Erased {what}: {counts}. What was said aloud in rooms stays, as do exported files and"
        " backups.",
        what=what,
        counts=counts_in_words(done),
    )
    if not done.calls:
        return told
    calls = Phrase(
        "{number} call of a model was made for their words; that it was for theirs is forgotten.",
        plural="{number} calls of models were made for their words; that it was for theirs is"
        " forgotten.",
        number=done.calls,
    )
    return Phrase("{told} {calls}", told=told, calls=calls)


def counts_in_words(erased: Forgotten) -> Phrase:
    """Return how much was or would be erased."""
    said = erased.said
    told: list[Phrase] = []
    if erased.memories:
        told.append(Phrase("{number} memory", plural="{number} memories", number=erased.memories))
    if erased.persona:
        told.append(Phrase("the persona and what prompts told of it"))
    if erased.unlearnt:
        told.append(Phrase("what NPCs had still to learn from their words aloud"))
    if erased.reports:
        told.append(Phrase("{number} report", plural="{number} reports", number=erased.reports))
    if said.conversations or not told:
        told[:0] = [
            Phrase(
                "{number} conversation", plural="{number} conversations", number=said.conversations
            ),
            Phrase("{number} record", plural="{number} records", number=said.records),
            Phrase("{number} turn", plural="{number} turns", number=said.turns),
        ]
    return Phrase("{counts}", counts=tuple(told))
