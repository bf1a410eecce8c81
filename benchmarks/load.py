"""Put hundreds of NPCs and dozens of players into a real game, and measure how fast it answers.

    python -m benchmarks.load [--npcs 300] [--players 50] [--seconds 300]
        [--nodelay off] [--messages 20000] [--database ADDRESS] [--soak] [--check]

A copy of the demo game starts on free ports with a crowd in it (`load_world`). Players speak to it
over telnet (`load_players`), and a local server answers for the model after 0.2 to 8 seconds
(`load_model`). Four things are printed: how long a bystander's `look` takes, idle and under load;
the units of work of the Server's reactor (`load_units`, `load_table`); the memory of the Server;
and what happened to every utterance, by what the players read and by what the records say.

The game uses SQLite, or the empty database of an address, such as
postgres://user:password@localhost:5432/name. `--soak` runs for half an hour with ten times as much
speech. `--check` ends with status 1 if a measurement is not good enough (`problems`).
"""

import argparse
import asyncio
import json
import os
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.load_model import TOKEN, LateModel
from benchmarks.load_players import Player, bystander_number, looks, speak
from benchmarks.load_table import Measured, Period, measured_in, percentile, slow, table
from server.evennia_process import Evennia
from tests.acceptance.games import fresh_game

ROOT = Path(__file__).resolve().parents[1]
SEED = 20417
DRAIN_SECONDS = 90.0
AT_ONCE = 10
"""How many players log in at the same time."""
ENTERING, IDLE, LOADED = "players enter", "nobody speaks", "under load"
"""The periods that are measured separately."""
SOAK_SECONDS = 1800.0
SOAK_TIMES = 10
LOOK_RATIO = 2.0
LOOK_WORST_SECONDS = 0.06
GROWTH_MB = 20.0

SETTINGS = """
DEMO_WORLD = False
AT_SERVER_STARTSTOP_MODULE = ["world.load_units", "world.load_world"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
MAX_CONNECTION_RATE = 1000
LOGIN_THROTTLE_LIMIT = 1000
CREATION_THROTTLE_LIMIT = 1000
EVENNIA_AI_BASE_URL = {base_url!r}
EVENNIA_AI_MODEL = "late"
EVENNIA_AI_GATHER_SECONDS = 0.0
EVENNIA_AI_MAX_CONCURRENT_CALLS = EVENNIA_AI_MAX_CONCURRENT_TURNS = {concurrent}
EVENNIA_AI_MODEL_TIMEOUT_SECONDS = 60.0
"""
HELD = """
EVENNIA_AI_MESSAGES_IN_MEMORY = {messages}
"""
DELAYED = """
PORTAL_SERVICES_PLUGIN_MODULES = []
"""
KEPT_AT = """
DATABASES = database({address!r})
"""


@dataclass(frozen=True, kw_only=True)
class Load:
    """The size and the duration of the load."""

    npcs: int = 300
    players: int = 50
    seconds: float = 300.0
    idle_looks: int = 240
    pause_seconds: float = 10.0
    concurrent: int = 64
    least_latency: float = 0.2
    most_latency: float = 8.0
    sends_at_once: bool = True
    """True if the Portal uses `evennia_ai.web.nodelay`."""
    messages_in_memory: int | None = None
    """How many messages of histories the Server keeps in memory; None for the default."""
    database: str = ""
    """The address of an empty database; "" for a SQLite file in the game's folder."""
    is_soak: bool = False
    """True if players say more than NPCs can answer.

    Some words stay unanswered, and players are told so.
    """


