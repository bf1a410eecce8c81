"""Test a preset on a real server: import, report, approval, switches, export and revert."""

import json
from collections.abc import Iterator

import pytest

from server.evennia_process import Evennia
from server.telnet import Connection
from tests.acceptance.games import builder_beside_npc, copied_game, logs_of, shown, started
from tests.presets_in_play import LOOM

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def game(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evennia]:
    evennia = copied_game(
        tmp_path_factory.mktemp("game"), settings="EVENNIA_AI_COOLDOWN_SECONDS = 0.0"
    )
    folder = evennia.root / "world" / "demo" / "presets"
    (folder / "Loom.json").write_text(json.dumps(LOOM), encoding="utf-8")
    with started(evennia):
        yield evennia


@pytest.fixture(scope="module")
def builder(game: Evennia) -> Iterator[Connection]:
    """The demo builder, in the room of the ferryman."""
    with builder_beside_npc(game) as connection:
        yield connection


@pytest.fixture(scope="module")
def report(builder: Connection) -> str:
    """The report of the import, which the builder reads before the approval."""
    builder.send("preset/import Loom.json")
    told = builder.wait_for("To approve it: ", seconds=60)
    builder.wait_for_quiet()
    return told


@pytest.fixture(scope="module")
def before(builder: Connection, report: str) -> str:
    """The prompt of a turn with the preset as imported and all its grants."""
    grants = "system_prompt, fields, after_history, positions, roles"
    approved = shown(builder, f"preset/approve Loom = {grants}")
    assert "Preset Loom is approved, revision 2: import 1 by" in approved
    assert "from the next turn on" in shown(builder, "preset/assign Loom = oren")
    return asked(builder, "say Oren, does the ferry run?")


@pytest.fixture(scope="module")
def after(builder: Connection, before: str) -> str:
    """The prompt of the next turn, after one prompt was switched on and one off."""
    assert "[ ] Brief" in shown(builder, "preset Loom")
    told = shown(builder, "preset/switch Loom = Brief on", until="this is revision")
    assert "'Brief' of preset Loom is on" in told
    shown(builder, "preset/switch Loom = Tone off", until="this is revision 4")
    return asked(builder, "say Oren, and at night?")


def asked(builder: Connection, said: str) -> str:
    """Say a line to Oren, and return what `ai/context` shows of the turn."""
    builder.send(said)
    builder.wait_for(r'^Oren says, ".*$', seconds=60)
    builder.wait_for_quiet()
    return shown(builder, "ai/context oren = full")


def test_preset_import_shows_a_report_and_drops_secrets(report: str) -> None:
    assert "Reading Loom.json" in report
    assert "Import 1 of preset Loom" in report
    for words in ("proxy_password", "Brief", "system_prompt"):
        assert words in report, words
    assert "hush-hush" not in report


def test_prompt_contains_enabled_preset_texts_in_preset_order(before: str) -> None:
    for words in ("LOOM-MAIN Play Oren", "LOOM-TONE Be salty.", "LOOM-DEEP Stay here."):
        assert words in before, words
    for words in ("LOOM-BRIEF", "LOOM-QUIET"):
        assert words not in before.partition("-- kept")[0], words
    assert before.index("LOOM-MAIN") < before.index("LOOM-TONE") < before.index("LOOM-DEEP")


def test_preset_switch_takes_effect_in_the_next_turn(after: str) -> None:
    messages = after.partition("-- kept")[0]
    assert "LOOM-BRIEF One line." in messages
    assert "LOOM-TONE" not in messages


def test_ai_why_names_the_preset_of_a_text(builder: Connection, after: str) -> None:
    assert "preset Loom" in shown(builder, "ai/why oren = st_brief")


def test_preset_is_exported_removed_and_reverted(builder: Connection, after: str) -> None:
    assert "Wrote preset Loom, revision 4, to loom.json" in shown(
        builder, "preset/export Loom", until="Wrote preset"
    )
    assert "is used nowhere" in shown(builder, "preset/unassign Loom = oren")
    assert "brings it back" in shown(builder, "preset/remove Loom")
    asked_first = shown(builder, "preset/revert Loom = 4", until=r"yes/\[no\]")
    assert "What going back to revision 4 of preset Loom would change:" in asked_first
    assert "with the grants" in shown(builder, "yes", until="this is revision 6")
    assert "LOOM" not in asked(builder, "say Oren, and now?").partition("-- kept")[0]


def test_server_log_has_no_traceback_after_preset_edits(game: Evennia, after: str) -> None:
    assert "Traceback" not in logs_of(game)
