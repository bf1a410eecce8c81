"""A builder at the pages in a real Chromium, beside a real server: by mouse and by keyboard."""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from server.evennia_process import Evennia
from server.newcomer import read_demo
from server.ports import HOST
from tests.acceptance.browsers import Troubles, a_page, chromium, kept, violations
from tests.acceptance.games import builder_beside_npc, copied_game, shown, started
from tests.llm.clients.stub_server import StubServer, answers

pytestmark = [pytest.mark.server, pytest.mark.extra, pytest.mark.minutes(1)]

UNDONE = "the pages in a browser are not tried"
SCREENS = {
    "wide and light": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"},
    "narrow and dark": {
        "viewport": {"width": 390, "height": 844},
        "color_scheme": "dark",
        "reduced_motion": "reduce",
    },
}
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"
QUESTIONS = ("when does the ferry sail?", "is the lamp lit?", f"what of {HOSTILE}?", "and the fog?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A game in which somebody spoke with its NPC, and a browser."""

    game: Evennia
    browser: Any
    npc: str
    builder: Any
    """The builder's telnet connection."""

    @property
    def base_url(self) -> str:
        return f"http://{HOST}:{self.game.ports.web}"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    stub = StubServer()
    stub.behaves(answers("Aye."))
    settings = f"""
EVENNIA_AI_PROFILES = {{
    "default": {{"base_url": {stub.base_url!r}, "model": "tiny", "stream": False}}
}}
EVENNIA_AI_COOLDOWN_SECONDS = 0.0
"""
    with ExitStack() as stack:
        browser = stack.enter_context(chromium(undone=UNDONE))
        game = copied_game(tmp_path_factory.mktemp("game"), settings=settings)
        stack.enter_context(started(game))
        demo = read_demo(game.root / "world" / "build_demo.py")
        builder = stack.enter_context(builder_beside_npc(game))
        shown(builder, "component/create drizzle = 1250: It drizzles.", until="drizzle")
        shown(builder, "component/depth drizzle = 1", until="drizzle")
        for question in QUESTIONS:
            builder.send(f"say {demo.npc}, {question}")
            builder.wait_for(r"says, .Aye", seconds=30)
            builder.wait_for_quiet()
        yield Site(game=game, browser=browser, npc=demo.npc.capitalize(), builder=builder)
        stub.close()


@pytest.fixture(params=SCREENS)
def page(site: Site, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The village, after a builder came in through the site's login page; nothing goes wrong."""
    troubles = Troubles()
    options = SCREENS[request.param]
    with a_page(site.browser, troubles, base_url=site.base_url, **options) as page:
        name, password = read_demo(site.game.root / "world" / "build_demo.py").builder
        page.goto("/auth/login/?next=/ai/")
        page.fill("input[name=username]", name)
        page.fill("input[name=password]", password)
        page.press("input[name=password]", "Enter")
        page.wait_for_url("**/ai/")
        troubles.console.clear()  # Evennia's own pages want fonts and styles from elsewhere
        troubles.elsewhere.clear()
        yield page
        assert (troubles.console, troubles.elsewhere) == ([], [])


def to_the_last_turn(page: Any, site: Site) -> None:
    """By the links of the village."""
    page.get_by_role("link", name=site.npc, exact=True).click()
    page.get_by_role("heading", name=site.npc).first.wait_for()
    page.locator("main table tbody tr").first.get_by_role("link").click()
    page.get_by_role("heading", name=re.compile("turn [0-9]+$")).wait_for()


def depth_told(page: Any) -> str:
    row = page.locator('[data-origin="component:drizzle"]')
    return str(row.locator(".depth").text_content())


def test_every_page_is_accessible_and_what_players_said_is_text(page: Any, site: Site) -> None:
    assert violations(page) == []
    to_the_last_turn(page, site)
    turn = page.url
    npc = turn.partition("turn/")[0]
    number = int(turn.rstrip("/").rpartition("/")[2])
    edit = "?with=component:drizzle.depth=2"
    addresses = [
        turn,
        f"{turn}{edit}",
        npc,
        f"{npc}diff/{number - 1}/{number}/",
        f"{npc}against/{edit}",
        f"{npc}next/?say=the lamp",
        "/ai/lore/",
        "/ai/lore/harbour/new/",
        "/ai/cards/",
        "/ai/cards/new/",
        "/ai/cards/oren/edit/",
        "/ai/live/",
    ]
    for address in addresses:
        page.goto(address)
        assert violations(page) == [], address
        screen = f"{page.viewport_size['width']}"
        kept(page, f"{screen}-{address.partition('/ai/')[2].replace('/', '-')[:40]}")
        assert page.locator("main img, main script").count() == 0
    page.goto(f"{turn}{edit}")
    page.locator('[data-origin="component:drizzle"]').scroll_into_view_if_needed()
    kept(page, f"{page.viewport_size['width']}-column")
    page.goto("/ai/lore/")
    page.locator("main li a").first.click()
    assert violations(page) == []


def test_a_text_is_moved_by_keys_saved_and_moved_back(page: Any, site: Site) -> None:
    to_the_last_turn(page, site)
    row = page.locator('[data-origin="component:drizzle"]')
    before = int(re.search(r"[0-9]+", depth_told(page))[0])  # type: ignore[index]
    for step in (1, 2):
        row.focus()
        page.keyboard.press("Alt+ArrowUp")
        page.get_by_role("status").filter(has_text=f"depth {before + step}").wait_for()
    assert f"component:drizzle.depth={before + 2}" in page.url.replace("%3A", ":").replace(
        "%3D", "="
    )
    assert page.evaluate("document.activeElement.dataset.origin") == "component:drizzle"
    assert shown(site.builder, "component/depth drizzle", until="depth").count(str(before + 2)) == 0
    page.get_by_role("button", name="Save as a revision").press("Enter")
    page.wait_for_url("**saved=1**")
    told = shown(site.builder, "component drizzle", until="drizzle")
    assert re.search(rf"depth\D+{before + 2}\b", told), told
    site.builder.send(f"component/depth drizzle = {before}")
    site.builder.wait_for_quiet()


def test_a_text_is_moved_by_the_mouse_and_the_move_undone(page: Any, site: Site) -> None:
    to_the_last_turn(page, site)
    before = depth_told(page)
    handle = page.locator('[data-origin="component:drizzle"] .handle')
    row = page.locator('#column > li:has([data-origin="component:drizzle"])')
    target = row.locator("xpath=preceding-sibling::li[@data-said][2]")
    handle.scroll_into_view_if_needed()
    start, end = handle.bounding_box(), target.bounding_box()
    page.mouse.move(start["x"] + start["width"] / 2, start["y"] + start["height"] / 2)
    page.mouse.down()
    page.mouse.move(end["x"] + 60, end["y"] + end["height"] + 4, steps=12)
    page.mouse.move(end["x"] + 60, end["y"] + 3, steps=12)
    page.mouse.up()
    page.get_by_role("status").filter(has_text="component:drizzle: now depth").wait_for()
    assert depth_told(page) != before
    page.get_by_role("link", name="undo").first.click()
    page.locator(".trial").wait_for(state="detached")
    assert depth_told(page) == before


def test_one_npc_is_stopped_and_goes_on(page: Any, site: Site) -> None:
    page.get_by_role("link", name=site.npc, exact=True).click()
    page.get_by_role("button", name=f"Stop {site.npc}").click()
    page.get_by_text("Paused:").wait_for()
    assert "paused" in shown(site.builder, f"ai {site.npc}", until="PAUSED").lower()
    page.get_by_role("button", name=f"Let {site.npc} go on").click()
    page.get_by_role("button", name=f"Stop {site.npc}").wait_for()


def test_an_entry_that_wakes_on_a_word_is_made_and_proved(page: Any, site: Site) -> None:
    word = f"gannet{page.viewport_size['width']}"
    page.get_by_role("link", name="Lorebooks").click()
    page.get_by_role("link", name="harbour", exact=True).click()
    page.get_by_role("link", name="A new entry").click()
    page.get_by_label("Keys, one a line", exact=True).fill(word)
    page.get_by_label("Text", exact=True).fill(f"The {word} dives for herring.")
    page.get_by_role("button", name="Save as a revision").click()
    page.get_by_role("status").filter(has_text="Saved").wait_for()
    entry = page.get_by_role("heading", name="Entry").inner_text().split()[-1]
    page.get_by_role("link", name="Minds").first.click()
    page.get_by_role("link", name=site.npc, exact=True).click()
    page.get_by_role("link", name="Try a line").click()
    page.get_by_label("Try a line").fill(f"is that a {word}?")
    page.keyboard.press("Enter")
    page.locator("#woken").filter(has_text=f"lore:harbour#{entry}").wait_for()
    page.get_by_label("Try a line").fill("nice weather")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Lore that the line wakes").wait_for()
    assert f"lore:harbour#{entry}" not in page.locator("#woken").inner_text()


def test_a_card_is_imported_and_approved_with_one_grant(page: Any, site: Site) -> None:
    name = f"Tilda{page.viewport_size['width']}"
    data = {"name": name, "description": "{{char}} mends nets.", "first_mes": "", "mes_example": ""}
    card = {"spec": "chara_card_v2", "spec_version": "2.0", "data": data}
    page.get_by_role("link", name="Cards").click()
    file = {
        "name": "tilda.json",
        "mimeType": "application/json",
        "buffer": json.dumps(card).encode(),
    }
    page.get_by_label("A JSON, PNG").set_input_files(file)
    page.get_by_role("button", name="Import").click()
    page.get_by_role("heading", name=name).wait_for()
    assert violations(page) == []
    page.get_by_label("fields: its description").check()
    page.get_by_role("button", name="Approve").click()
    page.get_by_role("heading", name=f"{name}, revision").wait_for()
    assert violations(page) == []
    assert "fields" in shown(site.builder, f"card {name}", until="may:")


def test_a_character_is_made_from_nothing_assigned_and_talked_to(page: Any, site: Site) -> None:
    name, npc = f"Mira{page.viewport_size['width']}", f"Herbwife{page.viewport_size['width']}"
    shown(site.builder, f"create/drop {npc}:evennia_ai.game.npc.AINPC", until=npc)
    page.get_by_role("link", name="Cards").click()
    page.get_by_role("link", name="A new character").click()
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Who it is").fill(f"{name} sells herbs on the quay.")
    page.get_by_role("button", name="Make it").click()
    page.get_by_label("personality", exact=True).fill("Dry, and kind to children.")
    page.get_by_role("button", name="Save as a revision").click()
    page.get_by_role("status").filter(has_text="Saved as revision 2").wait_for()
    page.get_by_role("link", name=name, exact=True).click()
    page.get_by_label("Let this NPC play it").fill(npc)
    page.get_by_role("button", name="Assign").click()
    page.get_by_role("link", name=npc).wait_for()
    site.builder.send(f"say {npc}, what do you sell?")
    site.builder.wait_for(r"says, .Aye", seconds=30)
    site.builder.wait_for_quiet()
    page.get_by_role("link", name=npc).click()
    page.locator("main table tbody tr").first.get_by_role("link").click()
    column = page.locator("#column").text_content()
    assert f"{name} sells herbs on the quay." in column
    assert "Dry, and kind to children." in column


def test_without_scripts_every_step_is_a_link(site: Site) -> None:
    troubles = Troubles()
    name, password = read_demo(site.game.root / "world" / "build_demo.py").builder
    with a_page(site.browser, troubles, base_url=site.base_url, java_script_enabled=False) as page:
        page.goto("/auth/login/?next=/ai/")
        page.fill("input[name=username]", name)
        page.fill("input[name=password]", password)
        page.press("input[name=password]", "Enter")
        to_the_last_turn(page, site)
        before = depth_told(page)
        page.locator('[data-origin="component:drizzle"] [data-move="deeper"]').click()
        assert depth_told(page) != before
