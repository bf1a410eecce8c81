"""Retrying: what the database did not take is tried again until it does.

A turn that stays open looks as if it were still running, so its end is tried again until it is
written; after a stop of the server the next start closes what is left.
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
"""What the store raises, and what Evennia's own reads do, while the database is away."""


def until_done(do: Callable[[], object], doing: str, *, clock: Clock) -> "Deferred[None]":
    """Call `do` now, and again every few seconds as long as the database refuses.

    It may return a Deferred. The one that is returned fires when it is done, or fails as `do` does
    for any other reason. A turn that somebody else has ended meanwhile needs no end any more.
    """
    trying = _Trying(do, doing, clock)
    trying.attempt()
    return trying.done


class _Trying:
    """Something that is tried until the database takes it; no closures, which would be a cycle."""

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
            logger.log_err(f"evennia_ai: {self._doing}: tried again in {seconds}: {why}")
            self._clock.callLater(RETRY_SECONDS, self.attempt)
        else:
            self.done.errback(failure)