@dataclass(kw_only=True)
class Felt:
    """The measurements. Times are in seconds, memory is in megabytes."""

    idle: list[float] = field(default_factory=list)
    loaded: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    periods: list[Period] = field(default_factory=list)
    units: Measured = field(default_factory=dict)
    said: int = 0
    answered_once: int = 0
    answered_often: int = 0
    refused: int = 0
    waiting: int = 0
    lost: list[str] = field(default_factory=list)
    most_running: int = 0
    turns: dict[str, int] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """The 99th percentile of a look under load, divided by that of an idle game."""
        return percentile(self.loaded, 99) / percentile(self.idle, 99)

    @property
    def growth(self) -> float:
        """The megabytes by which memory grew in the last third of the time."""
        third = self.memory[2 * len(self.memory) // 3 :]
        return statistics.mean(third[-5:]) - statistics.mean(third[:5])


def measured(load: Load, root: Path) -> Felt:
    """Run a game in the empty folder `root` under this load, and return the measurements."""
    return asyncio.run(_measured(load, root))


async def _measured(load: Load, root: Path) -> Felt:
    model = LateModel(least_seconds=load.least_latency, most_seconds=load.most_latency, seed=SEED)
    game = await asyncio.to_thread(_made_game, root, load, await model.start())
    try:
        await asyncio.to_thread(game.start)
        felt = await _felt(load, game, model)
    finally:
        await asyncio.to_thread(game.end)
        model.close()
    felt.most_running = model.most_running
    felt.units = measured_in(root, felt.periods)
    _count(felt, load.database or f"sqlite:///{root}/server/evennia.db3")
    return felt


def _made_game(root: Path, load: Load, base_url: str) -> Evennia:
    settings = SETTINGS.format(base_url=base_url, concurrent=load.concurrent)
    settings += "" if load.sends_at_once else DELAYED
    if load.messages_in_memory is not None:
        settings += HELD.format(messages=load.messages_in_memory)
    settings += KEPT_AT.format(address=load.database) if load.database else ""
    game = fresh_game(root, settings=settings)
    for name in ("load_world.py", "load_units.py"):
        shutil.copy(ROOT / "benchmarks" / name, root / "world" / name)
    os.environ["LOAD_NPCS"] = str(load.npcs)
    os.environ["LOAD_PLAYERS"] = str(bystander_number(load.players) + 1)
    return game


async def _felt(load: Load, game: Evennia, model: LateModel) -> Felt:
    felt = Felt()
    players = [Player(number) for number in range(load.players)]
    bystander = Player(bystander_number(load.players))
    where = ("127.0.0.1", game.ports.telnet)
    # A player who has logged in has waited until the start was finished.
    await bystander.enter(*where)
    with _period(felt, ENTERING):
        for at in range(0, len(players), AT_ONCE):
            await asyncio.gather(*(one.enter(*where) for one in players[at : at + AT_ONCE]))
    with _period(felt, IDLE):
        felt.idle = await looks(bystander, at_least=load.idle_looks)
    server = int((game.root / "server" / "server.pid").read_text(encoding="utf-8"))
    watching = asyncio.create_task(_watch_memory(felt, server))
    speaking = speak(
        players,
        npcs=load.npcs,
        seconds=load.seconds,
        pause_seconds=load.pause_seconds,
        seed=SEED,
    )
    with _period(felt, LOADED):
        felt.loaded, _ = await asyncio.gather(looks(bystander, seconds=load.seconds), speaking)
    watching.cancel()
    await _drained(players, model)
    for one in (*players, bystander):
        await one.leave()
    _note_answers(felt, players)
    return felt


@contextmanager
def _period(felt: Felt, name: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    felt.periods.append(Period(name, began, time.monotonic()))


async def _watch_memory(felt: Felt, pid: int) -> None:
    """Measure the memory every second, and print it every minute."""
    page = os.sysconf("SC_PAGE_SIZE")
    while True:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1])
        felt.memory.append(pages * page / 1e6)
        if len(felt.memory) % 60 == 0:
            told = f"memory after {len(felt.memory) // 60} min: {felt.memory[-1]:.0f} MB"
            print(told, file=sys.stderr, flush=True)
        await asyncio.sleep(1)


async def _drained(players: list[Player], model: LateModel) -> None:
    """Wait until no NPC answers any more."""
    end = time.monotonic() + DRAIN_SECONDS
    quiet_since, heard = time.monotonic(), -1
    while time.monotonic() < end and time.monotonic() - quiet_since < 12:
        now = sum(one.heard.total() for one in players)
        if now != heard or model.running:
            quiet_since, heard = time.monotonic(), now
        await asyncio.sleep(0.5)


def _note_answers(felt: Felt, players: list[Player]) -> None:
    for player in players:
        felt.said += len(player.said)
        felt.refused += player.refused
        counts = Counter({token: player.heard[token] for token in player.said})
        felt.answered_once += sum(count == 1 for count in counts.values())
        felt.answered_often += sum(count > 1 for count in counts.values())
        felt.lost += [token for token, count in counts.items() if not count]


def _count(felt: Felt, address: str) -> None:
    """Count what the records say, and which of the unanswered utterances they explain."""
    states = "SELECT state, count(*) FROM evennia_ai_turn GROUP BY state"
    failed = (
        "SELECT r.body FROM evennia_ai_record r JOIN evennia_ai_turn t"
        " ON t.event_record_id = r.id WHERE t.state <> 'done'"
    )
    overflowed = "SELECT count(*) FROM evennia_ai_record WHERE kind = 'event' AND role = 'system'"
    felt.turns = dict(_rows(address, states))
    ((felt.waiting,),) = _rows(address, overflowed)
    told = {token for (body,) in _rows(address, failed) for token in TOKEN.findall(body)}
    felt.lost = [token for token in felt.lost if token not in told]


