"""Test a knowledge base on a real server: import, edit over a reload, bind, and use in a prompt.

Meanwhile the command line imports the changed folder into the running game.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from server.evennia_process import Evennia
from server.telnet import Connection
from tests.acceptance.games import (
    builder_beside_npc,
    copied_game,
    logs_of,
    reload,
    rows_of,
    shown,
    started,
)

pytestmark = pytest.mark.server

FOG = "---\naliases: [Mist]\n---\nIt is thick, see [[The Bog]].\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What the builder read after each step."""

    plan: str
    imported: str
    page: str
    edited: str
    after_edit: str
    command_line: str
    refreshed: str
    bound: str
    sent: tuple[str, ...]


@pytest.fixture(scope="module")
def game(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evennia]:
    evennia = copied_game(
        tmp_path_factory.mktemp("game"), settings="EVENNIA_AI_REFRESH_SECONDS = 1.0"
    )
    write(evennia, "base.yaml", "name: The Moor\nsummary: Peat and fog.\n")
    write(evennia, "Fog.md", FOG)
    with started(evennia):
        yield evennia


def write(game: Evennia, name: str, text: str) -> None:
    """Write a file of the folder that is imported."""
    path = game.root / "world" / "demo" / "knowledge" / "moor" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def story(game: Evennia) -> Story:
    """Import, edit over a reload, import again from outside, bind, and speak to the NPC."""
    with builder_beside_npc(game) as builder:
        plan = shown(builder, "kb/import moor")
        imported = shown(builder, "kb/import/run moor")
        page = shown(builder, "kb moor/mist")
        edited = edit_over_a_reload(game, builder)
        after_edit = shown(builder, "kb moor/Fog")
        write(game, "The Bog.md", "Nobody walks the quagmire twice.")
        command_line = import_from_outside(game.root)
        refreshed = found(builder, "quagmire")
        bound = shown(builder, "kb/assign moor = npc:oren")
        builder.send("say Oren, what is on the moor?")
        builder.wait_for(r'^Oren says, "', seconds=60)
        builder.wait_for_quiet()
    return Story(
        plan=plan,
        imported=imported,
        page=page,
        edited=edited,
        after_edit=after_edit,
        command_line=command_line,
        refreshed=refreshed,
        bound=bound,
        sent=tuple(body for (body,) in rows_of(game, "SELECT body FROM evennia_ai_record")),
    )


def edit_over_a_reload(game: Evennia, builder: Connection) -> str:
    """Add a line before a reload and another line after it, and save."""
    shown(builder, "kb/edit moor/Fog")
    shown(builder, "It smells of peat.")
    reload(game)
    shown(builder, "It lifts at noon.")
    return shown(builder, ":wq")


def import_from_outside(root: Path) -> str:
    """Import the folder with the command line, and return what it prints."""
    words = ("knowledge", "import", "world/demo/knowledge/moor", "--game", ".", "--json")
    done = subprocess.run(
        [sys.executable, "-m", "evennia_ai.cli", *words],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def found(builder: Connection, word: str) -> str:
    """Search until the game has noticed what the other process wrote."""
    told = ""
    for _ in range(20):
        told = shown(builder, f"kb/search moor = {word}")
        if "No page" not in told:
            break
    return told


def test_kb_import_shows_the_planned_changes(story: Story) -> None:
    assert "new: 1" in story.plan
    assert "kb/import/run moor" in story.plan


def test_kb_import_run_imports_the_folder(story: Story) -> None:
    assert "Imported." in story.imported
    assert "It is thick, see [[The Bog]]." in story.page


def test_page_edit_continues_after_a_reload(story: Story) -> None:
    assert "Saved moor/Fog as revision 2." in story.edited
    assert "It smells of peat.\nIt lifts at noon." in story.after_edit.replace("\r", "")


def test_running_game_finds_pages_that_the_command_line_imports(story: Story) -> None:
    assert '"The Bog"' in story.command_line
    assert "Nobody walks the quagmire twice." in story.refreshed


def test_prompt_contains_the_summary_of_an_assigned_knowledge_base(story: Story) -> None:
    assert "npc:#" in story.bound
    assert any("Peat and fog." in body for body in story.sent)


def test_server_log_has_no_traceback_after_knowledge_edits(game: Evennia, story: Story) -> None:
    assert "Traceback" not in logs_of(game)
