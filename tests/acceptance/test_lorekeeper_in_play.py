"""Test the lorekeeper on a real server: a builder requests a page, reads the draft, approves it.

The model is a Python script in the game.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from server.evennia_process import Evennia
from tests.acceptance.games import builder_beside_npc, logs_of, reload, running_game, shown

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
import sqlite3
from contextlib import closing

from django.conf import settings


def told(request):
    """The plan of every task."""
    plan = {"task_type": "red_link_generation", "entities": ["Leek Show", "Pell Anstey"]}
    return json.dumps({**plan, "writes_page": True})


def written(request):
    """A page that tells how the request began, and what of it another program finds stored."""
    if request.messages[-1].content.startswith("List"):
        return "Two boats."
    first = request.messages[0].content.splitlines()[:2]
    told = "=== PAGE: Leek Show ===\\nJudged by [[Pell Anstey]]. " + " ".join(first)
    return f"{told}\\n{stored(request)} of 1 committed."


def stored(request):
    """How many tasks with this very request another connection to the database sees."""
    sent = [[message.role, message.content] for message in request.messages]
    with closing(sqlite3.connect(settings.DATABASES["default"]["NAME"])) as database:
        rows = database.execute("select request from evennia_ai_lorekeepertask").fetchall()
    return sum(json.loads(row) == sent for row, in rows)
'''
TASK = "lorekeeper Create the page Leek Show"


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What the builder read after each step."""

    begun: str
    before: str
    draft: str
    approved: str
    page: str
    panel: str
    panel_later: str
    last_task: str
    last_task_later: str


@pytest.fixture(scope="module")
def game(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evennia]:
    files = {"world/clerk.py": CLERK}
    folder = tmp_path_factory.mktemp("game")
    with running_game(folder, settings=SETTINGS, files=files) as evennia:
        yield evennia


@pytest.fixture(scope="module")
def story(game: Evennia) -> Story:
    """Request a page, read and approve the draft, and reload the server."""
    with builder_beside_npc(game) as builder:
        builder.send(TASK)
        begun = builder.wait_for("15. ", seconds=60)
        before = shown(builder, "kb harbour/Leek Show")
        draft = shown(builder, "kb/draft 1")
        approved = shown(builder, "kb/approve 1")
        page = shown(builder, "kb harbour/Leek Show")
        panel = shown(builder, "lorekeeper/context = 1")
        builder.send("lorekeeper List the boats")
        builder.wait_for("no package", seconds=60)
        last_task = shown(builder, "lorekeeper/context")
        reload(game)
        builder.wait_for_quiet()
        later = shown(builder, "lorekeeper/context = 1")
        last_task_later = shown(builder, "lorekeeper/context")
    return Story(
        begun=begun,
        before=before,
        draft=draft,
        approved=approved,
        page=page,
        panel=panel,
        panel_later=later,
        last_task=last_task,
        last_task_later=last_task_later,
    )


def test_builder_is_notified_of_a_new_draft(story: Story) -> None:
    assert "The lorekeeper has written a page. Draft 1: kb/draft 1 shows" in story.begun


def test_draft_page_is_not_in_the_knowledge_base_before_approval(story: Story) -> None:
    assert "has no page 'Leek Show'" in story.before


def test_draft_command_shows_added_text(story: Story) -> None:
    assert "+Judged by [[Pell Anstey]]. [INSTRUCTIONS] --- Instructions:World Bible ---" in (
        story.draft
    )


def test_approved_draft_becomes_a_page(story: Story) -> None:
    assert "is written" in story.approved
    assert "Judged by [[Pell Anstey]]." in story.page


def test_lorekeeper_context_lists_pages_and_survives_a_reload(story: Story) -> None:
    assert "red_link_generation, by planner" in story.panel
    assert "Pell Anstey revision 1" in story.panel
    assert story.panel_later.strip() == story.panel.strip()


@pytest.mark.req("S2-01", "S4-01")
def test_lorekeeper_request_is_committed_before_the_model_is_asked(story: Story) -> None:
    assert "1 of 1 committed." in story.page


@pytest.mark.req("S4-49")
def test_lorekeeper_answer_includes_the_context_panel(story: Story) -> None:
    assert "CONTEXT of this task" in story.begun
    assert "Pell Anstey revision 1" in story.begun


@pytest.mark.req("S4-01")
def test_task_without_a_page_is_shown_after_a_reload(story: Story) -> None:
    assert "List the boats" in story.last_task
    assert story.last_task_later.strip() == story.last_task.strip()


def test_server_log_has_no_traceback_after_lorekeeper_tasks(game: Evennia, story: Story) -> None:
    assert "Traceback" not in logs_of(game)
