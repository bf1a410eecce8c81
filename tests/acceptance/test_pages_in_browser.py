"""Test the pages for builders in a real Chromium with a real server, by mouse and by keyboard."""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from server.evennia_process import Evennia
from server.newcomer import read_demo
from server.ports import HOST
from tests.acceptance.browsers import Troubles, a_page, chromium, kept, violations
from tests.acceptance.games import builder_beside_npc, copied_game, reload, shown, started
from tests.acceptance.hands import Hand
from tests.services.llm.clients.stub_server import StubServer, answers

pytestmark = [pytest.mark.server, pytest.mark.extra, pytest.mark.minutes(4)]

UNDONE = "the pages in a browser are not tried"
WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 320, "height": 844}
# Every pair of width, colour scheme and input device occurs.
SCREENS = {
    "wide, light, by mouse": ("mouse", {"viewport": WIDE, "color_scheme": "light"}),
    "wide, dark, by keys": ("keys", {"viewport": WIDE, "color_scheme": "dark"}),
    "narrow, light, by keys": ("keys", {"viewport": NARROW, "color_scheme": "light"}),
    "narrow, dark, by mouse": (
        "mouse",
        {"viewport": NARROW, "color_scheme": "dark", "reduced_motion": "reduce"},
    ),
}
# For forms: every width, colour scheme and input device occurs once.
TWO_SCREENS = {
    "wide, light, by mouse": SCREENS["wide, light, by mouse"],
    "narrow, dark, by keys": ("keys", {"viewport": NARROW, "color_scheme": "dark"}),
}
# No style rule depends on width and colour together (tests/web/test_style.py).
WIDTHS_AND_COLOURS = ("wide, light, by mouse", "narrow, dark, by mouse")
on_two_screens = pytest.mark.parametrize("hand", TWO_SCREENS, indirect=True)
CLERK = '''
"""The models of a lorekeeper, for a test."""

import json


def told(request):
    """The plan of every task."""
    plan = {"task_type": "red_link_generation", "entities": [], "writes_page": True}
    return json.dumps(plan)


def written(request):
    """The page that the task names last."""
    title = request.messages[-1].content.split()[-1]
    return f"=== PAGE: {title} ===\\nThe bell of {title} hung in the chapel."
'''
_HERE = Path(__file__).parent / "webclient-libraries"
LIBRARIES = {
    "jquery-3.2.1": _HERE / "jquery-3.2.1.min.js",
    "goldenlayout.min.js": _HERE / "goldenlayout-1.5.9.min.js",
    "goldenlayout-base.css": _HERE / "goldenlayout-base-1.5.9.css",
    "favico-0.3.10": _HERE / "favico-0.3.10.min.js",
}
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"
QUESTIONS = ("when does the ferry sail?", "is the lamp lit?", f"what of {HOSTILE}?", "and the fog?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A game in which the builder has spoken with the NPC, and a browser."""

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
    "default": {{"base_url": {stub.base_url!r}, "model": "tiny", "stream": False}},
    "clerk": {{"script": "world.clerk.told"}},
    "writer": {{"script": "world.clerk.written"}},
}}
EVENNIA_AI_MODEL_ROLES = {{"planner": "clerk", "lorekeeper": "writer"}}
EVENNIA_AI_COOLDOWN_SECONDS = 0.0
"""
    with ExitStack() as stack:
        browser = stack.enter_context(chromium(undone=UNDONE))
        game = copied_game(tmp_path_factory.mktemp("game"), settings=settings)
        (game.root / "world" / "clerk.py").write_text(CLERK, encoding="utf-8")
        stack.enter_context(started(game))
        demo = read_demo(game.root / "world" / "build_demo.py")
        builder = stack.enter_context(builder_beside_npc(game))
        shown(builder, "component/create drizzle = 1250: It drizzles.", until="drizzle")
        shown(builder, "component/depth drizzle = 1", until="drizzle")
        for question in QUESTIONS:
            builder.send(f"say {demo.npc}, {question}")
            builder.wait_for(r"says, .Aye", seconds=60)
            builder.wait_for_quiet()
        yield Site(game=game, browser=browser, npc=demo.npc.capitalize(), builder=builder)
        stub.close()


@pytest.fixture(scope="module")
def logged_in(site: Site) -> Any:
    """The cookies of a builder who has logged in on the website's login page."""
    name, password = read_demo(site.game.root / "world" / "build_demo.py").builder
    with a_page(site.browser, Troubles(), base_url=site.base_url) as page:
        page.goto("/ai/")
        assert page.get_by_role("heading", name="Home").count() == 0  # the login page comes first
        hand = Hand(page, "keys")
        hand.write(page.locator("input[name=username]"), name)
        hand.write(page.locator("input[name=password]"), password)
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="Home").wait_for()
        return page.context.storage_state()


