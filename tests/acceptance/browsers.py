"""A real Chromium for tests: it stays on this machine, and what goes wrong in a page is kept."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.absent import absent, need

AXE: Final = Path(__file__).parent / "axe-core-4.14.1" / "axe.min.js"
RULES: Final = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa")
"""The Web Content Accessibility Guidelines 2.2, levels A and AA, as axe-core tags its rules."""
MOST_MILLISECONDS: Final = 300_000
"""How long something on a page may take on a busy machine; nothing here is a matter of time."""
_OFFLINE: Final = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"


@dataclass
class Troubles:
    """What a page said on its console, and what it asked of other machines."""

    console: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)


@contextmanager
def chromium(*, undone: str) -> Iterator[Any]:
    """Debian's Chromium, driven by playwright; where it is missing the test says so.

    The one without windows takes half the processor time.
    """
    need("playwright", undone=undone)
    program = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if program is None:
        absent(undone, why="Chromium is missing; apt-get install chromium-headless-shell")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu", _OFFLINE]
        )
        yield browser
        browser.close()


@contextmanager
def a_page(browser: Any, troubles: Troubles, *, base_url: str, **options: Any) -> Iterator[Any]:
    """A page of a browser without cookies; `options` are playwright's of a context."""
    context = browser.new_context(base_url=base_url, **options)
    page = context.new_page()
    page.set_default_timeout(MOST_MILLISECONDS)
    page.on("console", lambda said: troubles.console.append(f"{said.type}: {said.text}"))
    page.on("pageerror", lambda error: troubles.console.append(f"error: {error}"))
    page.on(
        "request",
        lambda asked: (
            None
            if asked.url.startswith((base_url, "data:"))
            else troubles.elsewhere.append(asked.url)
        ),
    )
    yield page
    context.close()


def violations(page: Any) -> list[str]:
    """What axe-core finds on the page as it is: the rule and where.

    The script comes by the debugger, which no policy of the page holds up.
    """
    client = page.context.new_cdp_session(page)
    _evaluated(client, AXE.read_text(encoding="utf-8"))
    options = json.dumps({"runOnly": {"type": "tag", "values": RULES}})
    found = _evaluated(client, f"axe.run(document, {options})")
    return [
        f"{one['id']}: {one['help']}: {node['html'][:200]}"
        for one in found["violations"]
        for node in one["nodes"]
    ]


def kept(page: Any, name: str) -> None:
    """Keep a picture of the page in the folder that `EVENNIA_AI_SCREENSHOTS` names, if it does."""
    if folder := os.environ.get("EVENNIA_AI_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png")


def _evaluated(client: Any, script: str) -> Any:
    answer = client.send(
        "Runtime.evaluate",
        {"expression": script, "awaitPromise": True, "returnByValue": "axe.run" in script[:8]},
    )
    assert "exceptionDetails" not in answer, answer["exceptionDetails"]
    return answer["result"].get("value")
