"""Players for the load benchmark: telnet clients that speak and listen, and one that looks."""

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
"""What an NPC shows that is neither an answer nor the gesture of one that thinks."""
_LINE_END: Final = re.compile(r"\r?\n")


class Player:
    """A telnet client: `heard` counts what NPCs said by the token in it."""

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
        """Connect, log in, come into the room and look around."""
        reader, self._writer = await asyncio.open_connection(host, port)
        self._reading = asyncio.create_task(self._read(reader))
        await asyncio.sleep(0.5)
        self.type(f"connect {player_name(self.number)} {PASSWORD}")
        await asyncio.wait_for(self._is_in.wait(), 120)
        await self.look()  # with their first command Evennia builds the command sets of somebody

    def type(self, line: str) -> None:
        self._writer.write(line.encode() + b"\r\n")

    def ask(self, token: str, npc: int) -> None:
        """Ask an NPC of the same room for the token."""
        self.said.append(token)
        self.type(f"say {npc_name(npc)}, what is {token}?")

    async def look(self) -> float:
        """Seconds from typing `look` to seeing the room."""
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
    """Every player asks an NPC of the room now and then, until the time is over."""
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
    """How long each `look` of a bystander took, for so long and so many times."""
    took: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(took) < at_least:
        took.append(await player.look())
        await asyncio.sleep(every_seconds)
    return took


def bystander_number(players: int) -> int:
    """The number of the player who only looks, in a room with others."""
    return players + (ROOMS - players % ROOMS) % ROOMS