@pytest.fixture(params=SCREENS)
def hand(site: Site, logged_in: Any, request: pytest.FixtureRequest) -> Iterator[Hand]:
    """A builder at the start page.

    Afterwards the console must be empty, and no request may have left the machine.
    """
    troubles = Troubles()
    by, options = {**SCREENS, **TWO_SCREENS}[request.param]
    options = {**options, "storage_state": logged_in}
    with a_page(site.browser, troubles, base_url=site.base_url, **options) as page:
        page.goto("/ai/")
        yield Hand(page, by)
        assert (troubles.console, troubles.elsewhere) == ([], [])


@pytest.fixture
def tag(request: pytest.FixtureRequest) -> str:
    """A suffix for names of what the test makes, different for each screen."""
    return "ab"[list(TWO_SCREENS).index(request.node.callspec.params["hand"])]


def said(site: Site, words: str) -> None:
    """Say a line to the NPC as the builder, and wait for the reply."""
    site.builder.send(f"say {site.npc}, {words}")
    site.builder.wait_for(r"says, .Aye", seconds=60)
    site.builder.wait_for_quiet()


def libraries(route: Any) -> None:
    """Serve libraries of Evennia's web client from local files, and block all other requests."""
    for name, file in LIBRARIES.items():
        if name in route.request.url:
            headers = {"Access-Control-Allow-Origin": "*"}
            kind = "text/css" if file.suffix == ".css" else "text/javascript"
            route.fulfill(path=file, content_type=kind, headers=headers)
            return
    route.abort()


def type_in_game(page: Any, field: Any, line: str) -> None:
    """Type a line into the web client."""
    field.fill(line)
    field.press("Enter")
    page.wait_for_timeout(700)


def to_the_npc(hand: Hand, site: Site) -> None:
    """Follow the links from the start page to the page of the NPC."""
    hand.press(hand.page.get_by_role("link", name=site.npc, exact=True))
    hand.page.get_by_role("heading", name=site.npc).first.wait_for()


def to_the_last_turn(hand: Hand, site: Site) -> None:
    """Follow the links from the start page to the NPC's last turn."""
    to_the_npc(hand, site)
    hand.press(hand.page.get_by_role("heading", name="What the model read").get_by_role("link"))
    hand.page.get_by_role("heading", name=re.compile("turn [0-9]+$")).wait_for()
    hand.page.wait_for_load_state()  # dragging needs the scripts


def to(hand: Hand, *links: str) -> None:
    """Follow links with these names, one after the other."""
    for name in links:
        hand.press(hand.page.get_by_role("link", name=name, exact=True).first)
        hand.page.wait_for_load_state()


def depth_told(page: Any) -> str:
    row = page.locator('[data-origin="component:drizzle"]')
    return str(row.locator(".depth").text_content())


def a_file(name: str, **fields: Any) -> dict[str, Any]:
    """Return a card file in the form that playwright uploads."""
    data = {"name": name, "description": "", "first_mes": "", "mes_example": "", **fields}
    card = {"spec": "chara_card_v2", "spec_version": "2.0", "data": data}
    content = json.dumps(card).encode()
    return {"name": "card.json", "mimeType": "application/json", "buffer": content}


def uploaded(hand: Hand, file: dict[str, Any]) -> None:
    to(hand, "Cards")
    hand.page.get_by_label("A JSON, PNG").set_input_files(file)
    hand.press(hand.page.get_by_role("button", name="Import"))


