"""A million NPCs in PostgreSQL and three thousand of them awake: what a real server does with them.

    python -m benchmarks.million [--npcs 1000000] [--awake 3000] [--turns-per-second 50]
        [--seconds 60] [--check] [--json]

A cluster of PostgreSQL of its own and a copy of the demo's game are started on free ports. One NPC
is made by Evennia and a million of it by the database (`million_rows`); one in ten had a turn
before. The game is started cold. Then somebody speaks to each of those that shall be awake, six
NPCs in a hall (`million_world`), and after that again, so many lines a second; a local server
answers for the model after half a second to two (`load_model`). Printed are: how long the start
took, by how much the reactor came too late, what the Server holds in memory, rows written a second,
how long `ai` and the first page of `/ai/` took while nobody spoke, and what held the reactor
(`load_units`, `load_table`). `--check` ends with status 1 where something was not as asked.
"""

import argparse
import asyncio
import json
import os
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx2

from benchmarks.load_model import LateModel
from benchmarks.load_table import Measured, Period, measured_in, percentile, table
from benchmarks.million_rows import Crowd, made
from benchmarks.million_world import DONE, GO, LATENESS
from server.evennia_process import Evennia
from server.ports import HOST
from tests.acceptance.games import logged_in, untouched_game
from tests.store.postgres import Cluster, Postgres

ROOT: Final = Path(__file__).resolve().parents[1]
SEED: Final = 20417
DATABASE: Final = "million"
ACCOUNT: Final = ("admin", "million-admin-1")
WAKING, LOADED, IDLE = "they wake", "under load", "nobody speaks"
QUIET_SECONDS: Final = 8.0
"""So long nothing is written before the next period begins."""
LOOKS: Final = 20
COUNTED: Final = ("record", "turn", "modelcall", "conversation")

COLD_SECONDS: Final = 10.0
RSS_MB: Final = 600.0
PAGE_MS: Final = 60.0

SETTINGS: Final = """
DEMO_WORLD = False
AT_SERVER_STARTSTOP_MODULE = ["world.load_units", "world.million_world"]
DATABASES = database({address!r})
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
EVENNIA_AI_BASE_URL = {base_url!r}
EVENNIA_AI_MODEL = "late"
EVENNIA_AI_MAX_CONCURRENT_CALLS = EVENNIA_AI_MAX_CONCURRENT_TURNS = 256
EVENNIA_AI_MODEL_TIMEOUT_SECONDS = 60.0
EVENNIA_AI_COOLDOWN_SECONDS = 0.0
UNLIMITED = {{"calls_per_minute": None, "calls_per_day": None}}
EVENNIA_AI_LIMITS = {{"game": UNLIMITED, "npc": UNLIMITED, "player": UNLIMITED}}
"""


@dataclass(frozen=True, kw_only=True)
class Load:
    """How much of what, for how long."""

    npcs: int = 1_000_000
    awake: int = 3000
    turns_per_second: float = 50.0
    seconds: float = 60.0


@dataclass(kw_only=True)
class Felt:
    """What was measured; times in seconds unless their names say else, memory in megabytes."""

    rows_made_seconds: float = 0.0
    cold_start_seconds: float = 0.0
    """From the launcher's command until the log says that players can log in."""
    memory_at_start: float = 0.0
    memory_at_end: float = 0.0
    ai_ms: list[float] = field(default_factory=list)
    page_ms: list[float] = field(default_factory=list)
    said: dict[str, int] = field(default_factory=dict)
    """Lines by period."""
    answered: dict[str, int] = field(default_factory=dict)
    """Turns that ended with an answer, by period."""
    took: dict[str, float] = field(default_factory=dict)
    """From the first line until the last row was written, by period."""
    rows: dict[str, dict[str, int]] = field(default_factory=dict)
    """Rows that were written, by period and table."""
    lag_ms: dict[str, dict[str, float]] = field(default_factory=dict)
    """By how much the reactor came too late: percentiles by period."""
    periods: list[Period] = field(default_factory=list)
    units: Measured = field(default_factory=dict)


def measured(load: Load, root: Path) -> Felt:
    """A game in the empty folder `root` under this load."""
    with Postgres() as postgres:
        return asyncio.run(_measured(load, root, Cluster(postgres.port)))


async def _measured(load: Load, root: Path, cluster: Cluster) -> Felt:
    model = LateModel(least_seconds=0.5, most_seconds=2.0, seed=SEED)
    address = cluster.make(DATABASE)
    game = _made_game(root, address=address, base_url=await model.start())
    felt = Felt()
    try:
        await asyncio.to_thread(_in_order, load, game, address, felt)
    finally:
        await asyncio.to_thread(game.stop)
        model.close()
    felt.units = measured_in(root, felt.periods)
    _note_lags(felt, root)
    return felt


