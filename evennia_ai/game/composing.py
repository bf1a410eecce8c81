"""Composing in the game: the first prompt of a turn, with room for what the history still needs.

Where the prompt is nearly full, the older part of the history is summarised first, and the prompt
composed again from what is left.
"""

from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from twisted.internet.defer import Deferred

from evennia_ai.compose import Composition
from evennia_ai.execution.request import ExecutionRequest
from evennia_ai.game import gather
from evennia_ai.game.compacting import Outcome, Wanted
from evennia_ai.game.fullness import Fullness, fullness_of
from evennia_ai.game.gather import Heard
from evennia_ai.game.runtime import runtime
from evennia_ai.minds.view import NPCView
from evennia_ai.prompt.messages import Message, ToolSpec
from evennia_ai.store import turns


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed:
    """A prompt and what it was made from, which may be another one by the time it is sent."""

    view: NPCView
    """What the NPC was made of when the turn was gathered; it counts until the turn has ended."""
    request: ExecutionRequest
    composition: Composition

    def after(self, messages: Sequence[Message]) -> "Composed":
        """The prompt that goes on after calls of tools and what came of them.

        BudgetError: there is no room for it.
        """
        request = self.request.after(messages)
        return replace(self, request=request, composition=request.composed())


Steps = Generator["Deferred[Any]", Any, Composed | None]


class Composer(Protocol):
    """The mind whose prompt it is."""

    npc: Any
    ref: str

    @property
    def waiting_records(self) -> Collection[str]: ...

    def view(self) -> NPCView: ...


def with_room(mind: Composer, heard: Heard, *, tools: Sequence[ToolSpec]) -> Steps:
    """The prompt that answers `heard`; None: the server stops.

    BudgetError: what is required does not fit. ThrashError: a compaction was no use. StoreError:
    something cannot be read.
    """
    composed = _composed(mind, heard, tools)
    fullness = fullness_of(composed.composition.prompt, cut=composed.request.inputs.cut)
    compactor = runtime().compactor
    if not compactor.is_due(fullness, "turn"):
        return composed
    wanted = _wanted(mind, heard, fullness, npc_name=composed.view.char_name)
    outcome: Outcome = yield compactor.compact(wanted)
    if outcome.stopped:
        return None
    composed = _composed(mind, heard, tools)
    if outcome.record is not None:  # the prompt after it is looked at like any other
        compactor.look_again(composed.composition.prompt, wanted)
    return composed


def _composed(mind: Composer, heard: Heard, tools: Sequence[ToolSpec]) -> Composed:
    view = mind.view()
    request = gather.request_for(mind.npc, view, heard, tools=tools, waiting=mind.waiting_records)
    return Composed(view=view, request=request, composition=request.composed())


def _wanted(mind: Composer, heard: Heard, fullness: Fullness, *, npc_name: str) -> Wanted:
    """The compaction without which the turn would have too little room."""
    return Wanted(
        conversation=heard.conversation,
        npc_name=npc_name,
        asked_by=f"turn {turns.next_number(mind.ref)}",
        is_pressing=True,
        fullness=fullness,
        unanswered={*mind.waiting_records, heard.record.id},
    )
