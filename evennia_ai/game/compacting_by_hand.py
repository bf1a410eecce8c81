"""Compacting by hand: a builder wants the conversation of a room compacted now."""

from typing import Any, Protocol

from twisted.internet.defer import Deferred, succeed

from evennia_ai.game import gather
from evennia_ai.game.compacting import Outcome, Wanted
from evennia_ai.game.fullness import fullness_of
from evennia_ai.game.gather import Talk
from evennia_ai.game.runtime import runtime
from evennia_ai.minds.view import NPCView
from evennia_ai.prompt.prompt import Prompt
from evennia_ai.store import conversations


class Previewed(Protocol):
    """What is asked of the NPC."""

    npc: Any
    ref: str

    @property
    def is_busy(self) -> bool: ...

    def view(self) -> NPCView: ...

    def preview(self) -> Prompt: ...


def compact_room(mind: Previewed, *, by: str) -> "Deferred[Outcome]":
    """Compact what the NPC remembers of the room it is in, however long that is.

    BudgetError: no prompt can be made, so nobody knows how much room there is.
    """
    if mind.is_busy:
        return succeed(Outcome(told="it is answering somebody; try again in a moment"))
    room = mind.npc.location
    talk = Talk(kind="room", place_ref=str(room.id) if room else "nowhere")
    where = gather.found(mind.ref, talk)
    if where is None:
        return succeed(Outcome(told="nothing was said here that it remembers"))
    wanted = Wanted(
        conversation=where,
        npc_name=mind.view().char_name,
        asked_by=by,
        is_pressing=True,
        fullness=fullness_of(mind.preview(), cut=conversations.cut(where)),
    )
    return runtime().compactor.compact(wanted)
