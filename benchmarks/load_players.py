"""Players for the load benchmark: telnet clients that speak and listen, and one that only looks."""

import asyncio
import random
import re
import time
from collections import Counter
from typing import Final

from benchmarks.load_model import TOKEN
from benchmarks.load_world import PASSWORD, ROOMS, npc_name, player_name, room_of
from server.telnet import Negotiation, plain

LOOKED: Final = re.compile(r"A hall with many people in it\.")
REFUSED: Final = re.compile(r"N\d{3} (?!thinks)(?!says, \"That is)")
"""Matches what an NPC shows that is neither an answer nor the gesture of thinking."""
_LINE_END: Final = re.compile(r"\r?\n")


class Player:
    """A telnet client. `heard` counts what NPCs have said, by the token in it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.heard: Counter[str] = Counter()
        self.refused = 0
        self.said: list[str] = []
        self.looked = asyncio.Event()
        self._negotiation = Negotiation()
        self._rest = ""
        self._writer: asyncio.StreamWriter
        self._reading: asyncio.Task[None]
        self._is_in = asyncio.Event()

    async def enter(self, host: str, port: int) -> None:
        """Connect, log in, enter the room and look around."""
        reader, self._writer = await asyncio.open_connection(host, port)
        self._reading = asyncio.create_task(self._read(reader))
        await asyncio.sleep(0.5)
        self.type(f"connect {player_name(self.number)} {PASSWORD}")
        await asyncio.wait_for(self._is_in.wait(), 120)
        await self.look()  # Evennia builds the command sets of a character at its first command.

    def type(self, line: str) -> None:
        self._writer.write(line.encode() + b"\r\n")

    def ask(self, token: str, npc: int) -> None:
        """Ask an NPC in the same room to repeat the token."""
        self.said.append(token)
        self.type(f"say {npc_name(npc)}, what is {token}?")

    async def look(self) -> float:
        """Return the seconds from typing `look` until the room is shown."""
        self.looked.clear()
        start = time.perf_counter()
        self.type("look")
        await asyncio.wait_for(self.looked.wait(), 60)
        return time.perf_counter() - start

    async def leave(self) -> None:
        self._reading.cancel()
        self._writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while data := await reader.read(65536):
            text, answer = self._negotiation.read(data)
            if answer:
                self._writer.write(answer)
            *lines, self._rest = _LINE_END.split(self._rest + text)
            for line in map(plain, lines):
                self._note(line)

    def _note(self, line: str) -> None:
        if LOOKED.search(line):
            self.looked.set()
            self._is_in.set()
        elif 'says, "That is' in line:
            self.heard.update(TOKEN.findall(line)[:1])
        elif REFUSED.match(line):
            self.refused += 1


async def speak(
    players: list[Player], *, npcs: int, seconds: float, pause_seconds: float, seed: int
) -> None:
    """Let every player ask an NPC of the room now and then, until the time is over."""
    end = time.monotonic() + seconds
    await asyncio.gather(
        *(
            _speaks(player, npcs, end, pause_seconds, random.Random(seed + player.number))
            for player in players
        )
    )


async def _speaks(
    player: Player, npcs: int, end: float, pause_seconds: float, dice: random.Random
) -> None:
    here = [number for number in range(npcs) if room_of(number) == room_of(player.number)]
    count = 0
    await asyncio.sleep(dice.uniform(0, pause_seconds))
    while time.monotonic() < end:
        player.ask(f"U{player.number:02}{count:04}", dice.choice(here))
        count += 1
        await asyncio.sleep(dice.uniform(0.5, 1.5) * pause_seconds)


async def looks(
    player: Player, *, seconds: float = 0.0, at_least: int = 0, every_seconds: float = 0.25
) -> list[float]:
    """Return how long each `look` of a bystander took, in a period with a number of looks."""
    took: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(took) < at_least:
        took.append(await player.look())
        await asyncio.sleep(every_seconds)
    return took


def bystander_number(players: int) -> int:
    """Return the number of the player who only looks, in a room with others."""
    return players + (ROOMS - players % ROOMS) % ROOMS
