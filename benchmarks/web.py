"""Measure how long the web pages for builders take, and their size.

    python -m benchmarks.web [--turns 1000] [--entries 10000] [--repeat 40] [--check]

The tables of a real game are in a SQLite file. An NPC with a card, notes, components and a lorebook
of ten thousand entries has had a thousand turns. Django's own client, logged in as a builder,
requests each page. So the time is that of the server until the first byte; a page is complete
before any of it is sent. Printed are the median, 95th percentile and worst processor time in
milliseconds, the size of the page plain and compressed, and the number of its elements. Other
programs on the machine hardly change a processor time. Then the size of the scripts follows that
pages without an editor use. `--check` ends with status 1 if a page is over its limits.

`--profile PAGE` prints the functions in which one page spends most of its time.
"""

import argparse
import cProfile
import gzip
import pstats
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from benchmarks.load_table import percentile
from benchmarks.turn import CONTEXT_TOKENS, started

FIRST_BYTE_MS: Final = 60.0
MOST_ELEMENTS: Final = 1500
MOST_SCRIPT_BYTES: Final = 70_000
_SCRIPTS: Final = ("vendor/htmx-4.0.1/htmx.min.js", "vendor/sortablejs-1.15.7/Sortable.min.js")
_OWN: Final = ("turn.js",)


def played(turns: int, entries: int) -> Any:
    """Play so many turns and return the stage."""
    from twisted.internet.task import Clock

    from evennia_ai.engine.prompt.components import GAME
    from evennia_ai.services.settings.game import CompactionSettings
    from tests.npc.conftest import Stage, a_cast
    from tests.npc.scripted_games import a_book, an_entry, furnish, rule

    stage = Stage(Clock(), a_cast())
    furnish(stage)
    rule("weather", "It drizzles.", id=1202, injection_depth=2)
    told = [an_entry(f"word{n}", f"Entry {n} tells of a thing.") for n in range(entries)]
    a_book("region", told, GAME)
    stage.talks_with(
        lambda _: "Aye, and the tide is with us.",
        compaction=CompactionSettings(enabled=False),
        context_tokens=CONTEXT_TOKENS,
    )
    for number in range(turns):
        stage.says(stage.anna, f"Oren, and on day {number}: what of word{number % 97}?")
    return stage


def pages(stage: Any, turns: int) -> dict[str, str]:
    """Return the addresses of the pages to measure, by their names."""
    npc = f"/ai/npc/{stage.npc.ai.ref}/"
    turn = f"{npc}turn/{turns}/"
    return {
        "village": "/ai/",
        "mind": npc,
        "turn": turn,
        "turn with an edit": f"{turn}?with=component:weather.depth=4",
        "turn, as JSON": f"{turn}?format=json",
        "what is different": f"{npc}diff/{turns - 1}/{turns}/",
        "a slice of ten turns": f"{npc}against/?with=component:weather.depth=4",
        "a line tried": f"{npc}next/?say=what of word7?",
        "book": "/ai/lore/region/",
        "book, filtered": "/ai/lore/region/?find=word77",
        "entry": "/ai/lore/region/entry/77/",
        "lore over turns": f"/ai/lore/region/turns/?npc={stage.npc.ai.ref}",
        "cards": "/ai/cards/",
        "card": "/ai/cards/oren/1/",
        "a card in a prompt": f"/ai/cards/oren/1/preview/?npc={stage.npc.ai.ref}",
        "character": f"{npc}character/",
        "notes": f"{npc}notes/",
        "an hour tried": f"{npc}notes/?hour=20",
        "settings": f"{npc}settings/",
        "its turns": f"{npc}turns/",
        "conversation only": f"{npc}?part=chat",
        "memories": f"{npc}memory/",
        "knowledge": "/ai/kb/",
        "watch": "/ai/live/",
    }


def a_builder() -> Any:
    """Return a client that is logged in as a builder."""
    from django.contrib.auth import get_user_model
    from django.test import Client

    account = get_user_model().objects.create(username="tilda", is_active=True)
    account.permissions.add("Builder")
    client = Client(SERVER_NAME="localhost")
    client.force_login(account)
    return client


def measured(client: Any, address: str, repeat: int) -> tuple[list[float], bytes]:
    """Return the processor milliseconds of each request of a page after the first, and the page."""
    content = client.get(address).content
    times = []
    for _ in range(repeat):
        begun = time.process_time()
        content = client.get(address).content
        times.append(1000 * (time.process_time() - begun))
    return times, content


def print_profile(client: Any, address: str, repeat: int) -> None:
    """Print the functions in which a page spends most of its time."""
    client.get(address)
    profile = cProfile.Profile()
    profile.enable()
    for _ in range(repeat):
        client.get(address)
    profile.disable()
    pstats.Stats(profile).sort_stats("cumulative").print_stats(70)


def script_bytes() -> int:
    """Return the compressed size of the scripts of a page without an editor."""
    import evennia_ai

    folder = Path(evennia_ai.__file__).parent / "static" / "evennia_ai"
    return sum(len(gzip.compress((folder / name).read_bytes())) for name in (*_SCRIPTS, *_OWN))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--turns", type=int, default=1000)
    parser.add_argument("--entries", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=40)
    parser.add_argument("--profile", metavar="PAGE", action="append", default=[])
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    over = []
    with tempfile.TemporaryDirectory() as folder:
        started(folder)
        from evennia_ai.npc.service import Garbage

        stage = played(asked.turns, asked.entries)
        client = a_builder()
        Garbage().begin(held=int, is_quiet=bool)  # This is set as in a running game.
        for name in asked.profile:
            print_profile(client, pages(stage, asked.turns)[name], asked.repeat)
        if asked.profile:
            return 0
        heads = ("page", "p50", "p95", "worst", "kB", "gz kB", "elements")
        print(f"{heads[0]:22}" + "".join(f"{head:>9}" for head in heads[1:]))
        for name, address in pages(stage, asked.turns).items():
            times, content = measured(client, address, asked.repeat)
            p95 = percentile(times, 95)
            elements = len(re.findall(rb"<[a-z]", content)) if content.startswith(b"<!") else 0
            figures = (statistics.median(times), p95, max(times), len(content) / 1000)
            cells = [*figures, len(gzip.compress(content)) / 1000]
            print(f"{name:22}" + "".join(f"{one:9.1f}" for one in cells) + f"{elements:9}")
            if p95 > FIRST_BYTE_MS or elements > MOST_ELEMENTS:
                over.append(f"{name}: {p95:.1f} ms, {elements} elements")
    print(f"scripts: {script_bytes() / 1000:.1f} kB compressed")
    if script_bytes() > MOST_SCRIPT_BYTES:
        over.append("the scripts are too heavy")
    for problem in over:
        print(f"!! {problem}", file=sys.stderr)
    return 1 if asked.check and over else 0


if __name__ == "__main__":
    sys.exit(main())
