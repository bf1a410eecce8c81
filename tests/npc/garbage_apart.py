"""Print as JSON what the collector of `Garbage` does, in a process of its own.

In the process of all tests, a full collection would take seconds.
"""

import gc
import json
import os
import weakref
from collections.abc import Iterator

import django
import evennia
from evennia.utils import logger

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "server.conf.test_settings")
django.setup()
evennia._init()
from evennia_ai.npc.service import (  # noqa: E402 - needs the game set up
    GROWN_BLOCKS,
    MESSAGE_BLOCKS,
    MOST_SEARCHED,
    NEW_OBJECTS,
    TOO_MANY,
    Garbage,
)


class Ring:
    """An object in a reference cycle, which only the garbage collector can free."""

    def __init__(self) -> None:
        self.itself = self


class Game:
    """The values that `Garbage` reads from a game."""

    def __init__(self) -> None:
        self.messages = 0
        self.is_quiet = False

    def held(self) -> int:
        return self.messages


def frozen_garbage(garbage: Garbage) -> "weakref.ref[Ring]":
    """Return a weak reference to a `Ring` that became garbage after it was frozen."""
    ring = Ring()
    many = [[] for _ in range(2 * NEW_OBJECTS)]
    garbage.search_new()
    known = weakref.ref(ring)
    assert many
    return known


def grown(game: Game, garbage: Garbage) -> Iterator[tuple[str, bool]]:
    """Yield when a full collection runs because memory has grown."""
    frozen = frozen_garbage(garbage)
    more = [object() for _ in range(GROWN_BLOCKS + GROWN_BLOCKS // 10)]
    garbage.search_if_grown()
    yield "much more while somebody answers is let be", frozen() is not None
    game.messages, game.is_quiet = len(more) // MESSAGE_BLOCKS, True
    garbage.search_if_grown()
    yield "messages that are held do not count", frozen() is not None
    game.messages = 0
    garbage.search_if_grown()
    yield "much more is searched in a quiet moment", frozen() is None
    frozen = frozen_garbage(garbage)
    garbage.search_if_grown()
    yield "and is the measure from then on", frozen() is not None
    game.is_quiet = False
    more += [object() for _ in range(TOO_MANY * GROWN_BLOCKS + GROWN_BLOCKS // 10)]
    garbage.search_if_grown()
    yield "too much is searched at any moment", frozen() is None


def found_out() -> dict[str, object]:
    """Return what was observed, in the order in which it happened."""
    lines: list[str] = []
    logger.log_msg = lambda line="", **_: lines.append(str(line))
    before, garbage, found = gc.get_threshold(), Garbage(), {}
    game = Game()
    garbage.begin(held=game.held, is_quiet=lambda: game.is_quiet)
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
    many += [[] for _ in range(2 * MOST_SEARCHED)]
    unsearched = weakref.ref(ring)
    del ring
    garbage.search_new()
    found["too many new ones are frozen without a search"] = unsearched() is not None

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

    found |= dict(grown(game, garbage))

    garbage.end()
    found["thresholds are as before"] = gc.get_threshold() == before
    found["frozen in the end"] = gc.get_freeze_count()
    return found


if __name__ == "__main__":
    print(json.dumps(found_out()))
