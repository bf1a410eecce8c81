"""`evennia-ai move`: a played game into a real PostgreSQL and back, and moves that are killed."""

import json
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from evennia_ai.cli.game import SETTINGS
from tests.acceptance.games import DATABASE, copied_game
from tests.cli.conftest import Called
from tests.cli.forked_games import ForkedGame
from tests.cli.processes import environment, evennia_ai
from tests.store.postgres import Cluster, shared_cluster

pytestmark = [pytest.mark.service, pytest.mark.minutes(2)]

CHAT = [
    {"user_name": "Anna", "character_name": "Oren", "create_date": "2026-01-01"},
    {"name": "Anna", "is_user": True, "mes": "Is it foggy, Oren? \U0001f32b"},
    {"name": "Oren", "is_user": False, "mes": "As ever. Здравствуй."},
]
GONE = 1_000
"""The number of an object that was created last and then deleted."""
_SETTINGS = """
import os
from evennia_ai.services.settings.database import database
if os.environ.get("PLAYED_ON"):
    DATABASES = database(os.environ["PLAYED_ON"])
"""
_KILLS = (3, 300, 1_400, *range(40, 2_000, 45))
"""The statement at which each attempt is killed: some while tables are created, others later. A
repeated move first asks for its progress once per table, so later attempts die at later statements.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A game, the PostgreSQL cluster next to it, and the output of its move."""

    folder: Path
    cluster: Cluster
    called: Called
    forked: ForkedGame

    def move(self, address: str) -> Called:
        """Return the output of a move that forks instead of starting Django."""
        return self.forked.call("move", str(self.folder), "--to", address, cwd=self.folder)


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Moved]:
    """Move the demo game once, with unusual values in its database."""
    root = tmp_path_factory.mktemp("game")
    cluster = shared_cluster(tmp_path_factory.mktemp("beside"))
    copied_game(root, settings=_SETTINGS)
    (root / "server" / "logs").mkdir(exist_ok=True)
    chat = root / "chat.jsonl"
    chat.write_text("\n".join(map(json.dumps, CHAT)), encoding="utf-8")
    forked = ForkedGame(root, environment=environment(DJANGO_SETTINGS_MODULE=SETTINGS))
    words = ("history", "import", str(chat), "--npc", "Oren", "--game", str(root))
    taken = forked.call(*words, cwd=root)
    assert taken.status == 0, taken.err
    _make_strange(root / DATABASE)
    address = cluster.make("moved")
    called = evennia_ai("move", str(root), "--to", address)
    yield Moved(folder=root, cluster=cluster, called=called, forked=forked)
    forked.close()