def _made_game(root: Path, *, address: str, base_url: str) -> Evennia:
    settings = SETTINGS.format(address=address, base_url=base_url)
    game = untouched_game(root, settings=settings)
    for name in ("million_world.py", "load_units.py"):
        shutil.copy(ROOT / "benchmarks" / name, root / "world" / name)
    os.environ["EVENNIA_SUPERUSER_USERNAME"], os.environ["EVENNIA_SUPERUSER_PASSWORD"] = ACCOUNT
    # What is set where this is run (tests' settings, say) is not for the game.
    os.environ["DJANGO_SETTINGS_MODULE"] = "server.conf.settings"
    return game


def _in_order(load: Load, game: Evennia, address: str, felt: Felt) -> None:
    """Make the game and its crowd, start it cold, and load it."""
    game.prepare()
    game.start()
    game.stop()
    with _connected(address) as connection:
        felt.rows_made_seconds, crowd = _timed(
            lambda: made(connection, npcs=load.npcs, awake=load.awake)
        )
        print(f"{load.npcs} NPCs made in {felt.rows_made_seconds:.0f} s", file=sys.stderr)
        felt.cold_start_seconds, _ = _timed(game.start)
        felt.memory_at_start = _memory(game)
        _look(game, felt)
        for name in (WAKING, LOADED):
            _speak(load, game, crowd, felt, name=name, connection=connection)
        felt.memory_at_end = _memory(game)


def _connected(address: str) -> Any:
    import psycopg

    return psycopg.connect(address, autocommit=True)


def _timed(do: Callable[[], Any]) -> tuple[float, Any]:
    began = time.monotonic()
    done = do()
    return time.monotonic() - began, done


def _memory(game: Evennia) -> float:
    pid = int((game.root / "server" / "server.pid").read_text(encoding="utf-8"))
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _look(game: Evennia, felt: Felt) -> None:
    """Ask for `ai` and for the first page of `/ai/`, again and again."""
    began = time.monotonic()
    with logged_in(game, *ACCOUNT) as connection:
        for _ in range(LOOKS + 1):
            asked = time.perf_counter()
            connection.send("ai")
            connection.wait_for("in the game", seconds=120)
            felt.ai_ms.append(1000 * (time.perf_counter() - asked))
            connection.wait_for_quiet()
    with httpx2.Client(base_url=f"http://{HOST}:{game.ports.web}", timeout=120) as browser:
        form = browser.get("/auth/login/").text
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', form)
        assert token is not None, form
        name, password = ACCOUNT
        fields = {"csrfmiddlewaretoken": token[1], "username": name, "password": password}
        browser.post("/auth/login/", data={**fields, "next": "/ai/"})
        for _ in range(LOOKS + 1):
            asked = time.perf_counter()
            page = browser.get("/ai/")
            felt.page_ms.append(1000 * (time.perf_counter() - asked))
            assert page.status_code == 200 and "NPCs; today" in page.text, page.text[:2000]
    del felt.ai_ms[0], felt.page_ms[0]  # what is asked for first is also imported
    felt.periods.append(Period(IDLE, began, time.monotonic()))


def _speak(
    load: Load, game: Evennia, crowd: Crowd, felt: Felt, *, name: str, connection: Any
) -> None:
    """One period of speech, until nothing of it is still written."""
    before, began = _counts(connection), time.monotonic()
    lines = load.awake if name == WAKING else round(load.turns_per_second * load.seconds)
    asked = {
        "npcs": crowd.pairs,
        "per_second": load.turns_per_second,
        "seconds": lines / load.turns_per_second,
    }
    part = (game.root / GO).with_suffix(".part")
    part.write_text(json.dumps(asked), encoding="utf-8")
    part.replace(game.root / GO)
    while not (game.root / DONE).exists():
        time.sleep(0.2)
    told = json.loads((game.root / DONE).read_text(encoding="utf-8"))
    (game.root / DONE).unlink()
    felt.periods.append(Period(name, told["began"], told["ended"]))
    felt.said[name] = told["said"]
    after, changed_at = _settled(connection)
    felt.took[name] = changed_at - began
    felt.rows[name] = {key: after[key] - before[key] for key in COUNTED}
    felt.answered[name] = after["done"] - before["done"]


