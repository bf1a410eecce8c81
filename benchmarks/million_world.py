"""The few who are awake among a million: copied into the benchmark's game, where it drives them.

At the first start one hall, one NPC and one player's character are made, from which `million_rows`
makes all others. Later the module waits for the file `GO`, has somebody say something so many times
a second, and writes what became of it into the file `DONE`. How late the reactor comes to what was
planned is noted all the time. No player has a connection here: what is measured is the Server.
"""

import json
import random
import time
from pathlib import Path
from typing import Any, Final

MADE: Final = "The first three are made."
GO: Final = Path("server", "logs", "million_go.json")
DONE: Final = Path("server", "logs", "million_done.json")
LATENESS: Final = Path("server", "logs", "million_lateness.txt")
LOOKED_UP_SECONDS: Final = 0.02
"""How often the reactor is to look up; by how much it is late is its lag."""
HALL, PLAYER, NPC = "The Hall", "Somebody", "N"
SEED: Final = 20417


def at_server_init() -> None:
    """Evennia's hook: note from now on how late the reactor is."""
    from twisted.internet import reactor

    made: Any = reactor
    made.callWhenRunning(_note_lateness, made)


def at_server_cold_start() -> None:
    """Evennia's hook: make the first of each kind once the game's own set-up is done."""
    from evennia.server.models import ServerConfig
    from evennia.utils.create import create_object

    if ServerConfig.objects.conf("last_initial_setup_step") != "done":
        return
    if ServerConfig.objects.conf("million_world"):
        return
    hall = create_object("evennia.objects.objects.DefaultRoom", key=HALL, nohome=True)
    hall.db.desc = "A hall with a few people in it."
    for typeclass, name in (
        ("evennia.objects.objects.DefaultCharacter", PLAYER),
        ("evennia_ai.typeclasses.AINPC", NPC),
    ):
        create_object(typeclass, key=name, location=hall, home=hall)
    ServerConfig.objects.conf("million_world", value=True)
    print(f"demo world: {MADE}")


def at_server_start() -> None:
    """Evennia's hook: wait to be told who speaks to whom."""
    from twisted.internet import reactor

    _wait_for_go(reactor)


def at_server_stop() -> None:
    """Evennia's hook; nothing is done."""


def _note_lateness(reactor: Any) -> None:
    notes = LATENESS.open("w", encoding="ascii", buffering=1)

    def note(planned: float) -> None:
        now = time.monotonic()
        print(f"{now:.6f} {now - planned:.6f}", file=notes)
        reactor.callLater(LOOKED_UP_SECONDS, note, now + LOOKED_UP_SECONDS)

    note(time.monotonic())


def _wait_for_go(reactor: Any) -> None:
    if GO.exists():
        asked = json.loads(GO.read_text(encoding="utf-8"))
        GO.unlink()
        Speech(reactor, **asked).begin()
    reactor.callLater(0.1, _wait_for_go, reactor)


class Speech:
    """So many lines a second for so many seconds, each to the NPC whose turn it is.

    `npcs` are pairs of the name of an NPC and the id of the player's character beside it.
    """

    def __init__(
        self, reactor: Any, *, npcs: list[tuple[str, int]], per_second: float, seconds: float
    ) -> None:
        self._reactor = reactor
        self._npcs = npcs
        random.Random(SEED).shuffle(self._npcs)
        self._every = 1 / per_second
        self._lines = round(per_second * seconds)
        self._said = 0
        self._began = 0.0

    def begin(self) -> None:
        """Say the first line and plan the others."""
        self._began = time.monotonic()
        self._say()

    def _say(self) -> None:
        """Say what is due by now; what a busy reactor missed is made up for."""
        from evennia.objects.models import ObjectDB

        if time.monotonic() >= self._began + self._said * self._every:
            name, player = self._npcs[self._said % len(self._npcs)]
            somebody = ObjectDB.objects.get_id(player)
            somebody.execute_cmd(f"say {name}, what is U{self._said:06}?")
            self._said += 1
        if self._said < self._lines:
            due = self._began + self._said * self._every
            self._reactor.callLater(max(0.0, due - time.monotonic()), self._say)
            return
        told = {"began": self._began, "ended": time.monotonic(), "said": self._said}
        part = DONE.with_suffix(".part")
        part.write_text(json.dumps(told), encoding="utf-8")
        part.replace(DONE)
