"""Retrying: ends of turns that the database did not take are written when it is back.

A turn that stays open looks as if it were still running, so its end is tried again until it is
written; after a stop of the server the next start closes what is left.
"""

from collections.abc import Callable
from typing import Final

from django.db import DatabaseError
from evennia.utils import logger
from twisted.internet.defer import Deferred

from evennia_ai.errors import StoreError, TurnClosedError
from evennia_ai.llm.resilience import Clock

RETRY_SECONDS: Final = 5.0
DATABASE_ERRORS: Final = (StoreError, DatabaseError)
"""What the store raises, and what Evennia's own reads do, while the database is away."""


def until_written(write: Callable[[], object], doing: str, *, clock: Clock) -> "Deferred[None]":
    """Call `write` now, and again every few seconds as long as the store refuses.

    The Deferred fires when it is written. A turn that somebody else has ended meanwhile needs no
    end any more.
    """
    written: Deferred[None] = Deferred()

    def attempt() -> None:
        try:
            write()
        except TurnClosedError:
            pass
        except DATABASE_ERRORS as error:
            logger.log_err(f"evennia_ai: {doing}: tried again in {RETRY_SECONDS:.0f} s: {error}")
            clock.callLater(RETRY_SECONDS, attempt)
            return
        written.callback(None)

    attempt()
    return written
