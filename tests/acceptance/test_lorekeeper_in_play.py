"""A real server: a builder has a page of the demo's wiki written, reads the draft, approves it.

The model is a script of the game's own; everything else is as in a game that somebody plays.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from server.evennia_process import Evennia
from tests.acceptance.games import builder_beside_npc, copied_game, logs_of, reload, shown, started

pytestmark = pytest.mark.server

SETTINGS = """
EVENNIA_AI_PROFILES = {
    "clerk": {"script": "world.clerk.told"},
    "writer": {"script": "world.clerk.written"},
}
EVENNIA_AI_MODEL_ROLES = {"planner": "clerk", "lorekeeper": "writer"}
"""
CLERK = '''
"""The models of a lorekeeper, for a test."""

import json


def told(request):
    """The plan of every task."""
    plan = {"task_type": "red_link_generation", "entities": ["Leek Show", "Pell Anstey"]}
    return json.dumps({**plan, "writes_page": True})


def written(request):
    """A page that tells how the request began."""
    first = request.messages[0].content.splitlines()[:2]
    return "=== PAGE: Leek Show ===\\nJudged by [[Pell Anstey]]. " + " ".join(first)
'''
TASK = "lorekeeper Create the page Leek Show"


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What the builder read, step by step."""

    begun: str
    before: str
    draft: str
    approved: str
    page: str
    panel: str
    panel_later: str


@pytest.fixture(scope="module")
def game(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evennia]:
    evennia = copied_game(tmp_path_factory.mktemp("game"), settings=SETTINGS)
    (evennia.root / "world" / "clerk.py").write_text(CLERK, encoding="utf-8")
    with started(evennia):
        yield evennia


@pytest.fixture(scope="module")
def story(game: Evennia) -> Story:
    """A task, its draft, the approval, and a reload after it."""
    with builder_beside_npc(game) as builder:
        builder.send(TASK)
        begun = builder.wait_for("lorekeeper/context shows them", seconds=30)
        before = shown(builder, "kb/show harbour/Leek Show")
        draft = shown(builder, "kb/draft 1")
        approved = shown(builder, "kb/approve 1")
        page = shown(builder, "kb/show harbour/Leek Show")
        panel = shown(builder, "lorekeeper/context = 1")
        reload(game)
        builder.wait_for_quiet()
        later = shown(builder, "lorekeeper/context = 1")
    return Story(
        begun=begun,
        before=before,
        draft=draft,
        approved=approved,
        page=page,
        panel=panel,
        panel_later=later,
    )


def test_the_builder_is_told_of_a_draft(story: Story) -> None:
    assert "The lorekeeper has written a page. Draft 1: kb/draft 1 shows" in story.begun


def test_nothing_is_in_the_wiki_before_it_was_approved(story: Story) -> None:
    assert "has no page 'Leek Show'" in story.before


def test_the_draft_shows_what_it_adds(story: Story) -> None:
    assert "+Judged by [[Pell Anstey]]. [INSTRUCTIONS] --- Instructions:World Bible ---" in (
        story.draft
    )


def test_an_approved_page_can_be_read(story: Story) -> None:
    assert "is written" in story.approved
    assert "Judged by [[Pell Anstey]]." in story.page


def test_the_panel_names_the_pages_and_is_the_same_after_a_reload(story: Story) -> None:
    assert "red_link_generation, by planner" in story.panel
    assert "Pell Anstey revision 1" in story.panel
    assert story.panel_later.strip() == story.panel.strip()


def test_nothing_went_wrong(game: Evennia, story: Story) -> None:
    assert "Traceback" not in logs_of(game)
