"""Test that a new field of an authored thing needs changes in only two files.

Each test adds a field in a copy of the package: it is stored, shown, kept in revisions and
exported.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.games import ROOT

NOTE_FILES = {
    "evennia_ai/store/authored/notes.py": (
        "    enabled: bool = True\n    revision",
        "    enabled: bool = True\n    mood: _Text = ''\n    revision",
    ),
    "evennia_ai/models/authored.py": (
        '    mode = models.CharField(max_length=KINDS, default="floating")\n',
        """    mode = models.CharField(max_length=KINDS, default="floating")
    mood = models.TextField(default="", blank=True)
""",
    ),
}
NOTE_PROGRAM = """
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.prompt.components import of_npc
from evennia_ai.store.authored import notes
notes.set_note("12", content="Be brief.", mood="glum", by=trusted("Mira"))
notes.set_note("12", mood="gay", by=trusted("Mira"))
first, second = notes.NOTES.revisions("note", scope=of_npc("12"))
assert (first.value.mood, second.value.mood) == ("glum", "gay")
back = notes.NOTES.revert("note", 1, scope=of_npc("12"), by=trusted("Mira"))
assert back.mood == "glum" and notes.notes_for("12")[0].mood == "glum"
"""
ENTRY_FILES = {
    "evennia_ai/engine/lorebook/entry.py": (
        "    ignore_budget: bool = False\n",
        "    ignore_budget: bool = False\n    flavour: str = ''\n",
    ),
    "evennia_ai/formats/lorebooks/entry_fields.py": (
        '    _app("ignore_budget", _SWITCH),\n',
        """    _app("ignore_budget", _SWITCH),
    _own("flavour", "flavour", "text", a_text(40)),
""",
    ),
}
ENTRY_PROGRAM = """
import json
from evennia_ai.formats.lorebooks.books import read_book
from evennia_ai.formats.lorebooks.editing.edits import add_entry, change_entry, new_book
data, uid = add_entry(new_book("tides"), {"keys": ["tide"], "content": "High.", "flavour": "salt"})
data = change_entry(data, uid, {"flavour": "brine"})
assert read_book(json.loads(json.dumps(data))).entries[0].flavour == "brine"
"""


def ran_with(tmp_path: Path, files: dict[str, tuple[str, str]], program: str) -> None:
    """Run a program in a copy of the package in which two files are changed."""
    assert len(files) == 2
    ignored = shutil.ignore_patterns("__pycache__", "static")
    for folder in ("evennia_ai", "server"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    for name, (old, new) in files.items():
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{name}: quote what the code says now: {old}"
        (tmp_path / name).write_text(text.replace(old, new), encoding="utf-8")
    start = (
        "import django\n"
        "from django.conf import settings\n"
        "settings.MIGRATION_MODULES = {app: None for app in ('evennia_ai', 'contenttypes')}\n"
        "django.setup()\n"
        "from django.db import connection\n"
        "from evennia_ai.models import Note, Revision, SourceFile, StateRevision\n"
        "with connection.schema_editor() as editor:\n"
        "    for model in (StateRevision, SourceFile, Revision, Note):\n"
        "        editor.create_model(model)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", start + program],
        cwd=tmp_path,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "server.conf.test_settings"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    ("files", "program"),
    [(NOTE_FILES, NOTE_PROGRAM), (ENTRY_FILES, ENTRY_PROGRAM)],
    ids=["note", "entry of a lorebook"],
)
def test_new_field_needs_two_files(
    tmp_path: Path, files: dict[str, tuple[str, str]], program: str
) -> None:
    ran_with(tmp_path, files, program)
