"""Slow files: read in another thread, one at a time, with progress every two seconds."""

import pytest
from twisted.internet.defer import Deferred, maybeDeferred

from evennia_ai import models
from evennia_ai.commands import background_work
from evennia_ai.engine.actors import trusted
from evennia_ai.engine.prompt.components import of_npc
from evennia_ai.store.authored import cards
from evennia_ai.store.authored import cards as store
from tests.commands.card_files import as_json, oren
from tests.commands.stage import hearing, on_screen, one_line


class SlowThread:
    """A thread that starts work at once and ends it when the test calls `finishes`."""

    def __init__(self) -> None:
        self.begun = []

    def __call__(self, work, *args):
        self.begun.append((work, args, Deferred()))
        return self.begun[-1][2]

    def reaches(self, what, done, total):
        """Let the work report this progress."""
        _, (progress,), _ = self.begun[-1]
        progress(what, done, total)

    def finishes(self):
        """Let the oldest started work succeed."""
        work, args, done = self.begun.pop(0)
        maybeDeferred(work, *args).chainDeferred(done)

    def breaks(self, error):
        """Let the oldest started work fail."""
        self.begun.pop(0)[2].errback(error)


@pytest.fixture
def thread(stage, card_folder, monkeypatch):
    """Use the slow thread. `stage.clock` moves the game's clock."""
    slow = SlowThread()
    monkeypatch.setattr(background_work, "in_thread", slow)
    with stage.model():
        yield slow
        while slow.begun:
            slow.finishes()


def lines_of(heard):
    return [on_screen(line) for line in heard]


def finish_all(thread):
    while thread.begun:
        thread.finishes()


def test_progress_is_shown_every_two_seconds_until_the_end(stage, thread):
    with hearing(stage.builder) as heard:
        stage.builder.execute_cmd("card/import oren")
        thread.reaches("lore entries", 200, 1000)
        stage.clock.advance(2)
        thread.reaches("lore entries", 9000, 10000)
        stage.clock.advance(1)
        stage.clock.advance(1)
        finish_all(thread)
        stage.clock.advance(10)
    told = [line for line in lines_of(heard) if line.startswith("Reading")]
    assert told == [
        "Reading oren.json (515 bytes)...",
        "Reading oren.json (515 bytes): lore entries, 200 of 1,000...",
        "Reading oren.json (515 bytes): lore entries, 9,000 of 10,000...",
    ]
    assert stage.clock.getDelayedCalls() == []


def test_quick_file_is_named_once(stage, thread):
    with hearing(stage.builder) as heard:
        stage.builder.execute_cmd("card/import oren")
        stage.clock.advance(1.9)
        finish_all(thread)
    assert len([line for line in heard if line.startswith("Reading")]) == 1
    assert len(cards.CARDS.waiting("Oren Tallow")) == 1


def test_progress_ends_with_an_error(stage, thread):
    with hearing(stage.builder) as heard:
        stage.builder.execute_cmd("card/import oren")
        thread.breaks(MemoryError("no room"))
        stage.clock.advance(10)
    (told,) = lines_of(heard)[1:]
    assert told.startswith("'card/import oren' went wrong: MemoryError: no room.")
    assert "the server's log has the details" in told
    assert cards.CARDS.names_ever() == ()


def test_builder_can_import_again_after_an_error(stage, thread):
    with hearing(stage.builder):
        stage.builder.execute_cmd("card/import oren")
        thread.breaks(MemoryError("no room"))
        stage.builder.execute_cmd("card/import oren")
        finish_all(thread)
    assert len(cards.CARDS.waiting("Oren Tallow")) == 1


class Leaving:
    """A session that ends."""

    logged_in = True


def test_progress_ends_when_the_builder_leaves_and_the_import_continues(stage, thread):
    session = Leaving()
    with hearing(stage.builder) as heard:
        command = background_work.CardWork()
        command.caller, command.session = stage.builder, session
        done = command.worked("Reading a file", lambda progress: "read")
        stage.clock.advance(2)
        session.logged_in = False
        stage.clock.advance(10)
        finish_all(thread)
    assert len(heard) == 1
    assert done.result == "read"


def test_second_import_is_refused_while_a_file_is_read(stage, thread):
    with hearing(stage.builder) as heard:
        stage.builder.execute_cmd("card/import oren")
        stage.builder.execute_cmd("card/import oren = other")
        finish_all(thread)
    assert "Reading oren.json (515 bytes) is not done yet" in one_line(lines_of(heard)[1])
    assert cards.CARDS.names_ever() == ("Oren Tallow",)


def test_second_builders_file_waits_for_the_first(stage, thread):
    ben = stage.person("Ben", permission="Builder")
    with hearing(stage.builder), hearing(ben) as heard:
        stage.builder.execute_cmd("card/import oren")
        ben.execute_cmd("card/import oren = other")
        assert len(thread.begun) == 1
        stage.clock.advance(2)
        finish_all(thread)
    assert lines_of(heard)[1] == "Reading oren.json (515 bytes): waiting for its turn..."
    assert cards.CARDS.names_ever() == ("Oren Tallow", "other")


def test_reload_while_a_file_is_read_leaves_nothing_written(stage, thread):
    with hearing(stage.builder):
        stage.builder.execute_cmd("card/import oren")
        _, _, never = thread.begun.pop()  # A reload would end the process here.
        assert cards.CARDS.names_ever() == ()
        assert models.SourceFile.objects.count() == 0
        never.errback(ConnectionAbortedError())


def test_a_file_that_is_approved_while_it_is_compared_is_not_imported_again(
    stage, thread, card_folder
):
    store.save_card("oren", "{}", by=trusted("world"))
    with hearing(stage.builder) as heard:
        stage.builder.execute_cmd("card/import oren = oren")
        thread.finishes()
        # Now the file is compared with the approved card.
        assert len(thread.begun) == 1
        text = (card_folder / "oren.json").read_text(encoding="utf-8")
        approved = store.save_card("oren", text, by=trusted("Ben"))
        finish_all(thread)
    assert "meanwhile" in heard[-1]
    assert cards.CARDS.newest_number("oren") == approved.revision


def test_a_greeting_is_not_chosen_from_a_file_that_was_replaced_while_it_was_read(stage, thread):
    store.save_card("oren", as_json(oren()).decode(), by=trusted("world"))
    cards.CARDS.assign("oren", of_npc(stage.npc.ai.ref), by=trusted("world"))
    with hearing(stage.builder) as heard:
        stage.builder.execute_cmd("card/greeting oren = 0")
        store.save_card("oren", as_json(oren(first_mes="EVIL")).decode(), by=trusted("world"))
        finish_all(thread)
    assert "Look again" in lines_of(heard)[-1]
    assert cards.assignment_of(stage.npc.ai.ref).greeting is None


def test_nothing_is_assigned_to_an_npc_that_was_deleted_while_its_card_was_read(stage, thread):
    store.save_card("oren", as_json(oren()).decode(), by=trusted("world"))
    with hearing(stage.builder) as heard:
        stage.builder.execute_cmd("card/assign oren = oren")
        stage.npc.delete()
        finish_all(thread)
    assert "deleted meanwhile" in lines_of(heard)[-1]
    assert cards.players_of("oren") == ()
