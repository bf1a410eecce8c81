"""Test several processes on one database file, with real commits."""

import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.forking import Forker

pytestmark = pytest.mark.long


class Worker:
    """A process that is ready and waits for the signal to go on."""

    def __init__(self, forker: Forker, database: Path, doing: str, name: str) -> None:
        folder = Path(tempfile.mkdtemp(dir=database.parent))
        out, self._go = folder / "out", folder / "go"
        for pipe in (out, self._go):
            os.mkfifo(pipe)
        given = {"database": str(database), "doing": doing, "name": name, "go": str(self._go)}
        self._process = forker.begin(given, out=out, err=folder / "err")
        self._said = out.open(encoding="utf-8")

    def answer(self) -> dict:
        line = self._said.readline()
        assert line, self._process.err.read_text(encoding="utf-8")
        return json.loads(line)

    def go(self) -> None:
        self._go.write_text("\n", encoding="utf-8")

    def end(self) -> int:
        """Wait for the end of the process, and return its exit status."""
        self._said.close()
        return self._process.wait(seconds=300)


@pytest.fixture(scope="module")
def forker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forker]:
    """The program from which processes are forked. It has started Django."""
    made = Forker(
        "tests.store.two_processes",
        environment=os.environ,
        said=tmp_path_factory.mktemp("forker") / "said",
    )
    yield made
    made.close()


@pytest.fixture(scope="module")
def tables(forker: Forker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database file with our empty tables."""
    path = tmp_path_factory.mktemp("tables") / "game.db3"
    with working(forker, path, ("migrate", "")):
        return path


@pytest.fixture
def workers(forker: Forker) -> Callable[..., AbstractContextManager[list[Worker]]]:
    """A block in which these processes are ready: `workers(database, ("edit", "Mira"))`."""
    return partial(working, forker)


@pytest.fixture
def database(tables: Path, tmp_path: Path) -> Path:
    """A database file with our tables, for one test."""
    return Path(shutil.copy(tables, tmp_path))


@contextmanager
def working(forker: Forker, database: Path, *jobs: tuple[str, str]) -> Iterator[list[Worker]]:
    running = [Worker(forker, database, *job) for job in jobs]
    try:
        assert [worker.answer() for worker in running] == [{"ready": True}] * len(running)
        yield running
    finally:
        statuses = [worker.end() for worker in running]
    assert statuses == [0] * len(running)


def rows(database: Path, sql: str) -> list[tuple]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(sql).fetchall()


def test_second_process_that_edits_a_component_gets_a_conflict(database, workers):
    with workers(database, ("edit", "Mira"), ("edit", "Tam")) as pair:
        for worker in pair:
            worker.go()
        answers = [worker.answer() for worker in pair]

    (winner,) = [answer["saved"] for answer in answers if "saved" in answer]
    assert [a["conflict"] for a in answers if "conflict" in a] == [winner]
    assert rows(database, "SELECT content FROM evennia_ai_component WHERE key = 'goals'") == [
        (f"{winner} wins.",)
    ]


def test_second_process_that_edits_a_lorebook_gets_a_conflict(database, workers):
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


def test_second_process_that_switches_a_preset_gets_a_conflict(database, workers):
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


def test_second_process_that_edits_a_page_gets_a_conflict(database, workers):
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


def test_refresh_shows_changes_of_a_base_by_another_process(database, workers):
    with workers(database, ("make_page", "Mira")):
        pass
    with workers(database, ("watch_bases", ""), ("edit_page", "Tam")) as (watcher, editor):
        editor.go()
        assert editor.answer() == {"saved": "Tam"}
        watcher.go()

        assert watcher.answer() == {"before": [["harbour", 11]], "after": [["harbour", 9]]}


@pytest.mark.req("S2-31")
def test_records_of_two_processes_do_not_interleave(database, workers):
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


def test_refresh_shows_commits_of_another_process(database, workers):
    with workers(database, ("watch", "web"), ("edit", "Mira")) as (watcher, editor):
        editor.go()
        assert editor.answer() == {"saved": "Mira"}
        watcher.go()

        assert watcher.answer() == {"before": "", "after": "Mira wins."}


def test_refresh_shows_that_another_process_reset_the_lore(database, workers):
    with workers(database, ("remember_lore", "")):
        pass
    with workers(database, ("watch_lore", "game"), ("reset_lore", "Mira")) as (watcher, resetter):
        resetter.go()
        assert resetter.answer() == {"removed": True}
        watcher.go()

        assert watcher.answer() == {"before": ["harbour#7"], "after": []}


def test_values_are_new_and_then_cached_after_real_commits(database, workers):
    with workers(database, ("write_and_read", "")) as (worker,):
        worker.go()
        answer = worker.answer()

    assert answer["told"] == ["goal 2", "oren", "harbour", "note 2", "line 1", "line 2"]
    assert answer["warm"] == 0
    # These queries read the registry, the assignment, the card, the attached books twice and the
    # notes, but not the history.
    assert answer["cold"] == 6
