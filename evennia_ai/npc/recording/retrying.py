"""Retrying: repeats a call that the database refused, until it succeeds.

The end of a turn, for example, is retried until it is written, because a turn without an end looks
as if it were still running. After a stop of the server, the next start closes turns that are open.
"""

from collections.abc import Callable
from typing import Final

from django.db import DatabaseError
from evennia.utils import logger
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.python.failure import Failure

from evennia_ai.engine.errors import StoreError, TurnClosedError
from evennia_ai.services.llm.resilience import Clock

RETRY_SECONDS: Final = 5.0
DATABASE_ERRORS: Final = (StoreError, DatabaseError)
"""Errors of the store, and of Evennia's own reads, while the database cannot be reached."""


def until_done(do: Callable[[], object], doing: str, *, clock: Clock) -> "Deferred[None]":
    """Call `do` now, and again every few seconds while the database refuses.

    `do` may return a Deferred. The returned Deferred fires when `do` succeeds. It fails if `do`
    fails for another reason than the database. A turn that is already closed counts as success.
    """
    trying = _Trying(do, doing, clock)
    trying.attempt()
    return trying.done


class _Trying:
    """A call that is repeated until it succeeds.

    It is a class, because closures would form a cycle.
    """

    def __init__(self, do: Callable[[], object], doing: str, clock: Clock) -> None:
        self.done: Final[Deferred[None]] = Deferred()
        self._do: Final = do
        self._doing: Final = doing
        self._clock: Final = clock

    def attempt(self) -> None:
        maybeDeferred(self._do).addCallbacks(lambda _: self.done.callback(None), self._refused)

    def _refused(self, failure: Failure) -> None:
        if failure.check(TurnClosedError):
            self.done.callback(None)
        elif failure.check(*DATABASE_ERRORS):
            why, seconds = failure.getErrorMessage(), f"{RETRY_SECONDS:.0f} s"
            logger.log_err(f"evennia_ai: {self._doing}; the next try follows in {seconds}: {why}")
            self._clock.callLater(RETRY_SECONDS, self.attempt)
        else:
            self.done.errback(failure)
