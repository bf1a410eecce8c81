"""A demo game of before 0.1.0 is kept, and a new one is made."""

import sqlite3

import pytest

from server.evennia_process import put_old_game_aside


@pytest.fixture
def root(tmp_path):
    (tmp_path / "server").mkdir()
    (tmp_path / "evennia_ai" / "migrations").mkdir(parents=True)
    (tmp_path / "evennia_ai" / "migrations" / "0001_initial.py").touch()
    return tmp_path


def a_game(root, *migrations):
    with sqlite3.connect(root / "server" / "evennia.db3") as made:
        made.execute("CREATE TABLE django_migrations (app text, name text)")
        rows = [("evennia_ai", name) for name in migrations] + [("objects", "0013_old")]
        made.executemany("INSERT INTO django_migrations VALUES (?, ?)", rows)
    made.close()


def test_a_game_from_before_is_kept_beside_the_new_one(root, capsys):
    a_game(root, "0001_tables", "0002_append_only_records")
    kept = put_old_game_aside(root)
    assert not (root / "server" / "evennia.db3").exists()
    with sqlite3.connect(kept) as old:
        assert old.execute("SELECT count(*) FROM django_migrations").fetchone() == (3,)
    old.close()
    assert str(kept) in capsys.readouterr().out


@pytest.mark.parametrize("migrations", [["0001_initial"], []])
def test_a_game_of_this_version_goes_on(root, migrations):
    a_game(root, *migrations)
    assert put_old_game_aside(root) is None
    assert (root / "server" / "evennia.db3").exists()


def test_without_a_game_there_is_nothing_to_keep(root):
    assert put_old_game_aside(root) is None
    (root / "server" / "evennia.db3").touch()
    assert put_old_game_aside(root) is None
