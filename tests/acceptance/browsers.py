"""Run a real Chromium for tests, without network, and record the errors of its pages."""

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
"""The tags of axe-core for the rules of WCAG 2.2, levels A and AA."""
MOST_MILLISECONDS: Final = 300_000
"""The longest wait for anything on a page; long, because the machine may be busy."""
_OFFLINE: Final = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"


@dataclass
class Troubles:
    """The console output of a page, and the addresses that it requested from other machines."""

    console: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)


@contextmanager
def chromium(*, undone: str) -> Iterator[Any]:
    """Start Debian's Chromium with playwright, or skip the test if Chromium is missing.

    `chromium-headless-shell` is preferred: it takes half the processor time.
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
    """Open a page in a browser context without cookies. `options` go to `new_context`."""
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
    """Return each violation that axe-core finds on the page: the rule and the element.

    The debugger runs the script, so the page's content security policy does not block it.
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
    """Save a picture of the page in the folder `EVENNIA_AI_SCREENSHOTS`, if that is set."""
    if folder := os.environ.get("EVENNIA_AI_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png")


def _evaluated(client: Any, script: str) -> Any:
    answer = client.send(
        "Runtime.evaluate",
        {"expression": script, "awaitPromise": True, "returnByValue": "axe.run" in script[:8]},
    )
    assert "exceptionDetails" not in answer, answer["exceptionDetails"]
    return answer["result"].get("value")
