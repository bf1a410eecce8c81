"""Ask a person, then erase what NPCs keep of a player: for Admins, and for players themselves."""

from collections.abc import Callable, Generator
from typing import Any

from evennia_ai.commands.base import counted, name_of
from evennia_ai.engine.actors import Actor
from evennia_ai.npc.senses.presence import NPC
from evennia_ai.store.erasing import Erased, Forgotten, forget_person, forgettable

Asked = Generator[str, Any, bool]


def forget_player(
    player_ref: str, npc: NPC | None, *, by: Actor, agreed: Callable[[str], Asked]
) -> Generator[Any, Any, str]:
    """Ask, then erase what one NPC, or every NPC, has of a player. Return a line about it."""
    npc_ref = npc.ai.ref if npc else None
    who, with_whom = name_of(player_ref), npc.key if npc else "every NPC"
    what = f"the private conversations of {who} with {with_whom}, and the memories of {who}"
    found = forgettable(player_ref, npc_ref=npc_ref)
    if found == Forgotten(said=Erased(), memories=0):
        return f"There is nothing to erase of {what}."
    if not (yield from agreed(f"Erase {what}: {counted_words(found)}? This cannot be undone.")):
        return "Nothing was erased."
    done = forget_person(player_ref, by=by, npc_ref=npc_ref)
    return (
        f"Erased {what}: {counted_words(done)}. What was said aloud in rooms stays, as do exported"
        f" files and backups.{_calls_in_words(done)}"
    )


def _calls_in_words(done: Forgotten) -> str:
    """Return a sentence if model calls lost the note that they answered this player, else ""."""
    if not done.calls:
        return ""
    calls = "1 call of a model was" if done.calls == 1 else f"{done.calls} calls of models were"
    return f" {calls} made for their words; that it was for theirs is forgotten."


def counted_words(erased: Forgotten) -> str:
    """Return in words how much was or would be erased."""
    said, memories = erased.said, erased.memories
    told = [
        *([counted(memories, "memory", "memories")] if memories else []),
        *(["the persona and what prompts told of it"] if erased.persona else []),
        *(["what NPCs had still to learn from their words aloud"] if erased.unlearnt else []),
        *([counted(erased.reports, "report")] if erased.reports else []),
    ]
    if said.conversations or not told:
        told[:0] = [
            counted(said.conversations, "conversation"),
            counted(said.records, "record"),
            counted(said.turns, "turn"),
        ]
    return ", ".join(told)
