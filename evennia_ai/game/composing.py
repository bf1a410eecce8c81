"""Composing in the game: the first prompt of a turn, with room for what the history still needs.

Where the prompt is nearly full, the older part of the history is summarised first, and the prompt
composed again from what is left.
"""

from collections.abc import Collection, Generator, Sequence
from typing import Any, Protocol

from twisted.internet.defer import Deferred

from evennia_ai.compose import Composition
from evennia_ai.execution.request import ExecutionRequest
from evennia_ai.game import gather
from evennia_ai.game.compacting import Outcome, Wanted
from evennia_ai.game.fullness import Fullness, fullness_of
from evennia_ai.game.gather import Heard
from evennia_ai.game.runtime import runtime
from evennia_ai.game.view import NPCView
from evennia_ai.prompt.tool_specs import ToolSpec
from evennia_ai.store import turns

Composed = tuple[ExecutionRequest, Composition]
Steps = Generator["Deferred[Any]", Any, Composed | None]


class Composer(Protocol):
    """The mind whose prompt it is."""

    npc: Any
    ref: str

    @property
    def waiting_records(self) -> Collection[str]: ...

    def view(self) -> NPCView: ...


def with_room(mind: Composer, heard: Heard, *, tools: Sequence[ToolSpec]) -> Steps:
    """The request that answers `heard`, and its prompt; None: the server stops.

    BudgetError: what is required does not fit. ThrashError: a compaction was no use. StoreError:
    something cannot be read.
    """
    request, composed = _composed(mind, heard, tools)
    fullness = fullness_of(composed.prompt, cut=request.inputs.cut)
    compactor = runtime().compactor
    if not compactor.is_due(fullness, "turn"):
        return request, composed
    wanted = _wanted(mind, heard, fullness)
    outcome: Outcome = yield compactor.compact(wanted)
    if outcome.stopped:
        return None
    request, composed = _composed(mind, heard, tools)
    if outcome.record is not None:  # the prompt after it is looked at like any other
        compactor.look_again(composed.prompt, wanted)
    return request, composed


def _composed(mind: Composer, heard: Heard, tools: Sequence[ToolSpec]) -> Composed:
    request = gather.request_for(
        mind.npc, mind.view(), heard, tools=tools, waiting=mind.waiting_records
    )
    return request, request.composed()


def _wanted(mind: Composer, heard: Heard, fullness: Fullness) -> Wanted:
    """The compaction without which the turn would have too little room."""
    return Wanted(
        conversation=heard.conversation,
        npc_name=mind.view().char_name,
        asked_by=f"turn {turns.next_number(mind.ref)}",
        is_pressing=True,
        fullness=fullness,
        unanswered={*mind.waiting_records, heard.record.id},
    )
