"""Measure how fast web pages draw a change, and `look` while pages are open.

    python -m benchmarks.web_live [--moves 40] [--looks 200] [--readers 20] [--check]

A copy of the demo game runs on this machine. In a real Chromium, a key press moves a text in the
column of a turn, again and again. The time of a move is from the key press until two frames after
the page has the new column. Then somebody types `look` in the game: first alone, then while readers
request the watch page every two seconds. Printed are the median, 95th and 99th percentile and worst
time in milliseconds. `--check` ends with status 1 if a move takes more than 150 ms at the 95th
percentile, or if `look` takes twice as long at the 99th percentile as alone.
"""

import argparse
import statistics
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from benchmarks.load_table import percentile
from server.newcomer import read_demo
from server.ports import HOST
from tests.acceptance.browsers import Troubles, a_page, chromium
from tests.acceptance.games import builder_beside_npc, copied_game, shown, started
from tests.services.llm.clients.stub_server import StubServer, answers

MOVE_MS: Final = 150.0
MOST_TIMES_SLOWER: Final = 2.0
TURNS: Final = 12
_POLL_SECONDS: Final = 2.0
_MOVED: Final = """async (wanted) => {
  const row = () => document.querySelector('[data-origin="component:drizzle"]');
  row().focus();
  const begun = performance.now();
  row().dispatchEvent(new KeyboardEvent("keydown", {key: wanted, altKey: true, bubbles: true}));
  const before = row().querySelector(".depth").textContent;
  while (row().querySelector(".depth").textContent === before) {
    await new Promise(requestAnimationFrame);
  }
  await new Promise(requestAnimationFrame);
  await new Promise(requestAnimationFrame);
  return performance.now() - begun;
}"""


def in_the_browser(
    base_url: str, account: tuple[str, str], npc: str, moves: int
) -> tuple[list[float], str]:
    """Return how long each move took, in milliseconds, and the cookies of the browser."""
    with (
        chromium(undone="moves are not measured") as browser,
        a_page(browser, Troubles(), base_url=base_url) as page,
    ):
        page.goto("/auth/login/?next=/ai/")
        page.fill("input[name=username]", account[0])
        page.fill("input[name=password]", account[1])
        page.press("input[name=password]", "Enter")
        page.get_by_role("link", name=npc, exact=True).click()
        page.locator("main table tbody tr").first.get_by_role("link").click()
        page.locator('[data-origin="component:drizzle"]').wait_for()
        page.wait_for_load_state("networkidle")
        keys = ["ArrowUp", "ArrowDown"]
        took = [page.evaluate(_MOVED, keys[at % 2]) for at in range(moves + 4)]
        cookies = [f"{one['name']}={one['value']}" for one in page.context.cookies()]
    return took[4:], "; ".join(cookies)


@contextmanager
def reading(base_url: str, cookies: str, readers: int) -> Iterator[None]:
    """Let a number of people have the watch page open."""
    over = threading.Event()

    def read(begin: float) -> None:
        over.wait(begin)
        while not over.is_set():
            asked = urllib.request.Request(f"{base_url}/ai/live/")
            asked.add_header("Cookie", cookies)
            with urllib.request.urlopen(asked, timeout=30) as answer:
                assert answer.status == 200
                answer.read()
            over.wait(_POLL_SECONDS)

    threads = [
        threading.Thread(target=read, args=(_POLL_SECONDS * at / readers,), daemon=True)
        for at in range(readers)
    ]
    for thread in threads:
        thread.start()
    time.sleep(_POLL_SECONDS)
    yield
    over.set()
    for thread in threads:
        thread.join(30)


def looked(builder: Any, looks: int) -> list[float]:
    """Return how long each `look` took, in milliseconds."""
    took = []
    for _ in range(looks):
        begun = time.perf_counter()
        builder.send("look")
        builder.wait_for("Ferry Landing", seconds=10)
        took.append(1000 * (time.perf_counter() - begun))
        time.sleep(0.05)
    return took


def told(name: str, took: list[float]) -> str:
    """Print a row of the table."""
    figures = (
        statistics.median(took),
        percentile(took, 95),
        percentile(took, 99),
        max(took),
    )
    return f"{name:34} " + " ".join(f"{figure:8.1f}" for figure in figures)


def main() -> int:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moves", type=int, default=40)
    parser.add_argument("--looks", type=int, default=200)
    parser.add_argument("--readers", type=int, default=20)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    stub = StubServer()
    stub.behaves(answers("Aye."))
    profiles = {"default": {"base_url": stub.base_url, "model": "tiny", "stream": False}}
    settings = f"EVENNIA_AI_PROFILES = {profiles!r}\nEVENNIA_AI_COOLDOWN_SECONDS = 0.0\n"
    with tempfile.TemporaryDirectory() as folder:
        game = copied_game(Path(folder) / "game", settings=settings)
        with started(game), builder_beside_npc(game) as builder:
            demo = read_demo(game.root / "world" / "build_demo.py")
            shown(builder, "component/create drizzle = 1250: It drizzles.", until="drizzle")
            shown(builder, "component/depth drizzle = 1", until="drizzle")
            for number in range(TURNS):
                builder.send(f"say {demo.npc}, when does ferry {number} sail?")
                builder.wait_for(r"says, .Aye", seconds=30)
                builder.wait_for_quiet()
            base_url = f"http://{HOST}:{game.ports.web}"
            npc = demo.npc.capitalize()
            moves, cookies = in_the_browser(base_url, demo.builder, npc, given.moves)
            alone = looked(builder, given.looks)
            with reading(base_url, cookies, given.readers):
                beside = looked(builder, given.looks)
    stub.close()
    print(f"{'milliseconds':34} {'median':>8} {'p95':>8} {'p99':>8} {'worst':>8}")
    print(told(f"a move until it is drawn ({given.moves})", moves))
    print(told(f"look, alone ({given.looks})", alone))
    print(told(f"look, beside {given.readers} readers", beside))
    is_slow = percentile(moves, 95) > MOVE_MS
    is_held = percentile(beside, 99) > MOST_TIMES_SLOWER * percentile(alone, 99)
    return int(given.check and (is_slow or is_held))


if __name__ == "__main__":
    sys.exit(main())