def _make_strange(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(
            "UPDATE sqlite_sequence SET seq = ? WHERE name = 'objects_objectdb'", (GONE,)
        )
        database.execute(
            "INSERT INTO typeclasses_attribute (db_key, db_value, db_strvalue, db_lock_storage,"
            " db_model, db_date_created) VALUES ('odd', 'no pickle at all', ?, '', 'objectdb',"
            " '1999-12-31 23:59:59.999999')",
            ("before\0after \U0001f32b",),
        )


def rows(moved: Moved, query: str) -> tuple[list, list]:
    """Return the rows that a query finds in the source and in the target."""
    with closing(sqlite3.connect(moved.folder / DATABASE)) as database:
        found = database.execute(query).fetchall()
    return found, moved.cluster.rows("moved", query)


def test_a_game_is_moved_and_says_what_to_do_next(moved):
    assert moved.called.status == 0, moved.called.err
    assert "evennia_ai_record: " in moved.called.out
    assert "0 broken chains" in moved.called.out
    assert "DATABASES = database(" in moved.called.out
    assert "UNLIKE" not in moved.called.out


def test_target_has_the_rows_and_numbers_of_the_source(moved):
    for table in ("objects_objectdb", "evennia_ai_record", "typeclasses_tag"):
        source, target = rows(moved, f"SELECT id FROM {table} ORDER BY id")
        assert source == target != []
    source, target = rows(moved, "SELECT sha256, body FROM evennia_ai_record ORDER BY id")
    assert source == target
    source, target = rows(moved, "SELECT db_value FROM typeclasses_attribute ORDER BY id")
    assert source == target


def test_nul_character_is_replaced_and_reported(moved):
    ((found,),) = moved.cluster.rows(
        "moved", "SELECT db_strvalue FROM typeclasses_attribute WHERE db_key = 'odd'"
    )
    assert found == "before�after \U0001f32b"
    assert "a NUL in db_strvalue became U+FFFD" in moved.called.err


def test_target_reuses_no_number_of_a_deleted_row(moved):
    ((number,),) = moved.cluster.rows(
        "moved", "SELECT nextval(pg_get_serial_sequence('objects_objectdb', 'id'))"
    )
    assert number > GONE


def test_the_target_has_its_foreign_keys_and_refuses_to_change_a_record(moved):
    import psycopg

    ((keys,),) = moved.cluster.rows("moved", "SELECT count(*) FROM pg_constraint WHERE contype='f'")
    assert keys > 50
    with pytest.raises(psycopg.errors.IntegrityConstraintViolation, match="append-only"):
        moved.cluster.rows("moved", "UPDATE evennia_ai_record SET body = 'x'")


def test_nonempty_target_is_refused_and_unchanged(moved):
    called = moved.move(moved.cluster.address("moved"))

    assert called.status == 2
    assert "not empty" in called.err
    moved.cluster.make("strange")
    moved.cluster.rows("strange", "CREATE TABLE recipes (name text)")
    assert moved.move(moved.cluster.address("strange")).status == 2
    assert moved.cluster.rows("strange", "SELECT tablename FROM pg_tables"
                              " WHERE schemaname = 'public'") == [("recipes",)]  # fmt: skip


def test_running_game_is_refused(moved, tmp_path):
    pid = moved.folder / "server" / "server.pid"
    twistd = tmp_path / "twistd"
    shutil.copy(shutil.which("sleep") or "", twistd)
    sleeping = subprocess.Popen([twistd, "60"])
    try:
        pid.write_text(str(sleeping.pid))
        called = moved.move(moved.cluster.make("running"))
    finally:
        sleeping.kill()
        sleeping.wait()
        pid.unlink()

    assert called.status == 2
    assert "the game runs" in called.err


def test_game_with_another_writer_is_refused(moved):
    with closing(sqlite3.connect(moved.folder / DATABASE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        called = moved.move(moved.cluster.make("written"))

    assert called.status == 2
    assert "another program writes into the game's database" in called.err


def test_moving_back_to_a_file_gives_the_same_rows(moved, tmp_path):
    path = tmp_path / "back.db3"
    there = moved.cluster.address("moved")
    called = evennia_ai("move", str(moved.folder), "--to", f"sqlite:///{path}", PLAYED_ON=there)

    assert called.status == 0, called.err
    told = [line for line in called.out.splitlines() if " rows, " in line]
    assert told == [line for line in moved.called.out.splitlines() if " rows, " in line]
    with closing(sqlite3.connect(path)) as database:
        query = "SELECT seq FROM sqlite_sequence WHERE name = 'objects_objectdb'"
        ((number,),) = database.execute(query).fetchall()
        assert number > GONE


def test_killed_move_continues_to_the_same_result(moved):
    address = moved.cluster.make("killed")
    words = ("move", str(moved.folder), "--to", address)
    dying = partial(moved.forked.call, cwd=moved.folder, module="tests.cli.dying_move")
    deaths = 0
    for at in _KILLS:
        called = dying(str(at), *words)
        if called.status == 0:
            break
        assert called.status == -9, called.err
        deaths += 1

    assert called.status == 0, called.err
    assert deaths > 8
    assert called.out == moved.called.out