@pytest.mark.parametrize("hand", WIDTHS_AND_COLOURS, indirect=True)
def test_every_page_is_accessible_and_escapes_player_text(hand: Hand, site: Site) -> None:
    page = hand.page
    assert violations(page) == []
    to_the_last_turn(hand, site)
    turn = page.url
    npc = turn.partition("turn/")[0]
    number = int(turn.rstrip("/").rpartition("/")[2])
    edit = "?with=component:drizzle.depth=2"
    ref = npc.rstrip("/").rpartition("/")[2]
    addresses = [
        turn,
        f"{turn}{edit}",
        npc,
        *(f"{npc}character/", f"{npc}notes/", f"{npc}settings/", f"{npc}turns/"),
        f"{npc}memory/",
        f"{npc}diff/{number - 1}/{number}/",
        f"{npc}against/{edit}",
        f"{npc}next/?say=the lamp",
        *("/ai/lore/", "/ai/lore/harbour/", "/ai/lore/harbour/new/", "/ai/lore/harbour/lints/"),
        *(f"/ai/lore/harbour/turns/?npc={ref}", "/ai/lore/harbour/revision/1/"),
        *("/ai/cards/", "/ai/cards/new/", "/ai/cards/oren/edit/", "/ai/cards/oren/1/"),
        f"/ai/cards/oren/1/preview/?npc={ref}&grant=fields",
        *("/ai/kb/", "/ai/kb/harbour/?words=ferry", "/ai/kb/harbour/vault/"),
        *("/ai/kept/", "/ai/kept/oren-who-mends-nets/"),
        "/ai/live/",
    ]
    for address in addresses:
        page.goto(address)
        assert violations(page) == [], address
        is_dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
        screen = f"{page.viewport_size['width']}-{'dark' if is_dark else 'light'}"
        kept(page, f"{screen}-{address.partition('/ai/')[2].replace('/', '-')[:40]}")
        assert page.locator("main script, main img:not([src^='/ai/cards/'])").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), address
    page.goto("/ai/kb/harbour/")
    to(hand, page.locator("main ul a").first.inner_text())
    assert violations(page) == []


def test_turn_page_shows_why_an_entry_is_inactive(hand: Hand, site: Site) -> None:
    to_the_last_turn(hand, site)
    reason = hand.page.locator("li", has_text="no key in the newest").last
    hand.press(reason.locator("summary"))
    reason.get_by_text("lore:harbour#").first.wait_for()


def test_component_depth_is_changed_by_keys_or_buttons_and_saved(hand: Hand, site: Site) -> None:
    page = hand.page
    to_the_last_turn(hand, site)
    row = page.locator('[data-origin="component:drizzle"]')
    before = int(re.search(r"[0-9]+", depth_told(page))[0])  # type: ignore[index]

    def moved(how: str, key: str, depths: tuple[int, ...]) -> None:
        for depth in depths:
            if hand.by == "keys":
                hand.reach(row)
                page.keyboard.press(key)
            else:
                hand.press(row.locator(f'[data-move="{how}"]'))
            page.get_by_role("status").filter(has_text=f"depth {depth}").wait_for()

    def saved() -> None:
        hand.press(page.get_by_role("button", name="Save as a revision"))
        page.wait_for_url("**saved=1**")

    moved("deeper", "Alt+ArrowUp", (before + 1, before + 2))
    if hand.by == "keys":
        assert page.evaluate("document.activeElement.dataset.origin") == "component:drizzle"
    told = shown(site.builder, "component/depth drizzle", until="depth")
    assert f"depth {before}" in told
    saved()
    told = shown(site.builder, "component drizzle", until="drizzle")
    assert re.search(rf"depth\D+{before + 2}\b", told), told
    moved("shallower", "Alt+ArrowDown", (before + 1, before))
    saved()
    told = shown(site.builder, "component drizzle", until="drizzle")
    assert re.search(rf"depth\D+{before}\b", told), told


def test_component_depth_is_changed_by_dragging_and_undone(hand: Hand, site: Site) -> None:
    page = hand.page
    to_the_last_turn(hand, site)
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
    hand.press(page.get_by_role("link", name="undo").first)
    page.locator(".trial").wait_for(state="detached")
    assert depth_told(page) == before


def test_comparison_page_shows_the_first_cache_break(hand: Hand, site: Site) -> None:
    to_the_last_turn(hand, site)
    hand.page.get_by_text("broken first by").wait_for()
    hand.press(hand.page.get_by_role("link", name="Compare with turn"))
    hand.page.get_by_text("a provider's cache ends there").wait_for()
    hand.page.get_by_text("Said since:").wait_for()


def test_npc_is_paused_and_resumed_on_its_page(hand: Hand, site: Site) -> None:
    page = hand.page
    to_the_npc(hand, site)
    hand.press(page.get_by_role("button", name=f"Stop {site.npc}"))
    page.get_by_text("Paused:").wait_for()
    assert "paused" in shown(site.builder, f"ai {site.npc}", until="PAUSED").lower()
    hand.press(page.get_by_role("button", name=f"Let {site.npc} answer again"))
    page.get_by_role("button", name=f"Stop {site.npc}").wait_for()


