"""Take the pictures in `docs/images` from a real game: `.venv/bin/python -m docs.pictures`.

A copy of the demo is started, a builder asks what the README shows, and Chromium opens the page of
the last turn.
"""

import re
import tempfile
from contextlib import ExitStack
from pathlib import Path

from server.newcomer import read_demo
from server.ports import HOST
from tests.acceptance.browsers import Troubles, a_page, chromium
from tests.acceptance.games import builder_beside_npc, copied_game, started

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
WIDE = {"width": 1280, "height": 800}
COLUMN = {"width": 1280, "height": 640}


def lines_of_play() -> list[str]:
    """Return what the README shows a player say."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(r"^> (say .*)$", readme, re.MULTILINE)


def take_pictures() -> None:
    """Play the README's lines in a copied demo, and write both pictures."""
    with ExitStack() as stack:
        browser = stack.enter_context(chromium(undone="no picture is taken"))
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        (root := Path(folder, "game")).mkdir()
        game = copied_game(root)
        stack.enter_context(started(game))
        builder = stack.enter_context(builder_beside_npc(game))
        for line in lines_of_play():
            builder.send(line)
            builder.wait_for("Oren says", seconds=60)
            builder.wait_for_quiet()
        address = f"http://{HOST}:{game.ports.web}"
        page = stack.enter_context(a_page(browser, Troubles(), base_url=address, viewport=WIDE))
        page.goto("/auth/login/?next=/ai/")
        name, password = read_demo(game.root / "world" / "build_demo.py").builder
        page.fill("input[name=username]", name)
        page.fill("input[name=password]", password)
        page.keyboard.press("Enter")
        page.get_by_role("link", name="Oren", exact=True).first.click()
        page.get_by_role("link", name=re.compile(r"^(turn )?3$", re.IGNORECASE)).first.click()
        page.get_by_text("Oren, what does a crossing cost?").first.wait_for()
        page.get_by_text("Oren, what does a crossing cost?").first.evaluate(
            "one => window.scrollTo(0, one.getBoundingClientRect().top + scrollY - 12)"
        )
        page.screenshot(path=IMAGES / "turn-column.png", clip={"x": 0, "y": 0, **COLUMN})
        page.get_by_role("link", name="deeper").first.click()
        page.get_by_text("Your edit, not stored").wait_for()
        page.evaluate("window.scrollTo(0, 0)")
        page.screenshot(path=IMAGES / "turn-edit.png")


if __name__ == "__main__":
    take_pictures()