def _rows(address: str, query: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query in the game's database."""
    if address.startswith("sqlite:///"):
        with closing(sqlite3.connect(address.removeprefix("sqlite:///"))) as file:
            return file.execute(query).fetchall()
    import psycopg

    with psycopg.connect(address) as database:
        return database.execute(query.encode()).fetchall()


def report(felt: Felt, load: Load) -> str:
    """Return the measurements as text."""
    took = [
        ("idle", felt.idle),
        ("loaded", felt.loaded),
    ]
    lines = [f"{load.npcs} NPCs, {load.players} players for {load.seconds:.0f} s"]
    lines.append(
        f"the model answers after {load.least_latency:g} to {load.most_latency:g} s,"
        f" {felt.most_running} calls at a time at most"
    )
    lines += [f"look, {name}: {_in_milliseconds(values)}" for name, values in took]
    lines.append(f"p99 under load / idle p99: {felt.ratio:.2f}")
    lines.append(
        f"memory: {felt.memory[0]:.0f} MB at first, {felt.memory[-1]:.0f} MB at last,"
        f" {felt.growth:+.1f} MB in the last third"
    )
    lines.append(
        f"utterances: {felt.said} said, {felt.answered_once} answered once,"
        f" {felt.answered_often} more than once, {felt.refused} lines of refusal,"
        f" {len(felt.lost)} unaccounted for; turns by state: {felt.turns}"
    )
    tables = [table(felt.units[period.name], period) for period in felt.periods]
    return "\n\n".join(["\n".join(lines), *tables])


def _in_milliseconds(seconds: list[float]) -> str:
    told = (statistics.median(seconds), percentile(seconds, 99), max(seconds))
    median, most, worst = (f"{1000 * one:.1f} ms" for one in told)
    return f"median {median}, p99 {most}, worst {worst} ({len(seconds)} looks)"


def problems(felt: Felt, load: Load) -> list[str]:
    """Return which measurements are not good enough.

    For a soak test, only memory and double answers count.
    """
    found = []
    if felt.growth > GROWTH_MB:
        found.append(f"memory grew by {felt.growth:.0f} MB in the last third")
    if felt.answered_often:
        found.append(f"{felt.answered_often} utterances were answered more than once")
    if load.is_soak:
        return found
    if felt.ratio > LOOK_RATIO:
        found.append(f"a look took {felt.ratio:.2f} times the idle p99 at the 99th percentile")
    if max(felt.loaded) > LOOK_WORST_SECONDS:
        found.append(f"a look took {1000 * max(felt.loaded):.0f} ms once")
    for period, units in felt.units.items():
        found += [f"{period}: {problem}" for problem in slow(units)]
    if len(felt.lost) > felt.refused:
        found.append(f"{len(felt.lost)} utterances were neither answered nor refused")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--npcs", type=int, default=Load.npcs)
    parser.add_argument("--players", type=int, default=Load.players)
    parser.add_argument("--seconds", type=float, default=Load.seconds)
    parser.add_argument("--pause", type=float, default=Load.pause_seconds)
    parser.add_argument("--nodelay", choices=("on", "off"), default="on")
    parser.add_argument(
        "--messages", type=int, help="how many messages of histories the Server keeps in memory"
    )
    parser.add_argument(
        "--database", default="", metavar="ADDRESS", help="the address of an empty database"
    )
    parser.add_argument(
        "--soak", action="store_true", help="run for half an hour with ten times as much speech"
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    load = Load(
        npcs=asked.npcs,
        players=asked.players,
        seconds=max(asked.seconds, SOAK_SECONDS) if asked.soak else asked.seconds,
        pause_seconds=asked.pause / (SOAK_TIMES if asked.soak else 1),
        messages_in_memory=asked.messages,
        database=asked.database,
        is_soak=asked.soak,
        sends_at_once=asked.nodelay == "on",
    )
    with tempfile.TemporaryDirectory() as folder:
        felt = measured(load, Path(folder))
    print(json.dumps(asdict(felt), default=list) if asked.json else report(felt, load))
    found = problems(felt, load)
    for problem in found:
        print(f"!! {problem}", file=sys.stderr)
    return 1 if asked.check and found else 0


if __name__ == "__main__":
    sys.exit(main())
