"""Work for an NPC after its turn, while nobody speaks to it.

A long history is compacted, and the NPC learns from what was said. Only one such work runs in the
whole game, and the others queue, so that players never wait for it. NPCs answer meanwhile as usual.
"""

from typing import Any, Final, NamedTuple

from evennia.utils import logger
from twisted.internet.defer import Deferred

from evennia_ai.engine.prompt.prompt import Prompt
from evennia_ai.npc.inputs.mind import Mind
from evennia_ai.npc.model_calls.limits import why_halted
from evennia_ai.npc.recording.retrying import DATABASE_ERRORS
from evennia_ai.npc.upkeep.compacting import Compactor, Fullness, Wanted, fullness_after
from evennia_ai.npc.upkeep.consolidating import Consolidator
from evennia_ai.services.llm.resilience import Clock
from evennia_ai.store.history.record_rows import ConversationRef
from evennia_ai.store.history.windows import windows

IDLE_SECONDS: Final = 5.0
"""How long a conversation must be quiet before work for it begins."""


class _Rested(NamedTuple):
    """A quiet conversation with the last prompt that was made from it."""

    mind: Mind
    where: ConversationRef
    prompt: Prompt


class IdleTime:
    """Compacts histories and lets NPCs learn, while nobody speaks to them."""

    def __init__(self, compactor: Compactor, consolidator: Consolidator, clock: Clock) -> None:
        self._compactor: Final = compactor
        self._consolidator: Final = consolidator
        self._clock: Final = clock
        self._planned: dict[int, Any] = {}  # by conversation: the scheduled check of its work
        # by conversation: what waits for the end of the running work
        self._queue: dict[int, _Rested] = {}
        self._is_at_work = False

    def after_turn(self, mind: Mind, where: ConversationRef, prompt: Prompt) -> None:
        """After a turn, schedule work for its conversation, if any is due."""
        try:
            is_full = self._compactor.is_due(_fullness(where, prompt), "idle")
            is_due = is_full or self._consolidator.is_due(where)
            self._consolidator.tidy(where.npc_ref)
        except DATABASE_ERRORS as error:
            _log(where, error)
            return
        if is_due:
            self._check_later(_Rested(mind, where, prompt))

    def close(self) -> None:
        """Start no more work."""
        for call in self._planned.values():
            call.cancel()
        self._planned.clear()
        self._queue.clear()

    def _check_later(self, rested: _Rested, after_seconds: float = IDLE_SECONDS) -> None:
        key = rested.where.id
        self._queue.pop(key, None)
        known = self._planned.pop(key, None)
        if known is not None:
            known.cancel()
        self._planned[key] = self._clock.callLater(after_seconds, self._check, rested)

    def _check(self, rested: _Rested) -> None:
        del self._planned[rested.where.id]
        if self._is_at_work:
            self._queue[rested.where.id] = rested
            return
        work = self._try_work(rested)
        if work is None:
            self._check_next()
        else:
            self._is_at_work = True
            work.addBoth(self._ended)

    def _ended(self, _: object) -> None:
        self._is_at_work = False
        self._check_next()

    def _check_next(self) -> None:
        """Check the first conversation in the queue, in a later call of the reactor.

        The reactor can do other things first, because a check takes a while.
        """
        if self._queue:
            self._check_later(next(iter(self._queue.values())), after_seconds=0)

    def _try_work(self, rested: _Rested) -> "Deferred[Any] | None":
        """Start work for a conversation. Return None if no work is allowed, due or possible."""
        mind, where, _ = rested
        if why_halted(where.npc_ref):  # the first turn after the stop schedules work again
            return None
        if mind.is_busy:  # the running turn calls `after_turn` at its end
            return None
        try:
            return self._begin_work(rested)
        except DATABASE_ERRORS as error:
            _log(where, error)
            return None

    def _begin_work(self, rested: _Rested) -> "Deferred[Any] | None":
        """Start the first work that is due. Other work waits until after the next turn."""
        _, where, _ = rested
        wanted = _compaction_request(rested)
        if self._compactor.is_due(wanted.fullness, "idle"):
            return self._compactor.compact(wanted)
        if self._consolidator.is_due(where):
            return self._consolidator.consolidate(
                where, npc_name=wanted.npc_name, npc_limits=wanted.npc_limits
            )
        return None


def _compaction_request(rested: _Rested) -> Wanted:
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
    logger.log_err(f"evennia_ai: {where}: no work could be done in idle time: {error}")
