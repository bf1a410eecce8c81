"""What the collector of `Garbage` finds, in a process of its own: what it found out, as JSON.

A search through everything that a run of all tests has imported takes seconds.
"""

import gc
import json
import os
import weakref

import django
import evennia
from evennia.utils import logger

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "server.conf.test_settings")
django.setup()
evennia._init()
from evennia_ai.game.service import GROWN_BYTES, NEW_OBJECTS, Garbage  # noqa: E402 - needs the game set up


class Ring:
    """Something that only a search finds when nobody reaches it."""

    def __init__(self) -> None:
        self.itself = self


def found_out() -> dict[str, object]:
    """What is true in the order in which it comes about."""
    lines: list[str] = []
    logger.log_msg = lambda line="", **_: lines.append(str(line))
    before, garbage, found = gc.get_threshold(), Garbage(), {}
    garbage.begin()
    found["frozen at the beginning"] = gc.get_freeze_count()
    found["third threshold"] = gc.get_threshold()[2]

    gc.collect()
    new = weakref.ref(Ring())
    garbage.search_new()
    found["a few new ones are let be"] = new() is not None
    many = [[] for _ in range(2 * NEW_OBJECTS)]
    garbage.search_new()
    found["new is gone"] = new() is None
    found["what is new is frozen"] = gc.get_freeze_count() - found["frozen at the beginning"]

    ring = Ring()
    many += [[] for _ in range(2 * NEW_OBJECTS)]
    garbage.search_new()
    frozen = weakref.ref(ring)
    del ring
    many += [[] for _ in range(2 * NEW_OBJECTS)]
    garbage.search_new()
    found["frozen is gone after a search of the new"] = frozen() is None
    garbage.search_everything()
    found["frozen is gone after a search of everything"] = frozen() is None
    found["logged"] = lines[-1]

    ring = Ring()
    many += [[] for _ in range(2 * NEW_OBJECTS)]
    garbage.search_new()
    frozen = weakref.ref(ring)
    del ring
    grown = bytearray(os.urandom(GROWN_BYTES // 100) * 120)
    many += [[] for _ in range(2 * NEW_OBJECTS)]
    garbage.search_new()
    found["frozen is gone when much memory is in use"] = frozen() is None and bool(grown)

    garbage.end()
    found["thresholds are as before"] = gc.get_threshold() == before
    found["frozen in the end"] = gc.get_freeze_count()
    return found


if __name__ == "__main__":
    print(json.dumps(found_out()))
