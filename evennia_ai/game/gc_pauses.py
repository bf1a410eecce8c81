"""Garbage: Python's search for objects that nobody reaches any more, in slices players do not feel.

A full search goes through every object there is, a tenth of a second and more with hundreds of
NPCs, whenever enough new ones have come. Here the collector looks at what is new every minute, and
what survives is frozen: later searches pass it over. Once a day all of it is looked through, so
that what became garbage while it was frozen goes as well.
"""

import gc
import time
from typing import Final

from evennia.utils import logger

NEW_SECONDS: Final = 60.0
EVERYTHING_SECONDS: Final = 24 * 60 * 60.0

_SELDOM: Final = 100_000
"""Searches of the middle generation before Python begins a full one by itself; as good as never."""


class Garbage:
    """The collector while a server runs; `end` gives it back as it was."""

    def __init__(self) -> None:
        self._before: Final = gc.get_threshold()

    def begin(self) -> None:
        """What the start has made is looked through once and frozen."""
        young, middle, _ = self._before
        gc.set_threshold(young, middle, _SELDOM)
        self.search_new()

    def search_new(self) -> None:
        """Look at what was made since the last time, and freeze what is still there."""
        gc.collect()
        gc.freeze()

    def search_everything(self) -> None:
        """Look at all there is, also at what is frozen."""
        began = time.perf_counter()
        gc.unfreeze()
        self.search_new()
        took = 1000 * (time.perf_counter() - began)
        logger.log_msg(f"evennia_ai: all of the memory was searched for garbage in {took:.0f} ms")

    def end(self) -> None:
        """The collector works as before."""
        gc.set_threshold(*self._before)
        gc.unfreeze()
