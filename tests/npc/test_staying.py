"""Facts, notes and lore that stay in the history: which modes keep them there, and how long."""

import json
from itertools import pairwise

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.history.compaction.planning import CompactionSettings
from evennia_ai.engine.history.records import NewRecord, RecordKind
from evennia_ai.engine.history.turn.replay import replay_turn
from evennia_ai.engine.prompt.components import GAME
from evennia_ai.npc.views.recomposing import PastReader, compose_again
from evennia_ai.store.authored.lorebooks import LOREBOOKS, save_book
from evennia_ai.store.authored.notes import set_note
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.erasing import erase_private
from evennia_ai.store.history import conversations, record_rows
from evennia_ai.store.history.conversations import begin_segment
from evennia_ai.store.history.past_turns import turns_in_order
from evennia_ai.store.history.windows import windows
from tests.npc.scripted_games import an_entry

LINES = (
    "Oren, when does the ferry sail?",
    "Oren, are you sure?",
    "The fare, Oren?",
    "Oren, the ferry again?",
    "Thank you, Oren.",
)
FACTS = "Who speaks: Anna"


def turns_of(stage):
    return list(turns_in_order(stage.npc.ai.ref))


def sent(model):
    """Return the texts of each sent prompt, in order."""
    return [[message.content for message in request.messages] for request in model.requests]


def play(stage, *lines, speaker=None):
    for line in lines or LINES:
        stage.says(speaker or stage.anna, line)
        stage.passes(1)


def reasons(stage):
    """Return for each prompt but the first why it does not begin with the whole previous one."""
    return [turn.manifest.break_reason for turn in turns_of(stage)][1:]


def count(prompt, words):
    return sum(words in text for text in prompt)


def assert_kept(stage):
    """Check that every turn replays from its records and recomposes to the same bytes."""
    reader = PastReader()
    for turn in turns_of(stage):
        records = record_rows.records(turn.manifest.sent_ids)
        assert replay_turn(turn.manifest, records).is_same
        assert compose_again(turn, reader).sha256 == turn.manifest.sha256


def assert_each_begins_with_the_one_before(model):
    for older, newer in pairwise(sent(model)):
        assert newer[: len(older)] == older


class TestFacts:
    def test_each_prompt_has_only_its_own_facts_by_default(self, stage):
        model = stage.talks_with(lambda request: "Aye.")
        play(stage)

        assert [count(prompt, FACTS) for prompt in sent(model)] == [1] * 5
        assert set(reasons(stage)) == {"dynamic"}

    def test_facts_are_sent_again_only_when_changed_in_mode_on_change(self, stage):
        model = stage.talks_with(lambda request: "Aye.", dynamic_block="on_change")
        play(stage, *LINES[:2])
        play(stage, LINES[2], speaker=stage.ben)
        play(stage, LINES[3])

        assert [count(prompt, "Who speaks:") for prompt in sent(model)] == [1, 1, 2, 3]
        assert reasons(stage) == ["append"] * 3

    def test_all_facts_stay_in_the_history_in_mode_all(self, stage):
        model = stage.talks_with(lambda request: "Aye.", dynamic_block="all")
        play(stage)

        assert [count(prompt, FACTS) for prompt in sent(model)] == [1, 2, 3, 4, 5]
        assert reasons(stage) == ["append"] * 4

    @pytest.mark.parametrize("mode", ["on_change", "all"])
    def test_kept_facts_precede_the_event_they_were_sent_with(self, stage, mode):
        model = stage.talks_with(lambda request: "Aye.", dynamic_block=mode)
        play(stage)

        prompt = sent(model)[-1]
        first = next(index for index, text in enumerate(prompt) if FACTS in text)
        assert LINES[0] in prompt[first + 1]
        assert_each_begins_with_the_one_before(model)
        assert_kept(stage)