def _counts(connection: Any) -> dict[str, int]:
    """How many rows there are; ids are counted up without gaps by one writer, so the newest tells.

    Turns that are done are counted from the newest id of the crowd on.
    """
    newest = {
        name: connection.execute(f"SELECT coalesce(max(id), 0) FROM evennia_ai_{name}")
        for name in COUNTED
    }
    found = {name: int(cursor.fetchone()[0]) for name, cursor in newest.items()}
    done = connection.execute("SELECT count(*) FROM evennia_ai_turn WHERE state = 'done'")
    return {**found, "done": int(done.fetchone()[0])}


def _settled(connection: Any) -> tuple[dict[str, int], float]:
    """The counts once nothing is written any more, and when the last of it was."""
    counts, changed_at = _counts(connection), time.monotonic()
    while time.monotonic() - changed_at < QUIET_SECONDS:
        time.sleep(0.5)
        now = _counts(connection)
        if now != counts:
            counts, changed_at = now, time.monotonic()
    return counts, changed_at


def _note_lags(felt: Felt, root: Path) -> None:
    noted = [
        tuple(map(float, line.split()))
        for line in (root / LATENESS).read_text(encoding="ascii").splitlines()
        if line.count(" ") == 1
    ]
    for period in felt.periods:
        late = [1000 * lag for at, lag in noted if period.began <= at < period.ended]
        felt.lag_ms[period.name] = {
            "p50": statistics.median(late),
            "p99": percentile(late, 99),
            "worst": max(late),
        }


def report(felt: Felt, load: Load) -> str:
    """The figures, as a person reads them."""
    end = f"{felt.memory_at_end:.0f} MB at the end (asked {RSS_MB:g})"
    lines = [
        f"{load.npcs} NPCs made in {felt.rows_made_seconds:.0f} s, {load.awake} of them awake",
        f"cold start: {felt.cold_start_seconds:.1f} s (asked {COLD_SECONDS:g})",
        f"memory of the Server: {felt.memory_at_start:.0f} MB after the start, {end}",
        f"ai: {_in_words(felt.ai_ms)}",
        f"the Village page: {_in_words(felt.page_ms)}",
    ]
    for name, said in felt.said.items():
        rows = felt.rows[name]
        told = ", ".join(f"{count} of {key}" for key, count in rows.items())
        lines.append(
            f"{name}: {said} lines said, {felt.answered[name]} answered; all was written after"
            f" {felt.took[name]:.0f} s, {sum(rows.values()) / felt.took[name]:.0f} rows/s ({told})"
        )
    for name, lag in felt.lag_ms.items():
        figures = ", ".join(f"{key} {value:.1f} ms" for key, value in lag.items())
        lines.append(f"reactor's lag, {name}: {figures}")
    tables = [table(felt.units[period.name], period) for period in felt.periods]
    return "\n\n".join(["\n".join(lines), *tables])


def _in_words(took: list[float]) -> str:
    most = percentile(took, 95)
    return f"median {statistics.median(took):.0f} ms, p95 {most:.0f} ms (asked {PAGE_MS:g})"


def problems(felt: Felt) -> list[str]:
    """What of the figures is not as it should be."""
    found = []
    if felt.cold_start_seconds > COLD_SECONDS:
        found.append(f"the start took {felt.cold_start_seconds:.1f} s")
    if felt.memory_at_end > RSS_MB:
        found.append(f"the Server holds {felt.memory_at_end:.0f} MB")
    for what, took in (("ai", felt.ai_ms), ("the Village page", felt.page_ms)):
        if percentile(took, 95) > PAGE_MS:
            found.append(f"{what} took {percentile(took, 95):.0f} ms at the 95th percentile")
    for name, said in felt.said.items():
        if felt.answered[name] < said:
            found.append(f"{name}: {said - felt.answered[name]} of {said} lines had no answer")
    return found


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--npcs", type=int, default=Load.npcs)
    parser.add_argument("--awake", type=int, default=Load.awake)
    parser.add_argument("--turns-per-second", type=float, default=Load.turns_per_second)
    parser.add_argument("--seconds", type=float, default=Load.seconds)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    load = Load(
        npcs=asked.npcs,
        awake=min(asked.awake, asked.npcs),
        turns_per_second=asked.turns_per_second,
        seconds=asked.seconds,
    )
    with tempfile.TemporaryDirectory() as folder:
        felt = measured(load, Path(folder))
    print(json.dumps(asdict(felt), default=list) if asked.json else report(felt, load))
    found = problems(felt)
    for problem in found:
        print(f"!! {problem}", file=sys.stderr)
    return 1 if asked.check and found else 0


if __name__ == "__main__":
    sys.exit(main())
