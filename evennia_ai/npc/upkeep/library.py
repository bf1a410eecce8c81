"""The library beside the game: looked at in a thread, at the start and every few minutes.

No turn waits for it: what a turn reads are this game's own copies. A library that is away is told
once in the log, and once more when it is back; until then the game plays on with what it has.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from django.db import DatabaseError
from evennia.utils import logger
from twisted.internet.defer import Deferred, succeed
from twisted.python.failure import Failure

from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.engine.knowledge.pages.page import BaseInfo
from evennia_ai.npc.background.in_process import InThread
from evennia_ai.services.llm.resilience import Clock
from evennia_ai.store.core.reading import close_unless_in_use
from evennia_ai.store.knowledge.knowledge_bases import base
from evennia_ai.store.library.entries import is_named
from evennia_ai.store.library.following import Look, look

T = TypeVar("T")

LOOK_SECONDS: Final = 300.0
"""Between two looks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryStatus:
    """How the library stood when it was looked at last."""

    looked_at: float | None = None
    """By the clock of the game, None before the first look has ended."""
    away: str = ""
    """Why it could not be asked."""
    refused: tuple[tuple[str, str], ...] = ()
    """What changed there and could not be taken, with the reason."""


class Library:
    """Follows the library that the settings name; without one it does nothing."""

    def __init__(self, clock: Clock, *, in_thread: InThread) -> None:
        self._clock: Final = clock
        self._in_thread: Final = in_thread
        self._is_looking = False
        self.status = LibraryStatus()

    @property
    def is_named(self) -> bool:
        """Whether the settings name a library."""
        return is_named()

    def look(self) -> "Deferred[tuple[BaseInfo, ...]]":
        """Take what changed; the bases that are others now, none where the library is away."""
        if self._is_looking or not self.is_named:
            return succeed(())
        self._is_looking = True
        done = self.asked(look)
        return done.addCallbacks(self._tell, self._not_looked).addBoth(self._ended)

    def asked(self, work: Callable[[], T]) -> "Deferred[T]":
        """What `work` returns, which asks the library and writes, in a thread."""
        return self._in_thread(_alone, work)

    def _tell(self, found: Look) -> tuple[BaseInfo, ...]:
        if self.status.away:
            logger.log_msg("evennia_ai: the library is there again")
        for typed in found.bases:
            logger.log_msg(f"evennia_ai: {typed} changed in the library, and was taken")
        for typed in found.cards:
            logger.log_msg(f"evennia_ai: {typed} changed in the library, and waits for approval")
        for typed in found.gone:
            logger.log_warn(
                f"evennia_ai: {typed} is in the library no more; this game keeps what it has"
            )
        for typed, why in set(found.refused) - set(self.status.refused):
            logger.log_err(f"evennia_ai: {typed} changed in the library, and was not taken: {why}")
        self.status = LibraryStatus(looked_at=self._clock.seconds(), refused=found.refused)
        return tuple(info for key in found.bases if (info := base(key)))

    def _not_looked(self, failure: Failure) -> tuple[BaseInfo, ...]:
        failure.trap(EvenniaAIError, DatabaseError)
        why = failure.getErrorMessage()
        if not self.status.away:
            logger.log_warn(f"evennia_ai: the game plays on without its library: {why}")
        self.status = LibraryStatus(
            looked_at=self._clock.seconds(), away=why, refused=self.status.refused
        )
        return ()

    def _ended(self, result: Any) -> Any:
        self._is_looking = False
        return result


def _alone(work: Callable[[], T]) -> T:
    """`work` in a thread that is nobody's; where no server runs, in that of whoever asks."""
    close_unless_in_use()
    try:
        return work()
    finally:
        close_unless_in_use()
