"""Two games with a database each on one PostgreSQL, and a library that one may only read."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.store.postgres import USER, shared_cluster

pytestmark = [pytest.mark.service, pytest.mark.long]

ROOT = Path(__file__).parents[3]
READER = "evennia_ai_reader"


def process(game: str, library: str, *words: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, *words],
        cwd=ROOT,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "tests.store.library.games_settings",
            "EVENNIA_AI_TEST_SHARED": json.dumps({"game": game, "library": library}),
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


class Game:
    """A game in a process of its own."""

    def __init__(self, game: str, library: str) -> None:
        self.process = process(game, library, "-m", "tests.store.library.shared_games")

    def does(self, *words: str):
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def end(self) -> None:
        self.process.stdin.close()
        self.process.stdout.close()
        assert self.process.wait(timeout=300) == 0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    return shared_cluster(tmp_path_factory.mktemp("beside"))


@pytest.fixture(scope="module")
def games(cluster):
    """Saltholm, which publishes, and Ebbwick, whose user may only read the library."""
    first, library = cluster.make("sharing_saltholm"), cluster.make("sharing_library")
    made = process(first, library, "-m", "django", "migrate", "--verbosity", "0")
    made.communicate()
    assert made.returncode == 0
    second = cluster.make("sharing_ebbwick", like="sharing_saltholm")
    cluster.do(f"CREATE ROLE {READER} LOGIN")
    reads = library.replace(f"{USER}@", f"{READER}@")
    pair = Game(first, library), Game(second, reads)
    yield pair
    for game in pair:
        game.end()


def test_an_edit_in_one_game_is_seen_in_the_other_that_may_only_read(cluster, games):
    saltholm, ebbwick = games
    saltholm.does("write", "It crosses at dusk.")
    assert saltholm.does("publish", "Saltholm") == {"done": True}
    assert "cannot be read: permission denied" in ebbwick.does("use")["refused"]
    cluster.rows("sharing_library", f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {READER}")

    assert ebbwick.does("use") == {"done": 1}
    assert ebbwick.does("read") == {"done": "It crosses at dusk."}
    assert "edit it there" in ebbwick.does("write", "It sank.")["refused"]
    saltholm.does("write", "It crosses at dawn.")
    saltholm.does("publish", "Saltholm")
    assert ebbwick.does("follow") == {"done": ["harbour"]}
    assert ebbwick.does("read") == {"done": "It crosses at dawn."}

    cluster.rows("sharing_library", "UPDATE evennia_ai_library_entry SET game = 'Nobody'")
    assert "the game Saltholm published it" in saltholm.does("publish", "Saltholm")["refused"]
    cluster.rows("sharing_library", "UPDATE evennia_ai_library_entry SET game = 'Saltholm'")


def test_a_library_whose_tables_are_locked_is_given_up_and_the_copy_stays(cluster, games):
    import psycopg

    saltholm, ebbwick = games
    with psycopg.connect(cluster.address("sharing_library")) as held:
        held.execute("LOCK TABLE evennia_ai_library_entry IN ACCESS EXCLUSIVE MODE")
        saltholm.does("write", "It flies.")
        assert "cannot be written, nothing" in saltholm.does("publish", "Saltholm")["refused"]
        assert "took longer than 1 s" in ebbwick.does("follow_shortly")["refused"]
    assert ebbwick.does("read") == {"done": "It crosses at dawn."}


def test_a_library_that_is_away_leaves_the_copy_and_is_found_again(cluster, games):
    saltholm, ebbwick = games
    cluster.do("ALTER DATABASE sharing_library ALLOW_CONNECTIONS false")
    cluster.do(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'sharing_library'"
    )
    assert "the library cannot be read" in ebbwick.does("follow")["refused"]
    assert ebbwick.does("read") == {"done": "It crosses at dawn."}
    cluster.do("ALTER DATABASE sharing_library ALLOW_CONNECTIONS true")
    saltholm.does("write", "It sails.")
    assert saltholm.does("publish", "Saltholm") == {"done": True}
    assert ebbwick.does("follow") == {"done": ["harbour"]}
    assert ebbwick.does("read") == {"done": "It sails."}
