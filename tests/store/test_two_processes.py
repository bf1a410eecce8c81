"""Several processes on one database file, with real commits."""

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.long


class Worker:
    """A process that is ready and waits to be told to go."""

    def __init__(self, database: Path, doing: str, name: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.store.two_processes", str(database), doing, name],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def answer(self) -> dict:
        return json.loads(self.process.stdout.readline())

    def go(self) -> None:
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self) -> int:
        """Wait for its end; its exit status."""
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(timeout=300)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database file with our tables and nothing in them."""
    path = tmp_path_factory.mktemp("tables") / "game.db3"
    with workers(path, ("migrate", "")):
        return path


@pytest.fixture
def database(tables: Path, tmp_path: Path) -> Path:
    """A file of the test's own with our tables."""
    return Path(shutil.copy(tables, tmp_path))


@contextmanager
def workers(database: Path, *jobs: tuple[str, str]) -> Iterator[list[Worker]]:
    running = [Worker(database, *job) for job in jobs]
    try:
        assert [worker.answer() for worker in running] == [{"ready": True}] * len(running)
        yield running
    finally:
        statuses = [worker.end() for worker in running]
    assert statuses == [0] * len(running)


def rows(database: Path, sql: str) -> list[tuple]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(sql).fetchall()


def test_of_two_processes_that_edit_one_component_one_is_told(database):
    with workers(database, ("edit", "Mira"), ("edit", "Tam")) as pair:
        for worker in pair:
            worker.go()
        answers = [worker.answer() for worker in pair]

    (winner,) = [answer["saved"] for answer in answers if "saved" in answer]
    assert [a["conflict"] for a in answers if "conflict" in a] == [winner]
    assert rows(database, "SELECT content FROM evennia_ai_component WHERE key = 'goals'") == [
        (f"{winner} wins.",)
    ]


def test_of_two_processes_that_edit_one_lorebook_one_is_told(database):
    with workers(database, ("make_book", "Mira")):
        pass
    with workers(database, ("edit_book", "Mira"), ("edit_book", "Tam")) as pair:
        for worker in pair:
            worker.go()
        answers = [worker.answer() for worker in pair]

    (winner,) = [answer["saved"] for answer in answers if "saved" in answer]
    assert [a["conflict"] for a in answers if "conflict" in a] == [winner]
    assert rows(
        database,
        "SELECT number, changed_by FROM evennia_ai_revision"
        " WHERE kind = 'lorebook' ORDER BY number",
    ) == [(1, "Mira"), (2, winner)]


def test_of_two_processes_that_switch_in_one_preset_one_is_told(database):
    with workers(database, ("make_preset", "Mira")):
        pass
    with workers(database, ("switch_preset", "Mira"), ("switch_preset", "Tam")) as pair:
        for worker in pair:
            worker.go()
        answers = [worker.answer() for worker in pair]

    (winner,) = [answer["saved"] for answer in answers if "saved" in answer]
    assert [a["conflict"] for a in answers if "conflict" in a] == [winner]
    assert rows(
        database,
        "SELECT number, value FROM evennia_ai_revision WHERE kind = 'preset' AND number > 2",
    ) == [(3, f'{{"grants":"","switches":{{"{winner}":true}}}}')]


def test_of_two_processes_that_edit_one_page_one_is_told(database):
    with workers(database, ("make_page", "Mira")):
        pass
    with workers(database, ("edit_page", "Mira"), ("edit_page", "Tam")) as pair:
        for worker in pair:
            worker.go()
        answers = [worker.answer() for worker in pair]

    (winner,) = [answer["saved"] for answer in answers if "saved" in answer]
    assert [a["conflict"] for a in answers if "conflict" in a] == [winner]
    assert rows(
        database, "SELECT number, changed_by FROM evennia_ai_knowledgepagerevision ORDER BY number"
    ) == [(1, "Mira"), (2, winner)]


def test_a_process_sees_after_a_refresh_what_another_one_wrote_into_a_base(database):
    with workers(database, ("make_page", "Mira")):
        pass
    with workers(database, ("watch_bases", ""), ("edit_page", "Tam")) as (watcher, editor):
        editor.go()
        assert editor.answer() == {"saved": "Tam"}
        watcher.go()

        assert watcher.answer() == {"before": [["harbour", 11]], "after": [["harbour", 9]]}


@pytest.mark.req("S2-31")
def test_two_processes_that_append_do_not_interleave(database):
    with workers(database, ("append", "Mira"), ("append", "Tam")) as pair:
        for worker in pair:
            worker.go()
        for worker in pair:
            worker.answer()

    written = rows(database, "SELECT seq, name, body FROM evennia_ai_record ORDER BY seq")
    pairs = list(zip(written[::2], written[1::2], strict=True))
    assert [seq for seq, _, _ in written] == list(range(1, 81))
    assert all(a[1] == b[1] and a[2][:-1] == b[2][:-1] for a, b in pairs)
    assert {name for _, name, _ in written} == {"Mira", "Tam"}


def test_a_process_sees_after_a_refresh_what_another_one_committed(database):
    with workers(database, ("watch", "web"), ("edit", "Mira")) as (watcher, editor):
        editor.go()
        assert editor.answer() == {"saved": "Mira"}
        watcher.go()

        assert watcher.answer() == {"before": "", "after": "Mira wins."}


def test_a_process_sees_after_a_refresh_that_another_one_reset_the_lore(database):
    with workers(database, ("remember_lore", "")):
        pass
    with workers(database, ("watch_lore", "game"), ("reset_lore", "Mira")) as (watcher, resetter):
        resetter.go()
        assert resetter.answer() == {"removed": True}
        watcher.go()

        assert watcher.answer() == {"before": ["harbour#7"], "after": []}


def test_after_real_commits_everything_is_new_and_then_warm(database):
    with workers(database, ("live", "")) as (worker,):
        worker.go()
        answer = worker.answer()

    assert answer["told"] == ["goal 2", "oren", "harbour", "note 2", "line 1", "line 2"]
    assert answer["warm"] == 0
    # The registry, the assignment, the card, the attached books twice, the notes; not the history.
    assert answer["cold"] == 6
