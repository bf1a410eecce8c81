"""Take the pictures in `docs/images` from a real game: `.venv/bin/python -m docs.pictures`.

A copy of the demo is started, a builder talks with its people and asks Oren what the README shows,
and Chromium opens the home page and the page of the last turn.
"""

import re
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from server.newcomer import read_demo
from server.ports import HOST
from tests.acceptance.browsers import Troubles, a_page, chromium
from tests.acceptance.games import builder_beside_npc, copied_game, started

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
HOME = {"width": 1280, "height": 480}
WIDE = {"width": 1280, "height": 800}
WORKBENCH = {"width": 1280, "height": 960}
SMALL_TALK = {"Brida": "Brida, what is this place?", "Ismay": "Ismay, what of the light?"}


def lines_of_play() -> list[str]:
    """Return what the README shows a player say."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(r"^> (say .*)$", readme, re.MULTILINE)


def take_pictures() -> None:
    """Play in a copied demo, and write all pictures."""
    with ExitStack() as stack:
        browser = stack.enter_context(chromium(undone="no picture is taken"))
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        (root := Path(folder, "game")).mkdir()
        game = copied_game(root, settings="EVENNIA_AI_COOLDOWN_SECONDS = 0.0")
        stack.enter_context(started(game))
        builder = stack.enter_context(builder_beside_npc(game))

        def asks(npc: str, line: str) -> None:
            builder.send(line)
            builder.wait_for(f"{npc} says", seconds=60)
            builder.wait_for_quiet()

        for npc, words in SMALL_TALK.items():
            builder.send(f"@teleport/loc {npc}")
            builder.wait_for_quiet()
            asks(npc, f"say {words}")
        builder.send("@teleport/loc Oren")
        builder.wait_for_quiet()
        lines = lines_of_play()
        for line in lines:
            asks("Oren", line)
        address = f"http://{HOST}:{game.ports.web}"
        page = stack.enter_context(a_page(browser, Troubles(), base_url=address, viewport=HOME))
        page.goto("/ai/")
        name, password = read_demo(game.root / "world" / "build_demo.py").builder
        page.fill("input[name=username]", name)
        page.fill("input[name=password]", password)
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="Home").wait_for()
        page.screenshot(path=IMAGES / "home.png")
        page.get_by_role("link", name=f"turn {len(lines)}: why?").first.click()
        page.locator(".why mark").first.wait_for()
        _save(page, "turn-why.png", top=".trail", height=880)
        _save(page, "turn-column.png", top=".row[data-said]", height=640)
        page.set_viewport_size(WIDE)
        page.get_by_role("link", name="deeper").first.click()
        page.locator("#kept", has_text="kept answer").wait_for()
        page.locator("#status").scroll_into_view_if_needed()
        page.screenshot(path=IMAGES / "turn-edit.png")
        page.set_viewport_size(WORKBENCH)
        page.goto("/ai/")
        page.get_by_role("link", name="Oren", exact=True).click()
        page.get_by_role("heading", name="Oren", level=1).wait_for()
        page.screenshot(path=IMAGES / "character.png")
        page.goto("/ai/cards/new/?like=innkeeper")
        page.get_by_label("Name", exact=True).fill("Mira")
        page.screenshot(path=IMAGES / "new-character.png")


def _save(page: Any, name: str, *, top: str, height: int) -> None:
    """Save a picture of the page that begins a little above the first element `top`."""
    start = max(0, page.locator(top).first.bounding_box()["y"] - 12)
    clip = {"x": 0, "y": start, "width": HOME["width"], "height": height}
    page.screenshot(path=IMAGES / name, clip=clip, full_page=True)


if __name__ == "__main__":
    take_pictures()
