"""Composing in the game: the first prompt of a turn, with room for what the history still needs.

Where the prompt is nearly full, the older part of the history is summarised first, and the prompt
composed again from what is left.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from evennia_ai.compose import Composition
from evennia_ai.game.inputs.gather import Gathered, gathered
from evennia_ai.game.inputs.mind import Mind
from evennia_ai.game.recording.heard import CommittedEvent
from evennia_ai.game.upkeep.compacting import Compactor, Wanted
from evennia_ai.game.upkeep.compaction_due import Fullness, fullness_of
from evennia_ai.prompt.messages import Message, ToolSpec
from evennia_ai.settings.npc import NPCSettings
from evennia_ai.store.history import turns


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """A prompt and what it was made from, which may be another one by the time it is sent."""

    gathered: Gathered
    """What was gathered of the world and the store; it counts until the turn has ended."""

    composition: Composition

    def after(self, messages: Sequence[Message]) -> "Composed":
        """The prompt that goes on after calls of tools and what came of them.

        BudgetError: there is no room for it.
        """
        return composed(self.gathered.after(messages))


def composed(gathered: Gathered) -> Composed:
    """The prompt of what was gathered. BudgetError: what is required does not fit."""
    return Composed(gathered=gathered, composition=gathered.request.composed())


async def with_room(
    mind: Mind,
    heard: CommittedEvent,
    *,
    settings: NPCSettings,
    tools: Sequence[ToolSpec],
    compactor: Compactor,
) -> Composed | None:
    """The prompt that answers `heard`; None: the server stops.

    BudgetError: what is required does not fit. ThrashError: a compaction was no use. StoreError:
    something cannot be read.
    """
    first = composed(gathered(mind, heard, settings=settings, tools=tools))
    fullness = fullness_of(first.composition.prompt, cut=first.gathered.request.inputs.cut)
    if not compactor.is_due(fullness, "turn"):
        return first
    wanted = _wanted(mind, heard, fullness, npc_name=first.gathered.view.char_name)
    outcome = await compactor.compact(wanted)
    if outcome.stopped:
        return None
    again = composed(gathered(mind, heard, settings=settings, tools=tools))
    if outcome.record is not None:  # the prompt after it is looked at like any other
        compactor.look_again(again.composition.prompt, wanted)
    return again


def _wanted(mind: Mind, heard: CommittedEvent, fullness: Fullness, *, npc_name: str) -> Wanted:
    """The compaction without which the turn would have too little room."""
    return Wanted(
        conversation=heard.conversation,
        npc_name=npc_name,
        asked_by=f"turn {turns.next_number(mind.ref)}",
        is_pressing=True,
        fullness=fullness,
        unanswered={*mind.waiting_records, heard.record.id},
    )
