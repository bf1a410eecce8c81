"""Long books are parsed in a thread: a turn uses the earlier revision, or waits for the first."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Thread, get_ident
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.lorebook.book import Lorebook
from evennia_ai.engine.prompt.components import GAME, Scope, of_npc
from evennia_ai.npc.inputs.book_builds import LONG, BookBuilds
from evennia_ai.npc.views import parse_cache
from evennia_ai.npc.views.parse_cache import Parsed, _attached_book, attached_book, make_ready
from evennia_ai.store.authored.cards import CARDS, save_card
from evennia_ai.store.authored.lorebooks import LOREBOOKS, get_book, save_book
from evennia_ai.store.history import turns

FERRY = "The ferry sails with the tide."


class Threads:
    """Queues work for another thread. `finish` runs it there."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Deferred[Any], Callable[[], Any]]] = []

    def __call__(self, work: Callable[..., Any], *values: Any) -> Deferred[Any]:
        done: Deferred[Any] = Deferred()
        self.waiting.append((done, lambda: work(*values)))
        return done

    def finish(self) -> None:
        waiting, self.waiting = self.waiting, []
        for done, work in waiting:
            ended: list[Any] = []
            thread = Thread(target=_kept, args=(work, ended))
            thread.start()
            thread.join()
            done.callback(ended[0])


def _kept(work: Callable[[], Any], ended: list[Any]) -> None:
    try:
        ended.append(work())
    except Exception:
        ended.append(Failure())


@pytest.fixture
def threads(stage) -> Threads:
    """Parse long books of the stage only when the test calls `finish`."""
    made = Threads()
    stage.talks_with("Aye.", "Aye again.", "And again.")
    _reading_in(stage, made)
    return made


def _reading_in(stage, threads: Threads) -> None:
    live = stage.running.runtime()
    builds = BookBuilds(live.conf.lore, in_thread=threads)
    stage.running.install(replace(live, book_builds=builds))


@pytest.fixture
def readers(monkeypatch) -> list[int]:
    """The ids of the threads that parsed a book."""
    found: list[int] = []
    read = parse_cache.read_book

    def told(*given: Any, **how: Any) -> Any:
        found.append(get_ident())
        return read(*given, **how)

    monkeypatch.setattr(parse_cache, "read_book", told)
    return found


def long_book(content: str, *, name: str, scope: Scope = GAME) -> None:
    entry = {"keys": ["ferry"], "content": content, "enabled": True, "insertion_order": 1}
    other = {**entry, "keys": ["nothing"], "content": "x" * LONG}
    save_book(name, json.dumps({"entries": [entry, other]}), by=trusted("builder"))
    LOREBOOKS.assign(name, scope, by=trusted("builder"))


def prompt_contains(stage, text: str, index: int = -1) -> bool:
    return any(text in message.content for message in stage.model.requests[index].messages)


def reasons_of_book(stage, name: str) -> list[str]:
    """Return the reasons that the trace of the last turn gives about a book."""
    verdicts = stage.npc.ai.last_report().verdicts
    return [one.reason for one in verdicts if one.item == f"book:{name}"]


def test_first_use_of_a_long_book_waits_until_a_thread_has_parsed_it(stage, threads, readers):
    long_book(FERRY, name="first")
    stage.says(stage.anna, "Oren, when does the ferry sail?")
    assert stage.model.requests == []
    assert len(threads.waiting) == 1

    threads.finish()
    stage.passes()

    assert prompt_contains(stage, FERRY)
    assert len(readers) == 1
    assert get_ident() not in readers
    assert reasons_of_book(stage, "first") == ["the turn waited until it was parsed"]
    stage.says(stage.anna, "Oren, and the ferry now?")
    assert reasons_of_book(stage, "first") == []


def test_turn_uses_the_earlier_revision_while_a_new_one_is_parsed(stage, threads, readers):
    long_book(FERRY, name="second")
    stage.says(stage.anna, "Oren, when does the ferry sail?")
    threads.finish()
    stage.passes()

    long_book("The ferry was sunk.", name="second")
    stage.says(stage.anna, "Oren, and the ferry now?")

    assert len(stage.model.requests) == 2
    assert prompt_contains(stage, FERRY)
    assert not prompt_contains(stage, "was sunk")
    assert reasons_of_book(stage, "second") == [
        "revision 2 is still being parsed; revision 1 is used until then"
    ]
    assert turns.last_turn(stage.npc.ai.ref).manifest.revisions["book:second"] == "1"

    threads.finish()
    stage.says(stage.anna, "Oren, and the ferry at last?")

    assert prompt_contains(stage, "was sunk")
    assert reasons_of_book(stage, "second") == []
    assert get_ident() not in readers


def test_turn_waits_for_the_long_book_of_its_player(stage, threads, readers):
    long_book(FERRY, name="third", scope=Scope(kind="player", ref=str(stage.anna.id)))
    stage.says(stage.ben, "Oren, the ferry?")
    assert not prompt_contains(stage, FERRY)
    stage.says(stage.anna, "Oren, the ferry?")
    assert len(stage.model.requests) == 1
    threads.finish()
    stage.passes()
    assert prompt_contains(stage, FERRY)
    assert get_ident() not in readers


def test_turn_waits_for_all_long_books_in_any_order(stage, threads):
    long_book(FERRY, name="sixth")
    long_book("Another of the ferry.", name="seventh")
    stage.says(stage.anna, "Oren, the ferry?")
    threads.waiting.reverse()
    threads.finish()
    stage.passes()
    assert prompt_contains(stage, FERRY)
    assert prompt_contains(stage, "Another of the ferry.")