@on_two_screens
def test_new_lore_entry_is_saved_and_tested_on_the_pages(hand: Hand, site: Site, tag: str) -> None:
    page, word = hand.page, f"gannet{tag}"
    to(hand, "Lorebooks", "harbour", "A new entry")
    hand.write(page.get_by_label("Keys, one a line", exact=True), word)
    hand.write(page.get_by_label("Text", exact=True), f"The {word} dives for herring.")
    hand.press(page.get_by_role("button", name="Save as a revision"))
    page.get_by_role("status").filter(has_text="Saved").wait_for()
    entry = page.get_by_role("heading", name="Entry").inner_text().split()[-1]
    hand.write(page.get_by_label("NPC, by name"), site.npc)
    hand.write(page.get_by_label("hears", exact=True), f"look, a {word}!")
    page.keyboard.press("Enter")
    page.locator("#tried", has_text="Activated").wait_for()
    assert violations(page) == []
    to(hand, "Home", site.npc, "Try a line")
    hand.write(page.get_by_label("Try a line"), f"is that a {word}?")
    page.keyboard.press("Enter")
    page.locator("#woken").filter(has_text=f"lore:harbour#{entry}").wait_for()
    hand.write(page.get_by_label("Try a line"), "nice weather")
    page.keyboard.press("Enter")
    page.wait_for_url("**nice**")
    assert f"lore:harbour#{entry}" not in page.locator("#woken").inner_text()


@on_two_screens
def test_card_is_imported_and_approved_with_one_grant_on_the_pages(
    hand: Hand, site: Site, tag: str
) -> None:
    page, name = hand.page, f"Tilda{tag}"
    uploaded(hand, a_file(name, description="{{char}} mends nets."))
    page.get_by_role("heading", name=name).wait_for()
    assert violations(page) == []
    hand.tick(page.get_by_label("fields: its description"))
    hand.press(page.get_by_role("button", name="Approve"))
    page.get_by_role("heading", name=f"{name}, revision").wait_for()
    assert violations(page) == []
    assert "fields" in shown(site.builder, f"card {name}", until="may:")


@on_two_screens
def test_card_page_shows_changes_of_a_second_import(hand: Hand, site: Site, tag: str) -> None:
    page, name = hand.page, f"Brida{tag}"
    uploaded(hand, a_file(name, description="She mends nets. She is tired."))
    hand.press(page.get_by_role("button", name="Approve"))
    page.get_by_role("heading", name=f"{name}, revision").wait_for()
    uploaded(hand, a_file(name, description="She mends nets. She is merry."))
    page.get_by_role("heading", name="What it changes").wait_for()
    assert page.locator("del").all_inner_texts() == ["gone:\n- She is tired."]
    assert page.locator("ins").all_inner_texts() == ["new:\n+ She is merry."]
    assert violations(page) == []


@on_two_screens
def test_new_character_is_created_assigned_and_used_in_a_prompt(
    hand: Hand, site: Site, tag: str
) -> None:
    page, name, npc = hand.page, f"Mira{tag}", f"Herbwife{tag}"
    shown(site.builder, f"create/drop {npc}:evennia_ai.typeclasses.AINPC", until=npc)
    to(hand, "Cards", "A new character")
    hand.write(page.get_by_label("Name", exact=True), name)
    hand.write(page.get_by_label("Who they are"), f"{name} sells herbs on the quay.")
    hand.press(page.get_by_role("button", name="Only write the card"))
    hand.write(page.get_by_label("How they are and how"), "Dry, and kind to children.")
    hand.press(page.get_by_role("button", name="Save as a revision"))
    page.get_by_role("status").filter(has_text="Saved as revision 2").wait_for()
    to(hand, name)
    hand.write(page.get_by_label("Assign it to this NPC"), npc)
    hand.press(page.get_by_role("button", name="Assign"))
    page.get_by_role("link", name=npc).wait_for()
    site.builder.send(f"say {npc}, what do you sell?")
    site.builder.wait_for(r"says, .Aye", seconds=60)
    site.builder.wait_for_quiet()
    hand.press(page.get_by_role("link", name=npc))
    page.locator("#column").wait_for()
    column = page.locator("#column").text_content()
    assert f"{name} sells herbs on the quay." in column
    assert "Dry, and kind to children." in column


