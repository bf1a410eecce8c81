"""Test that a demo game with outdated tables is moved aside."""

import sqlite3
from pathlib import Path

import pytest

from server.evennia_process import put_old_game_aside

MIGRATION = "evennia_ai/migrations/0001_initial.py"
TEXT = """
operations = [
    migrations.CreateModel(
        name="Note",
        fields=[
            ("id", models.BigAutoField()),
            ("text", models.TextField()),
            ("file", models.ForeignKey(to="evennia_ai.sourcefile")),
        ],
    ),
]
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "server").mkdir()
    (tmp_path / MIGRATION).parent.mkdir(parents=True)
    (tmp_path / MIGRATION).write_text(TEXT)
    return tmp_path


def a_game(root: Path, *statements: str) -> Path:
    database = root / "server" / "evennia.db3"
    with sqlite3.connect(database) as made:
        made.execute("CREATE TABLE objects_objectdb (id integer)")
        made.execute("INSERT INTO objects_objectdb VALUES (7)")
        for statement in statements:
            made.execute(statement)
    made.close()
    return database


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE evennia_ai_note (id integer, text text)",
        "CREATE TABLE evennia_ai_note (id integer, text text, file_id integer, by text)",
        "CREATE TABLE evennia_ai_noterevision (id integer)",
    ],
    ids=["a column is missing", "a column is too many", "a table is missing"],
)
def test_game_with_outdated_tables_is_moved_aside(
    root: Path, capsys: pytest.CaptureFixture[str], statement: str
) -> None:
    database = a_game(root, statement)
    kept = put_old_game_aside(root)
    assert kept is not None
    assert not database.exists()
    with sqlite3.connect(kept) as old:
        assert old.execute("SELECT id FROM objects_objectdb").fetchall() == [(7,)]
    old.close()
    assert str(kept) in capsys.readouterr().out


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TABLE evennia_ai_note (id integer, text text, file_id integer)"],
        [],
    ],
    ids=["tables of now", "nothing of ours yet"],
)
def test_game_of_this_version_is_kept(root: Path, statements: list[str]) -> None:
    database = a_game(root, *statements)
    assert put_old_game_aside(root) is None
    assert database.exists()


def test_nothing_is_moved_aside_without_a_game(root: Path) -> None:
    assert put_old_game_aside(root) is None
    (root / "server" / "evennia.db3").touch()
    assert put_old_game_aside(root) is None