def test_npc_answers_when_a_long_book_cannot_be_parsed(stage, threads):
    save_book("broken", json.dumps({"entries": 7, "x": "x" * LONG}), by=trusted("builder"))
    LOREBOOKS.assign("broken", GAME, by=trusted("builder"))
    stage.says(stage.anna, "Oren, the ferry?")
    threads.finish()
    stage.passes()
    assert len(stage.model.requests) == 1
    assert any("lorebook 'broken' is left out" in one for one in stage.npc.ai.view().problems)


def test_long_book_is_parsed_once_for_several_waiting_turns(stage, threads):
    long_book(FERRY, name="fourth")
    LOREBOOKS.assign("fourth", Scope(kind="npc", ref=stage.npc.ai.ref), by=trusted("builder"))
    stage.says(stage.anna, "Oren, the ferry?")
    stage.says(stage.ben, "Oren, the ferry?")
    assert len(threads.waiting) == 1


def test_book_is_parsed_in_the_reactor_thread_without_other_threads(stage, readers):
    stage.talks_with("Aye.")
    long_book(FERRY, name="fifth")
    stage.says(stage.anna, "Oren, when does the ferry sail?")
    assert prompt_contains(stage, FERRY)
    assert readers == [get_ident()]


def a_card_with_a_long_book() -> None:
    entries = [
        {"keys": ["ferry"], "content": FERRY, "enabled": True, "insertion_order": 1},
        {"keys": ["nothing"], "content": "x" * LONG, "enabled": True, "insertion_order": 2},
    ]
    data = {"name": "Oren", "character_book": {"name": "tides", "entries": entries}}
    card = {"spec": "chara_card_v3", "spec_version": "3.0", "data": data}
    save_card("oren", json.dumps(card), by=trusted("builder"))


def test_turn_waits_for_the_long_book_of_a_card_and_the_trace_reports_the_wait(
    stage, threads, monkeypatch
):
    a_card_with_a_long_book()
    CARDS.assign("oren", of_npc(stage.npc.ai.ref), by=trusted("builder"))
    found: list[int] = []
    read = parse_cache.character_book
    monkeypatch.setattr(
        parse_cache, "character_book", lambda card: found.append(get_ident()) or read(card)
    )
    stage.says(stage.anna, "Oren, when does the ferry sail?")
    assert stage.model.requests == []
    threads.finish()
    stage.passes()
    assert prompt_contains(stage, FERRY)
    assert reasons_of_book(stage, "tides") == ["the turn waited until it was parsed"]
    assert len(found) == 1
    assert get_ident() not in found


def test_read_first_returns_none_once_the_book_is_parsed(stage, threads):
    long_book(FERRY, name="eighth")
    builds, stored = stage.running.runtime().book_builds, get_book("eighth")
    waits = builds.read_first(stored)
    assert waits is not None
    assert not waits.called
    threads.finish()
    assert waits.called
    assert builds.read_first(stored) is None


@pytest.mark.parametrize(
    ("damage", "parsings"),
    [
        (lambda file: None, 0),
        (lambda file: file.write_bytes(file.read_bytes().replace(b"tide", b"wind")), 1),
        (lambda file: file.write_bytes(file.read_bytes()[:-9]), 1),
        (lambda file: file.write_bytes(b"[" + file.read_bytes()), 1),
        (lambda file: file.write_bytes(b""), 1),
        (Path.unlink, 1),
    ],
    ids=["kept", "another text", "cut", "of another making", "empty", "deleted"],
)
def test_kept_book_is_ready_after_a_restart_or_else_parsed_again(
    stage, readers, tmp_path, monkeypatch, damage, parsings
):
    long_book(FERRY, name="first")
    stored = get_book("first")

    def restarted() -> Lorebook:
        monkeypatch.setattr(parse_cache, "_texts", Parsed(parse_cache._texts._parse, most=9))
        monkeypatch.setattr(parse_cache, "_attached_books", Parsed(_attached_book, most=9))
        readers.clear()
        make_ready(stored, stage.running.runtime().conf.lore, tmp_path)
        return attached_book(stored)

    read = restarted()
    (file,) = tmp_path.iterdir()
    content = file.read_bytes()
    assert len(readers) == 1
    assert file.stat().st_mode & 0o077 == 0

    damage(file)
    again = restarted()

    assert len(readers) == parsings
    assert (again.entries is read.entries, again.label) == (False, "first")
    assert [one.template.source for one in again.entries] == [FERRY, "x" * LONG]
    assert [one.name for one in tmp_path.iterdir()] == [file.name]
    assert file.read_bytes() == content


def test_changed_text_or_changed_rules_use_no_kept_book(stage, readers, tmp_path):
    rules = stage.running.runtime().conf.lore
    for content, sensitive in ((FERRY, False), (FERRY + " Or not.", False), (FERRY, True)):
        long_book(content, name="first")
        make_ready(get_book("first"), replace(rules, case_sensitive=sensitive), tmp_path)
    assert len(list(tmp_path.iterdir())) == 3


def test_folder_that_cannot_be_written_leaves_a_ready_book(stage, readers, tmp_path, caplog):
    long_book(FERRY, name="first")
    (tmp_path / "file").touch()
    make_ready(get_book("first"), stage.running.runtime().conf.lore, tmp_path / "file")
    assert attached_book(get_book("first")).entries[0].template.source == FERRY
    assert "cannot keep ready lorebooks" in caplog.text
