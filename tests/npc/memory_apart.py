"""Print as JSON what turns leave in memory once every window is full, in a process of its own.

The collector is off, and garbage is kept. So each object that only a garbage collection could free
is counted.
"""

import gc
import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import django
import evennia
from django.core.management import call_command
from evennia.utils import logger

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "server.conf.test_settings")
django.setup()
evennia._init()
from evennia.utils.create import create_object  # noqa: E402 - needs the game set up
from twisted.internet.task import Clock  # noqa: E402

from evennia_ai.npc.views.recomposing import PastReader  # noqa: E402
from evennia_ai.store.core.snapshots import forget_everything  # noqa: E402
from evennia_ai.store.history import turns  # noqa: E402
from evennia_ai.store.history.conversations import conversations_of  # noqa: E402
from evennia_ai.store.history.segments import head_of, segment_at  # noqa: E402
from evennia_ai.store.history.windows import windows  # noqa: E402
from tests.npc.conftest import Stage  # noqa: E402
from tests.npc.upkeep.compacting_games import SMALL, rules  # noqa: E402

TURNS = 40
"""The number of turns in one block. Some histories are summarised in each block."""


class Talk:
    """A conversation of Anna with Oren, which Brida hears."""

    def __init__(self) -> None:
        self.stage = Stage(Clock())
        self.stage.make("Brida", "evennia_ai.typeclasses.AINPC")
        self.said = 0
        self.stage.talks_with(
            lambda request: f"Reply {self.said}. The fog lies on the water today.",
            compaction=rules(by="extract"),
            **SMALL,
        )

    def goes_on(self) -> None:
        """Run a block of turns. Screens and requests are cleared, so they do not count."""
        for _ in range(TURNS):
            self.said += 1
            self.stage.says(self.stage.anna, f"Oren, what of the boat number {self.said}?")
            self.stage.passes(30)
            self.stage.anna.screen.sent.clear()
            self.stage.ben.screen.sent.clear()
            self.stage.model.requests.clear()

    @property
    def conversation(self) -> Any:
        (found,) = conversations_of(self.stage.npc.ai.ref)
        return found


def garbage_of(do: Callable[[], object]) -> dict[str, int]:
    """Count our objects that only the collector frees after `do`, by the names of their types."""
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    do()
    gc.collect()
    found = Counter(type(one).__name__ for one in gc.garbage if _is_ours(one))
    gc.set_debug(0)
    gc.garbage.clear()
    return dict(found)


def _is_ours(one: object) -> bool:
    return str(type(one).__module__).startswith("evennia_ai.")


def found_out() -> dict[str, Any]:
    for name in ("log_err", "log_warn", "log_msg", "log_sec", "log_trace"):
        setattr(logger, name, lambda *_, **__: None)
    call_command("migrate", run_syncdb=True, verbosity=0)
    create_object("evennia.objects.objects.DefaultRoom", key="Limbo", nohome=True)
    talk = Talk()
    talk.goes_on()
    talk.goes_on()
    segments = windows(talk.conversation.id).end.segment
    gc.disable()
    blocks = []
    left: Counter[str] = Counter()
    for _ in range(3):
        left.update(garbage_of(talk.goes_on))
        blocks.append(sys.getallocatedblocks())
    where, found = talk.conversation, {}
    found["summarised"] = windows(where.id).end.segment - segments
    found["turns"] = dict(left)
    found["blocks"] = blocks
    found["a segment is read"] = garbage_of(lambda: segment_at(head_of(where), cut=0))
    found["a turn is read back"] = garbage_of(lambda: _read_back(talk))
    found["windows are forgotten"] = garbage_of(forget_everything)
    return found


def _read_back(talk: Talk) -> None:
    newest = turns.last_turn(talk.stage.npc.ai.ref)
    assert newest is not None
    assert len(PastReader().inputs(newest).inputs.history)


if __name__ == "__main__":
    print(json.dumps(found_out()))
