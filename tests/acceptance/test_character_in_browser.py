"""Write, bring to life and teach a character in a real Chromium with a real game, by hand."""

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
from tests.acceptance.games import builder_beside_npc, copied_game, started
from tests.acceptance.hands import Hand
from tests.services.llm.clients.stub_server import StubServer, answers

pytestmark = [pytest.mark.server, pytest.mark.extra, pytest.mark.minutes(4)]

WIDE, SMALL = {"width": 1280, "height": 900}, {"width": 320, "height": 800}
# Every width, colour scheme and input device occurs.
SCREENS = {
    "wide, light, by mouse": ("mouse", {"viewport": WIDE, "color_scheme": "light"}),
    "small, dark, by keys": ("keys", {"viewport": SMALL, "color_scheme": "dark"}),
}
REPLY = '*Looks up.* "A bed, or only company?"'
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A game with a logged-in builder next to its NPC, and a browser."""

    game: Evennia
    browser: Any
    npc: str
    cookies: Any

    @property
    def base_url(self) -> str:
        return f"http://{HOST}:{self.game.ports.web}"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    stub = StubServer()
    stub.behaves(answers(REPLY))
    profile = {"base_url": stub.base_url, "model": "tiny", "stream": False}
    settings = f"""
EVENNIA_AI_PROFILES = {{"default": {profile!r}}}
EVENNIA_AI_COOLDOWN_SECONDS = 0.0
"""
    with ExitStack() as stack:
        browser = stack.enter_context(chromium(undone="the page of a character is not tried"))
        game = stack.enter_context(
            started(copied_game(tmp_path_factory.mktemp("game"), settings=settings))
        )
        demo = read_demo(game.root / "world" / "build_demo.py")
        stack.enter_context(builder_beside_npc(game))
        address = f"http://{HOST}:{game.ports.web}"
        page = stack.enter_context(a_page(browser, Troubles(), base_url=address))
        page.goto("/auth/login/?next=/ai/")
        name, password = demo.builder
        page.fill("input[name=username]", name)
        page.fill("input[name=password]", password)
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="Home").wait_for()
        yield Site(
            game=game,
            browser=browser,
            npc=demo.npc.capitalize(),
            cookies=page.context.storage_state(),
        )
        stub.close()


@pytest.fixture(params=SCREENS)
def hand(site: Site, request: pytest.FixtureRequest) -> Iterator[Hand]:
    """A builder at the home page.

    Afterwards the console must be empty, and no request may have left the machine.
    """
    troubles, (by, options) = Troubles(), SCREENS[request.param]
    options = {**options, "storage_state": site.cookies, "base_url": site.base_url}
    with a_page(site.browser, troubles, **options) as page:
        page.goto("/ai/")
        yield Hand(page, by)
        assert (troubles.console, troubles.elsewhere) == ([], [])


def button(hand: Hand, name: str) -> Any:
    return hand.page.get_by_role("button", name=name)


def checked(hand: Hand, picture: str = "") -> None:
    """Check the page: accessible, as wide as the window, and without an image of a text."""
    page = hand.page
    page.wait_for_load_state()
    assert violations(page) == [], page.url
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), page.url
    assert page.locator("main script, main img:not([src^='/ai/cards/'])").count() == 0
    if picture:
        kept(page, f"{picture}-{page.viewport_size['width']}")


def written(hand: Hand, name: str, *, room: str) -> None:
    """Write an innkeeper in the form, and bring it to life in a room."""
    page = hand.page
    hand.press(page.get_by_role("link", name="New character"))
    hand.press(page.get_by_role("link", name="An innkeeper"))
    page.wait_for_url("**like=**")
    checked(hand, "new-character")
    hand.write(page.get_by_label("Name", exact=True), name)
    value = page.get_by_label("Room").locator("option", has_text=room).get_attribute("value")
    page.get_by_label("Room").select_option(value)
    hand.press(button(hand, "Bring to life"))
    page.get_by_role("heading", name=name, level=1).wait_for()


def said(hand: Hand, line: str, *, how: str) -> None:
    """Say a line in the box, and wait for the answer, which appears by itself."""
    page = hand.page
    before = page.locator(".line.own").count()
    hand.write(page.get_by_label("Say something to"), line)
    hand.press(button(hand, how))
    page.locator(".line .speech", has_text=line).last.wait_for()
    page.locator(".line.own").nth(before).wait_for()
    page.locator(".line.own .speech", has_text="only company").last.wait_for()


def test_character_in_an_empty_room_answers_is_explained_and_corrected(
    hand: Hand, site: Site
) -> None:
    page, name = hand.page, f"Mira {hand.by}"
    room = {"mouse": "The Long Quay", "keys": "The Bell Steps"}[hand.by]
    written(hand, name, room=room)
    page.get_by_text(f"In {room}, alone").wait_for()
    checked(hand, "character-new")
    said(hand, "Good evening.", how="Say it as a visitor")
    page.locator(".line .speech", has_text="Shut the door behind you, dear").wait_for()
    hand.press(page.get_by_role("link", name="Why?").last)
    page.get_by_role("heading", name="What the model read for turn 1").wait_for()
    assert f"{name} keeps the inn." in page.locator("#column").text_content()
    checked(hand, "character-branch")
    hand.press(page.locator("summary", has_text="Correct").last)
    hand.write(page.get_by_label("should have said"), "We have no beds.")
    hand.press(button(hand, "Save the words"))
    page.locator(".line.own", has_text="We have no beds.").get_by_text("corrected").wait_for()
    said(hand, "A bed, please.", how="Say it in this branch")
    page.goto(page.url.partition("?")[0])
    assert "We have no beds." in page.locator("#column").text_content()


def test_builder_speaks_aloud_and_takes_it_back(hand: Hand, site: Site) -> None:
    page, line = hand.page, f"is the lamp lit, by {hand.by}? {HOSTILE}"
    hand.press(page.get_by_role("link", name=site.npc, exact=True))
    said(hand, line, how="Say it as Tamsin")
    checked(hand, "character")
    hand.press(button(hand, "Retry").last)
    page.get_by_text("asked for another answer").first.wait_for()
    page.locator(".line.own .speech", has_text="only company").last.wait_for()
    hand.press(button(hand, "Undo").last)
    page.get_by_text("took back what was said here").first.wait_for()
    assert page.locator(".line .speech", has_text=line).count() == 0


def test_card_is_edited_with_tokens_and_a_preview_next_to_the_conversation(
    hand: Hand, site: Site
) -> None:
    page = hand.page
    hand.press(page.get_by_role("link", name=site.npc, exact=True))
    said(hand, "good evening.", how="Say it as Tamsin")
    hand.press(page.get_by_role("link", name="Character", exact=True))
    field = page.get_by_label("How they are and how they speak")
    hand.write(field, f"Dry, by {hand.by}.")
    page.locator("[data-tokens=personality]", has_text=re.compile("^[1-9] tokens")).wait_for()
    page.locator("#preview-texts pre", has_text=f"Dry, by {hand.by}.").wait_for()
    hand.press(button(hand, "Save as a revision"))
    page.get_by_role("status").filter(has_text="Saved as revision").wait_for()
    checked(hand, "character-card")


def test_note_and_settings_are_saved_next_to_the_conversation(hand: Hand, site: Site) -> None:
    page, key = hand.page, f"mood_{hand.by}"
    hand.press(page.get_by_role("link", name=site.npc, exact=True))
    hand.press(page.get_by_role("link", name="Notes and mood"))
    hand.press(page.locator("summary", has_text="Add a note"))
    hand.write(page.get_by_label("Text of the new note"), "Oren is tired.")
    hand.write(page.get_by_label("Name of the note"), key)
    hand.press(button(hand, "Save the note").last)
    page.get_by_role("status").filter(has_text="Saved.").wait_for()
    page.get_by_label(f"Note: {key}").wait_for()
    checked(hand, "character-notes")
    hand.press(page.get_by_role("link", name="Settings and tools"))
    hand.write(page.get_by_label("Talkativeness"), "0.7")
    hand.press(button(hand, "Save the settings"))
    page.get_by_role("status").filter(has_text="Saved.").wait_for()
    checked(hand, "character-settings")


def test_character_lives_without_javascript(site: Site) -> None:
    options = {"storage_state": site.cookies, "base_url": site.base_url}
    with a_page(site.browser, Troubles(), java_script_enabled=False, **options) as page:
        page.goto("/ai/")
        hand = Hand(page, "mouse")
        page.get_by_role("link", name="New character").click()
        page.get_by_label("Name", exact=True).fill("Plain")
        page.get_by_role("button", name="Bring to life").click()
        page.get_by_label("Say something to").fill("Hello.")
        button(hand, "Say it as a visitor").click()
        while page.locator(".line.own").count() == 0:
            page.reload()
        button(hand, "Undo").last.click()
        assert page.locator(".line.own").count() == 0
