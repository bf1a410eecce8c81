"""Play the demo for a while and keep its database, for the tests of later upgrades.

    python -m tests.upgrades.playing tests/upgrades/played-0.1.0.db3.xz

A release adds such a file once, and no file is ever made again: its rows must be those that the
released version wrote.
"""

import lzma
import re
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Final

from server.evennia_process import Evennia
from tests.acceptance.games import DATABASE, builder_beside_npc, copied_game, reload, shown, started
from tests.docs.fences import REFUSED
from tests.docs.test_tutorial import FROM_NOTHING, steps

SETTINGS: Final = """
EVENNIA_AI_COOLDOWN_SECONDS = 0.0
EVENNIA_AI_THINKING_SECONDS = 0.0
"""
EVENING: Final = (
    ("say Oren, when does the ferry leave?", "Oren says"),
    ("say Oren, and when does it come back?", "Oren says"),
    ("whisper oren = I have a letter for you.", "Oren "),
    ("ai/memory oren = about Tamsin: Carries a letter.", r"\S"),
    ("ai/undo oren", r"\S"),
    ("ai/off oren", r"\S"),
    ("say Oren, are you there?", r"\S"),
    ("ai/on oren", r"\S"),
    ("ai/set oren = temperature 0.7", r"\S"),
    ("component/depth mood = 3", r"\S"),
    ("component/off mood", r"\S"),
    ("component/create smell = {{char}} smells the sea.", r"\S"),
    ("note oren/cold = Oren has a cold.", r"\S"),
    ("note oren/cold = Oren has a bad cold.", r"\S"),
    ("lore/order herbs/fenbane = 20", r"\S"),
    ("lore/set herbs/fenbane = sticky 2", r"\S"),
    ("card/edit Mira/description = Mira sells herbs and asks no questions.", r"\S"),
    ("card/greeting mira = 0", r"\S"),
    ("persona = A stranger with a wet coat.", r"\S"),
    ("kb/create tides = The tides", r"\S"),
    ("kb/assign tides = Oren", r"\S"),
    ("say Oren, what of the letter?", "Oren says"),
    ("say Oren, good night!", "Oren says"),
    ("ai/compact oren", r"\S"),
    ("ai/keep oren = asks about the letter", r"\S"),
    ("ai/reset mira", r"\S"),
)
"""Lines that a builder types after the tutorial, each with a pattern that its answer contains."""


def play_evening(game: Evennia) -> list[str]:
    """Type the tutorial and the lines of `EVENING`; return what each line printed."""
    told, corrected = [], ""
    lines = [(typed, _end_of(typed)) for typed, _ in steps(FROM_NOTHING)]
    with builder_beside_npc(game) as builder:
        for typed, end in [*lines, *EVENING]:
            line = re.sub(r"#\d+", f"#{corrected}", typed)
            told.append(f"> {line}\n{shown(builder, line, until=end)}")
            if typed == "ai/history mira":
                corrected = re.findall(r"^#(\d+) .* assistant$", told[-1], re.MULTILINE)[1]
    return told


def _end_of(typed: str) -> str:
    if typed.startswith("say "):
        return r"Mira says|Mira .*\."
    return "In your branch of Mira:" if typed.startswith("ai/branch mira =") else r"\S"


def main(target: Path) -> None:
    """Write the database of a game that was played and reloaded, compressed, to `target`."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "games" / "game"
        root.mkdir(parents=True)
        game = copied_game(root, settings=SETTINGS)
        with started(game):
            told = play_evening(game)
            reload(game)
        refused = [text for text in told if REFUSED.search(text)]
        if refused:
            raise SystemExit("\n".join(refused))
        with closing(sqlite3.connect(root / DATABASE)) as database:
            database.execute("DELETE FROM django_session")
            database.commit()
            database.execute("VACUUM")
        target.write_bytes(lzma.compress((root / DATABASE).read_bytes(), preset=9))
    print("\n".join(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