class TestNotes:
    """All facts stay in the history here, so only the note can change the start of a prompt."""

    NOTE = "The tide is turning."

    @pytest.fixture
    def noted(self, stage):
        def talks(**fields):
            set_note(stage.npc.ai.ref, by=trusted("builder"), content=self.NOTE, **fields)
            model = stage.talks_with(lambda request: "Aye.", dynamic_block="on_change")
            play(stage)
            assert_kept(stage)
            return model

        return talks

    def places(self, model):
        """Return the places of the note in each prompt, counted from the end."""
        return [
            [len(prompt) - index for index, text in enumerate(prompt) if text == self.NOTE]
            for prompt in sent(model)
        ]

    def test_floating_note_moves_with_every_message(self, stage, noted):
        model = noted(depth=2)

        assert self.places(model)[2:] == [[4]] * 3
        assert reasons(stage)[2:] == ["moving"] * 2

    def test_anchored_note_keeps_its_place(self, stage, noted):
        model = noted(depth=2, mode="anchored")

        assert self.places(model) == [[3], [5], [7], [9], [11]]
        assert_each_begins_with_the_one_before(model)
        assert reasons(stage) == ["append"] * 4

    def test_anchored_note_returns_to_its_depth_after_sixteen_messages(self, stage, noted):
        model = noted(depth=2, mode="anchored")
        play(stage, *LINES)

        [before], [after] = self.places(model)[-2:]
        assert (before, after) == (19, 4)
        assert reasons(stage) == [*["append"] * 8, "re_anchored"]

    def test_note_of_mode_tail_is_sent_repeatedly_and_stays(self, stage, noted):
        model = noted(every=2, mode="tail")

        assert [count(prompt, self.NOTE) for prompt in sent(model)] == [0, 1, 1, 2, 2]
        assert_each_begins_with_the_one_before(model)
        assert reasons(stage) == ["append"] * 4


class TestLore:
    """All facts stay in the history here, so only lore can change the start of a prompt."""

    SAILS = "The ferry sails at dusk."

    def talks(self, stage, book, **conf):
        save_book("harbour", json.dumps(book), by=trusted("builder"))
        LOREBOOKS.assign("harbour", GAME, by=trusted("builder"))
        return stage.talks_with(lambda request: "Aye.", **{"dynamic_block": "on_change", **conf})

    def book(self, text=SAILS, **more):
        return {"entries": [an_entry("ferry", text)], **more}

    def frozen(self, text=SAILS):
        return self.book(text, extensions={"evennia_ai": {"mode": "frozen"}})

    def test_entry_of_a_frozen_book_is_sent_once_and_stays(self, stage):
        model = self.talks(stage, self.frozen())
        play(stage)

        assert [count(prompt, self.SAILS) for prompt in sent(model)] == [1] * 5
        assert_each_begins_with_the_one_before(model)
        assert_kept(stage)
        assert reasons(stage) == ["append"] * 4

    def test_frozen_entry_stays_when_it_is_no_longer_active(self, stage):
        model = self.talks(stage, self.frozen())
        play(stage, LINES[0], *["Fine weather, Oren."] * 4)

        assert [count(prompt, self.SAILS) for prompt in sent(model)] == [1] * 5

    def test_edited_frozen_entry_is_sent_again(self, stage):
        model = self.talks(stage, self.frozen())
        play(stage, LINES[0])
        save_book("harbour", json.dumps(self.frozen("It sank.")), by=trusted("builder"))
        play(stage, LINES[3])

        assert (count(sent(model)[1], self.SAILS), count(sent(model)[1], "It sank.")) == (1, 1)
        assert reasons(stage) == ["append"]
        assert_kept(stage)

    def test_entries_stay_from_the_moment_their_book_is_frozen(self, stage):
        model = self.talks(stage, self.book(), dynamic_block="latest")
        play(stage, LINES[0])
        save_book("harbour", json.dumps(self.frozen()), by=trusted("builder"))
        play(stage, LINES[3], LINES[3])

        kept = [
            any(record.meta.get("of", "").startswith("lore:") for record in records_sent(turn))
            for turn in turns_of(stage)
        ]
        assert kept == [False, True, True]
        assert count(sent(model)[2], self.SAILS) == 1
        assert_kept(stage)


