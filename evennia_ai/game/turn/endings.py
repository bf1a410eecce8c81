"""Committing: what a turn writes down, although others write too and the database may be away.

Each end of a round takes along what the call of its model took, once. What another process wrote
meanwhile costs one more try. A turn that could not go on is closed when the database is back.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar

from evennia.utils import logger
from twisted.internet.defer import Deferred

from evennia_ai.errors import HistoryConflictError, TurnClosedError
from evennia_ai.game.models.calls import CountedCall
from evennia_ai.game.recording.retrying import until_written
from evennia_ai.history.records import NewRecord
from evennia_ai.llm.resilience import Clock
from evennia_ai.store import model_calls
from evennia_ai.store.history import turns
from evennia_ai.store.history.turns import StoredTurn
from evennia_ai.store.model_calls import NewCall

T = TypeVar("T")


class Commits:
    """What one turn of an NPC commits; `call` is the newest call of a model, until it is."""

    def __init__(self, npc_ref: str) -> None:
        self.call: CountedCall | None = None
        self._npc_ref: Final = npc_ref

    def written(self, write: Callable[[], T]) -> T:
        """Write, and once more after what another process wrote while the model thought."""
        try:
            return write()
        except HistoryConflictError as error:
            logger.log_err(f"evennia_ai: NPC {self._npc_ref}: it is written again: {error}")
            return write()

    def finish(self, stored: StoredTurn, new: Sequence[NewRecord] = (), *, outcome: str) -> None:
        """Commit that a round has ended, with these records."""
        self.written(lambda: turns.finish(stored, new, outcome=outcome, call=self._row))
        self.call = None

    def fail(self, stored: StoredTurn, why: str, *, new: Sequence[NewRecord] = ()) -> None:
        """Commit that a round failed, with what was said instead of a reply."""
        self.written(lambda: turns.fail(stored, why, new=new, call=self._row))
        self.call = None

    def interrupt(self, stored: StoredTurn, why: str) -> None:
        """Commit that the server stops before the turn has ended."""
        self.written(lambda: turns.interrupt(stored, why, call=self._row))
        self.call = None

    def close(self, stored: StoredTurn, why: str, *, clock: Clock) -> "Deferred[None]":
        """Commit that a turn broke off, as soon as that can be written; fires then.

        Before that its history has calls without results, and no other prompt may be made of it.
        """
        doing = f"NPC {self._npc_ref}: turn {stored.number} is not closed"
        return until_written(partial(self._closed, stored, why), doing, clock=clock)

    def _closed(self, stored: StoredTurn, why: str) -> None:
        """The end, or where the turn has ended already only what its call took."""
        try:
            self.fail(stored, why)
        except TurnClosedError:
            if self._row is not None:
                model_calls.add_alone(self._row)

    @property
    def _row(self) -> NewCall | None:
        return self.call.row if self.call is not None else None