@on_two_screens
def test_lorekeeper_draft_is_approved_on_its_page(hand: Hand, site: Site, tag: str) -> None:
    page, title = hand.page, f"Bellhouse{tag}"
    site.builder.send(f"lorekeeper/in harbour = Create the page {title}")
    site.builder.wait_for("15. ", seconds=60)
    site.builder.wait_for_quiet()
    to(hand, "Knowledge")
    hand.press(page.get_by_role("link", name=re.compile(f"Draft [0-9]+: {title}")))
    page.get_by_role("heading", name="What it changes").wait_for()
    assert f"The bell of {title} hung in the chapel." in page.locator("ins").first.inner_text()
    assert "CONTEXT of draft" in page.locator("main").inner_text()
    assert violations(page) == []
    hand.press(page.get_by_role("button", name="Approve"))
    page.get_by_role("status").filter(has_text="Approved by").wait_for()
    assert "hung in the chapel" in shown(site.builder, f"kb harbour/{title}", until="chapel")


@on_two_screens
def test_home_shows_the_last_words_of_an_npc_without_reload(
    hand: Hand, site: Site, tag: str
) -> None:
    page = hand.page
    person = page.locator(".person", has=page.get_by_role("link", name=site.npc, exact=True))
    before = person.get_by_role("link", name="why?").inner_text()
    assert "Aye." in person.locator(".speech").inner_text()
    said(site, f"is anybody at home {tag}?")
    page.wait_for_function(
        "before => !document.getElementById('live').innerText.includes(before)", arg=before
    )
    assert "to " in person.inner_text()
    assert page.get_by_role("button", name="Stop all NPCs").count() == 0  # only for Admins
    hand.press(person.get_by_role("link", name="why?"))
    page.get_by_text(f"is anybody at home {tag}?").first.wait_for()


@on_two_screens
def test_character_lives_in_an_empty_room_answers_is_corrected_and_explained(
    hand: Hand, site: Site, tag: str
) -> None:
    page, name, attic = hand.page, f"Sela{tag}", f"Attic{tag}"
    shown(site.builder, f"dig {attic}", until=attic)
    to(hand, "Cards", "A new character")
    hand.write(page.get_by_label("Name", exact=True), name)
    hand.write(page.get_by_label("Who they are"), f"{name} mends clocks in the attic.")
    room = page.locator("#room option", has_text=attic)
    page.get_by_label("Room", exact=True).select_option(room.get_attribute("value"))
    hand.press(page.get_by_role("button", name="Bring to life"))
    page.get_by_role("heading", name=name, level=1).wait_for()
    hand.write(page.get_by_label(f"Say something to {name}"), "Do you mend clocks?")
    hand.press(page.get_by_role("button", name="Say it as a visitor"))
    own = page.locator("#chat .line.own")
    own.filter(has_text="Aye.").wait_for()
    assert violations(page) == []
    hand.press(own.last.locator("summary", has_text="Correct"))
    hand.write(own.last.locator("textarea"), "Only clocks that tick.")
    hand.press(own.last.get_by_role("button", name="Save the words"))
    own.filter(has_text="Only clocks that tick.").wait_for()
    assert own.filter(has_text="Aye.").count() == 0
    hand.press(own.last.get_by_role("link", name="Why?"))
    page.locator("#column").wait_for()
    assert f"{name} mends clocks in the attic." in page.locator("#column").text_content()
    assert violations(page) == []


@on_two_screens
def test_turn_page_says_why_lore_was_active_and_marks_the_words(
    hand: Hand, site: Site, tag: str
) -> None:
    page = hand.page
    said(site, f"why did the Night Ferry stop {tag}?")
    to_the_last_turn(hand, site)
    why = page.locator(".why li", has_text="the night ferry").first
    assert re.search("because .+ said Night Ferry", why.inner_text())
    assert "Night Ferry" in page.locator(".chat mark").all_inner_texts()
    because = page.locator('[data-origin="lore:harbour#6"] .because')
    assert "Night Ferry" in because.text_content()
    row = page.locator(".row", has_text="Night Ferry").last
    hand.press(row.locator("summary").first)
    assert row.locator("pre mark").inner_text() == "Night Ferry"