def records_sent(turn):
    return record_rows.records(turn.manifest.sent_ids)


class TestAllOfIt:
    """Facts, a note and lore that all stay in one conversation."""

    TEXTS = (FACTS, TestNotes.NOTE, TestLore.SAILS)

    @pytest.fixture
    def model(self, stage):
        set_note(
            stage.npc.ai.ref,
            by=trusted("builder"),
            content=TestNotes.NOTE,
            every=2,
            depth=2,
            mode="tail",
        )
        return TestLore().talks(stage, TestLore().frozen())

    def counts(self, prompt):
        """Return how often each of the texts is in a prompt."""
        return [count(prompt, text) for text in self.TEXTS]

    def test_next_prompt_with_staying_texts_is_the_same_after_a_restart(self, stage, model):
        play(stage)
        before = stage.npc.ai.preview("And tomorrow, Oren?", stage.anna)
        forget_everything()
        after = stage.npc.ai.preview("And tomorrow, Oren?", stage.anna)

        assert self.counts([message.content for message in after.messages]) == [1, 3, 1]
        assert after.sha256 == before.sha256

    def test_staying_texts_are_sent_again_after_a_compaction(self, stage, model):
        play(stage)
        room = conversations.conversations_of(stage.npc.ai.ref)[0]
        history = windows(room.id).history
        summary = NewRecord(kind=RecordKind.SUMMARY, role="system", body="They spoke of boats.")
        begin_segment(room, summary, summarised=history, first_kept=history.stop - 2)
        play(stage, LINES[0], LINES[1])

        assert [self.counts(prompt) for prompt in sent(model)[-2:]] == [[1, 1, 1], [1, 1, 1]]
        assert reasons(stage)[-2:] == ["compaction", "append"]
        assert_kept(stage)

    def test_persistent_texts_are_sent_again_after_they_left_the_history(self, stage, model):
        stage.talks_with(
            lambda request: "A long answer about nothing. " * 12,
            context_tokens=1400,
            dynamic_block="on_change",
            compaction=CompactionSettings(enabled=False),
        )
        play(stage, *LINES * 3)

        assert max(turn.manifest.cut for turn in turns_of(stage)) > 0
        assert self.counts(sent(stage.model)[-1])[0] == 1
        assert "step_trim" in reasons(stage)
        assert_kept(stage)

    def test_staying_texts_are_erased_with_their_conversation(self, stage, model):
        stage.whispers(stage.anna, LINES[0])
        stage.whispers(stage.anna, LINES[1])
        erase_private(str(stage.anna.id), by=trusted("Mira"))
        stage.whispers(stage.anna, "Hello, Oren.")

        prompts = sent(model)
        assert [count(prompt, TestLore.SAILS) for prompt in prompts] == [1, 1, 0]
        assert [count(prompt, "Who whispers") for prompt in prompts] == [1, 1, 1]

    def test_staying_texts_precede_each_event_when_two_speak_at_once(self, stage, model):
        stage.talks_with(lambda request: "Aye.", delay_seconds=5, dynamic_block="on_change")
        stage.says(stage.anna, LINES[0])
        stage.says(stage.ben, LINES[1])
        for _ in range(3):
            stage.passes(6)
        play(stage, LINES[2])
        stage.passes(6)

        prompt = sent(stage.model)[-1]
        for who, line in (("Anna", LINES[0]), ("Ben", LINES[1])):
            [at] = [index for index, text in enumerate(prompt) if line in text]
            assert count(prompt[max(0, at - 3) : at], f"Who speaks: {who}") == 1
        assert_kept(stage)
