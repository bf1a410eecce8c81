"""Idle time: work for an NPC after its turn, while nobody waits for it.

A long history is compacted, and the NPC learns from what was said. Only one such work runs in the
whole game, so that no player has to wait; the others queue. NPCs answer meanwhile as usual.
"""

from typing import Any, Final, NamedTuple

from evennia.utils import logger
from twisted.internet.defer import Deferred

from evennia_ai.engine.prompt.prompt import Prompt
from evennia_ai.npc.inputs.mind import Mind
from evennia_ai.npc.model_calls.limits import why_halted
from evennia_ai.npc.recording.retrying import DATABASE_ERRORS
from evennia_ai.npc.upkeep.compacting import Compactor, Wanted
from evennia_ai.npc.upkeep.consolidating import Consolidator
from evennia_ai.npc.upkeep.fullness import Fullness, fullness_after
from evennia_ai.services.llm.resilience import Clock
from evennia_ai.store.history.record_rows import ConversationRef
from evennia_ai.store.history.windows import windows

IDLE_SECONDS: Final = 5.0
"""How long a conversation must be quiet first."""


class _Rested(NamedTuple):
    """A quiet conversation and its last prompt."""

    mind: Mind
    where: ConversationRef
    prompt: Prompt


class IdleTime:
    """Compacts histories and lets NPCs learn while nothing else happens."""

    def __init__(self, compactor: Compactor, consolidator: Consolidator, clock: Clock) -> None:
        self._compactor: Final = compactor
        self._consolidator: Final = consolidator
        self._clock: Final = clock
        self._planned: dict[int, Any] = {}  # by conversation: the scheduled check
        self._queue: dict[int, _Rested] = {}  # by conversation: waits for the running work
        self._is_at_work = False

    def after_turn(self, mind: Mind, where: ConversationRef, prompt: Prompt) -> None:
        """Schedule work for the conversation of a turn that has ended, if any is due."""
        try:
            is_full = self._compactor.is_due(_fullness(where, prompt), "idle")
            is_due = is_full or self._consolidator.is_due(where)
            self._consolidator.tidy(where.npc_ref)
        except DATABASE_ERRORS as error:
            _log(where, error)
            return
        if is_due:
            self._look_later(_Rested(mind, where, prompt))

    def close(self) -> None:
        """Begin nothing more."""
        for call in self._planned.values():
            call.cancel()
        self._planned.clear()
        self._queue.clear()

    def _look_later(self, rested: _Rested, after_seconds: float = IDLE_SECONDS) -> None:
        key = rested.where.id
        self._queue.pop(key, None)
        known = self._planned.pop(key, None)
        if known is not None:
            known.cancel()
        self._planned[key] = self._clock.callLater(after_seconds, self._look, rested)

    def _look(self, rested: _Rested) -> None:
        del self._planned[rested.where.id]
        if self._is_at_work:
            self._queue[rested.where.id] = rested
            return
        work = self._tried(rested)
        if work is None:
            self._look_at_next()
        else:
            self._is_at_work = True
            work.addBoth(self._ended)

    def _ended(self, _: object) -> None:
        self._is_at_work = False
        self._look_at_next()

    def _look_at_next(self) -> None:
        """Check the first in the queue, in a later call of the reactor, because a check takes a
        while.
        """
        if self._queue:
            self._look_later(next(iter(self._queue.values())), after_seconds=0)

    def _tried(self, rested: _Rested) -> "Deferred[Any] | None":
        """Start work for it. None if none is allowed, needed or possible."""
        mind, where, _ = rested
        if why_halted(where.npc_ref):  # the first turn after the release schedules it again
            return None
        if mind.is_busy:  # the running turn calls `after_turn` when it ends
            return None
        try:
            return self._begun(rested)
        except DATABASE_ERRORS as error:
            _log(where, error)
            return None

    def _begun(self, rested: _Rested) -> "Deferred[Any] | None":
        """Start the first work that is due. Other work waits for the end of the next turn."""
        _, where, _ = rested
        wanted = _wanted(rested)
        if self._compactor.is_due(wanted.fullness, "idle"):
            return self._compactor.compact(wanted)
        if self._consolidator.is_due(where):
            return self._consolidator.consolidate(
                where, npc_name=wanted.npc_name, npc_limits=wanted.npc_limits
            )
        return None


def _wanted(rested: _Rested) -> Wanted:
    mind, where, prompt = rested
    return Wanted(
        conversation=where,
        npc_name=mind.view().char_name,
        asked_by="idle time",
        is_pressing=False,
        fullness=_fullness(where, prompt),
        npc_limits=mind.settings.limits,
    )


def _fullness(where: ConversationRef, prompt: Prompt) -> Fullness:
    window = windows(where.id)
    return fullness_after(prompt, window.history, cut=window.cut)


def _log(where: ConversationRef, error: Exception) -> None:
    logger.log_err(f"evennia_ai: {where}, in idle time: nothing was tried: {error}")