@on_two_screens
def test_answer_is_kept_changed_by_an_edit_and_accepted_on_the_pages(
    hand: Hand, site: Site, tag: str
) -> None:
    page, about = hand.page, f"asks about the lamp {tag}"
    said(site, f"is the lamp lit {tag}?")
    to_the_last_turn(hand, site)
    hand.write(page.get_by_label("A good answer? It is about"), about)
    hand.press(page.get_by_role("button", name="Keep"))
    page.get_by_role("status").filter(has_text="Kept:").wait_for()
    assert violations(page) == []
    to(hand, "Lorebooks", "harbour", "A new entry")
    hand.write(page.get_by_label("Keys, one a line", exact=True), f"lit {tag}")
    hand.write(page.get_by_label("Text", exact=True), f"The lamp {tag} is out.")
    hand.press(page.get_by_role("button", name="Which kept answers change?"))
    told = page.locator("#kept", has_text="another prompt: show")
    told.get_by_role("link", name=about).wait_for()
    assert f"+ The lamp {tag} is out." in told.inner_text()
    assert violations(page) == []
    hand.press(page.get_by_role("button", name="Save as a revision"))
    page.get_by_role("status").filter(has_text="Saved").wait_for()
    to(hand, "Kept", about)
    page.get_by_role("heading", name="What differs").wait_for()
    assert violations(page) == []
    hand.press(page.get_by_role("button", name="Accept the prompt of today"))
    page.get_by_role("status").filter(has_text="Accepted:").wait_for()


@on_two_screens
def test_watch_page_shows_a_new_turn_without_reload(hand: Hand, site: Site, tag: str) -> None:
    page = hand.page
    to(hand, "Watch")
    newest = page.locator("#live table").first.locator("tbody tr").first
    before = newest.inner_text()
    said(site, f"is it {tag} o'clock?")
    page.wait_for_function(
        "before => document.querySelector('#live tbody tr').innerText !== before", arg=before
    )
    assert site.npc in newest.inner_text()
    assert violations(page) == []


def test_web_client_pane_shows_the_last_turn_of_the_npc(site: Site, logged_in: Any) -> None:
    options = {"storage_state": logged_in, "base_url": site.base_url, "viewport": WIDE}
    with a_page(site.browser, Troubles(), **options) as page:
        page.context.route(re.compile("^https://"), libraries)
        page.goto("/webclient/")
        page.get_by_text(
            re.compile("You become|Exits")
        ).first.wait_for()  # the web client is connected
        field = page.locator("textarea.inputfield").first
        typed = partial(type_in_game, page, field)
        typed(f"say {site.npc}, is this the web?")
        kept(page, "webclient-first")
        page.get_by_text("Aye.").first.wait_for()
        typed("ai/watch")
        pane = page.frame_locator("iframe[title='The mind of an NPC']")
        heading = pane.get_by_role("heading", name=re.compile("turn [0-9]+$"))
        heading.wait_for()
        first = heading.inner_text()
        assert "is this the web?" in pane.locator("#column").text_content()
        kept(page, "webclient-pane")
        typed(f"say {site.npc}, and what of the lamp?")
        pane.locator("#column", has_text="and what of the lamp?").wait_for()
        assert heading.inner_text() != first


def test_open_turn_page_works_after_a_server_reload(site: Site, logged_in: Any) -> None:
    options = {"storage_state": logged_in, "base_url": site.base_url}
    with a_page(site.browser, Troubles(), **options) as page:
        page.goto("/ai/")
        hand = Hand(page, "mouse")
        to_the_last_turn(hand, site)
        before = depth_told(page)
        reload(site.game)
        site.builder.wait_for_quiet()
        hand.press(page.locator('[data-origin="component:drizzle"] [data-move="deeper"]'))
        page.get_by_role("status").filter(has_text="now depth").wait_for()
        assert depth_told(page) != before
        page.goto("/ai/npc/999999/")
        assert violations(page) == []  # the error page must be accessible, too


def test_component_depth_is_changed_by_links_without_javascript(site: Site, logged_in: Any) -> None:
    options = {"storage_state": logged_in, "base_url": site.base_url, "java_script_enabled": False}
    with a_page(site.browser, Troubles(), **options) as page:
        page.goto("/ai/")
        to_the_last_turn(Hand(page, "mouse"), site)
        before = depth_told(page)
        page.locator('[data-origin="component:drizzle"] [data-move="deeper"]').click()
        assert depth_told(page) != before
