"""Test that git ignores what the demo writes and exports."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

needs_git = pytest.mark.skipif(
    shutil.which("git") is None or not (ROOT / ".git").exists(), reason="this is no clone"
)


@needs_git
@pytest.mark.parametrize(
    "path",
    [
        "world/demo/cards/oren-2.jsonl",
        "world/demo/cards/oren-2.json",
        "world/demo/cards/brida-2.png",
        "world/demo/cards/ismay.charx",
        "world/demo/cards/saltholm.json",
        "world/demo/presets/quay-2.json",
        "world/demo/kept/oren-2.yaml",
        "server/demo_logins.json",
        "server/.lorebooks/4f6c.json",
        "server/evennia.db3",
        "server/logs/server.log",
        "server/conf/secret_settings.py",
    ],
)
def test_files_written_by_the_demo_are_ignored_by_git(path: str) -> None:
    told = subprocess.run(["git", "check-ignore", "-q", path], cwd=ROOT, check=False)
    assert told.returncode == 0


def test_export_folders_of_the_demo_are_ignored_by_git() -> None:
    settings = (ROOT / "server/conf/settings.py").read_text(encoding="utf-8")
    assert 'EVENNIA_AI_CARD_FOLDER = "world/demo/cards"' in settings
    assert 'EVENNIA_AI_PRESET_FOLDER = "world/demo/presets"' in settings
    assert 'EVENNIA_AI_KEPT_FOLDER = "world/demo/kept"' in settings
