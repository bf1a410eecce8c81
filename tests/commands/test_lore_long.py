"""Long books are changed, read and written in another thread; the command answers afterwards."""

import json
from collections.abc import Callable
from threading import get_ident
from typing import Any

import pytest
from django.test import override_settings

from evennia_ai.commands import background_work
from evennia_ai.commands.setup.lore import books, changes
from evennia_ai.commands.setup.lore.named import LONG
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.lorebook.scan.key_index import INDEXES
from evennia_ai.formats.lorebooks.editing import edits
from evennia_ai.npc.views import parse_cache
from evennia_ai.store.authored import lorebooks as store
from tests.commands.stage import hearing, on_screen, one_line
from tests.npc.inputs.test_book_builds import Threads


def a_text(name: str = "tides") -> str:
    told = {"keys": ["ferry"], "content": "It sails at dusk.", "name": "the ferry"}
    long = {"keys": ["nothing"], "content": "x" * LONG, "name": "long"}
    return json.dumps({"name": name, "entries": [told, long]})


@pytest.fixture
def readers(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record in which thread each whole book is read."""
    read: list[int] = []

    def counted(reading: Callable[..., Any]) -> Callable[..., Any]:
        def done(*given: Any, **options: Any) -> Any:
            read.append(get_ident())
            return reading(*given, **options)

        return done

    for room in (books, changes, edits, parse_cache):
        monkeypatch.setattr(room, "read_book", counted(room.read_book))
    return read


@pytest.fixture
def beside(stage, monkeypatch: pytest.MonkeyPatch, readers: list[int]) -> Threads:
    """Return a stage with a long, already parsed book, and a thread that waits for `finish`."""
    store.save_book("tides", a_text(), by=trusted("builder"))
    parse_cache.attached_book(store.get_book("tides"))
    readers.clear()
    threads = Threads()
    monkeypatch.setattr(background_work, "in_thread", threads)
    with stage.model():
        yield threads
        threads.finish()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "coast.json").write_text(a_text("coast"), encoding="utf-8")
    with override_settings(EVENNIA_AI_CARD_FOLDER=str(tmp_path)):
        yield tmp_path


def uids(name: str) -> list[str]:
    return [entry.uid for entry in parse_cache.attached_book(store.get_book(name)).entries]


TYPED = {
    "lore/create tides/the toll = toll: Two pence.": "Created tides#2 (the toll)",
    "lore/remove tides/the ferry": "Removed tides#0 (the ferry)",
    "lore/mode tides = frozen": "is frozen from now on",
    "lore/keys tides/the ferry = boat": "now: boat. Revision 2",
    "lore/import coast": "Imported lorebook coast, 2 entries, revision 1 (new)",
    "lore/import coast = tides": "revision 2 (revision 1 before)",
}


@pytest.mark.req("S3-11")
@pytest.mark.parametrize("typed", TYPED)
def test_long_books_are_never_read_in_the_reactors_thread(stage, beside, folder, readers, typed):
    with hearing(stage.builder) as heard:
        stage.builder.execute_cmd(typed)
        assert (heard, readers) == ([], [])
        assert store.get_book("tides").revision == 1
        beside.finish()
    assert TYPED[typed] in one_line(on_screen(heard[0]))
    assert readers
    assert get_ident() not in readers


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("lore/create tides/the toll = toll: Two pence.", "tides"),
        ("lore/remove tides/the ferry", "tides"),
        ("lore/import coast", "coast"),
    ],
)
def test_changed_long_book_is_ready_for_the_next_turn(stage, beside, folder, readers, typed, name):
    stage.builder.execute_cmd(typed)
    beside.finish()
    readers.clear()
    assert INDEXES in parse_cache.attached_book(store.get_book(name)).of_entries
    assert readers == []


def test_long_book_stays_unchanged_until_written(stage, beside):
    stage.builder.execute_cmd("lore/remove tides/the ferry")
    assert uids("tides") == ["0", "1"]
    beside.finish()
    assert uids("tides") == ["1"]


def test_second_change_of_a_long_book_is_refused_meanwhile(stage, beside):
    with hearing(stage.builder) as heard:
        stage.builder.execute_cmd("lore/remove tides/the ferry")
        stage.builder.execute_cmd("lore/remove tides/the ferry")
        assert "Writing lorebook tides is not done yet" in one_line(on_screen(heard[-1]))
        beside.finish()
    assert store.get_book("tides").revision == 2


def test_change_of_a_long_book_overwrites_no_other_change(stage, beside):
    with hearing(stage.builder) as heard:
        stage.builder.execute_cmd("lore/remove tides/the ferry")
        theirs = store.save_book("tides", json.dumps({"entries": []}), by=trusted("Ida"))
        beside.finish()
    assert "Ida" in one_line(on_screen(heard[-1]))
    assert store.get_book("tides") == theirs


def test_long_file_without_a_book_is_refused(stage, beside, folder):
    (folder / "coast.json").write_text('{"entries": 7, "x": "' + "x" * LONG + '"}')
    with hearing(stage.builder) as heard:
        stage.builder.execute_cmd("lore/import coast")
        beside.finish()
    assert "entries" in one_line(on_screen(heard[-1]))
    assert store.LOREBOOKS.list_keys() == ("tides",)
