"""Random conversations with staying texts: every sent prompt can be rebuilt."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.history.records import NewRecord, RecordKind
from evennia_ai.engine.history.turn.replay import replay_turn
from evennia_ai.engine.lorebook.book import BOOK_MODES
from evennia_ai.engine.prompt.components import GAME
from evennia_ai.engine.prompt.notes import NOTE_MODES
from evennia_ai.engine.prompt.persistent_texts import BLOCKS_MODES
from evennia_ai.npc.views.recomposing import PastReader, compose_again
from evennia_ai.store.authored.lorebooks import LOREBOOKS, save_book
from evennia_ai.store.authored.notes import set_note
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.history import conversations, record_rows
from evennia_ai.store.history.conversations import begin_segment
from evennia_ai.store.history.past_turns import turns_in_order
from evennia_ai.store.history.windows import windows
from tests.npc.scripted_games import an_entry
from tests.properties import up_to

WORDS = st.sampled_from(["ferry", "bell", "tide", "fare", "who", "{{user}}", "word " * 60])
LINES = st.lists(WORDS, min_size=1, max_size=4).map(" ".join)
STEPS = st.one_of(
    st.tuples(st.just("say"), st.booleans(), LINES),
    st.tuples(st.just("say"), st.booleans(), LINES),
    st.tuples(st.just("say two"), st.booleans(), LINES),
    st.tuples(st.just("facts"), st.booleans(), st.sampled_from(BLOCKS_MODES)),
    st.tuples(st.just("note"), st.booleans(), st.sampled_from(NOTE_MODES)),
    st.tuples(st.just("lore"), st.booleans(), st.sampled_from(BOOK_MODES)),
    st.tuples(st.just("compact"), st.booleans(), st.just("")),
    st.tuples(st.just("restart"), st.booleans(), st.just("")),
)
SMALL = {"context_tokens": 900, "reply_tokens": 100}


class Player:
    """Does random steps, and compares the next prompt before and after each restart."""

    def __init__(self, stage: Any) -> None:
        self.stage = stage
        self.facts(True, "on_change")
        self.note(True, "tail")
        self.lore(True, "frozen")
        LOREBOOKS.assign("harbour", GAME, by=trusted("builder"))

    def say(self, first: bool, line: str) -> None:
        speaker = self.stage.anna if first else self.stage.ben
        self.stage.says(speaker, f"Oren, {line}?")
        self.settle()

    def say_two(self, first: bool, line: str) -> None:
        for speaker in (self.stage.anna, self.stage.ben):
            self.stage.says(speaker, f"Oren, {line}?")
        self.settle()

    def settle(self) -> None:
        """Wait until nothing runs or waits."""
        for _ in range(6):
            self.stage.passes(8)
        assert not self.stage.npc.ai.is_busy

    def facts(self, first: bool, mode: str) -> None:
        delay = 0.0 if first else 5.0
        self.stage.running.runtime().close()
        conf = {**SMALL, "dynamic_block": mode}
        self.stage.talks_with(lambda request: "Aye. " * 12, delay_seconds=delay, **conf)

    def note(self, first: bool, mode: str) -> None:
        set_note(
            self.stage.npc.ai.ref,
            by=trusted("b"),
            content="{{roll:d6}} gulls.",
            every=2 + first,
            mode=mode,
        )

    def lore(self, first: bool, mode: str) -> None:
        entries = [an_entry(key, f"The {key} is {{{{roll:d6}}}}.") for key in ("ferry", "bell")]
        entries += [an_entry("tide", "@@depth 2\nThe tide is low." if first else "It is low.")]
        book = {"entries": entries, "extensions": {"evennia_ai": {"mode": mode}}}
        save_book("harbour", json.dumps(book), by=trusted("builder"))

    def compact(self, first: bool, _: str) -> None:
        for where in conversations.conversations_of(self.stage.npc.ai.ref):
            history = windows(where.id).history
            kept = history.stop - (3 if first else 6)
            if kept > history.earlier + 2:
                summary = NewRecord(kind=RecordKind.SUMMARY, role="system", body="They spoke.")
                begin_segment(where, summary, summarised=history, first_kept=kept)

    def restart(self, first: bool, _: str) -> None:
        before = self.next_prompt()
        forget_everything()
        assert self.next_prompt() == before

    def next_prompt(self) -> list[tuple[str, str]]:
        prompt = self.stage.npc.ai.preview("Oren, the bell and the ferry?", self.stage.anna)
        return [(message.role, message.content) for message in prompt.messages]


@pytest.mark.long
@pytest.mark.req("S2-03")
@given(steps=st.lists(STEPS, min_size=4, max_size=24))
@settings(
    max_examples=up_to(15),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_every_sent_prompt_can_be_replayed_with_any_staying_texts(stage, steps):
    from django.db import transaction

    try:
        with transaction.atomic():
            player = Player(stage)
            for kind, first, word in steps:
                getattr(player, kind.replace(" ", "_"))(first, word)
            player.restart(True, "")
            reader = PastReader()
            past = list(turns_in_order(stage.npc.ai.ref))
            for turn in past:
                records = record_rows.records(turn.manifest.sent_ids)
                assert replay_turn(turn.manifest, records).is_same
                assert compose_again(turn, reader).sha256 == turn.manifest.sha256
                assert turn.manifest.break_reason != "undeclared"
            raise _UndoneError
    except _UndoneError:
        stage.running.runtime().close()
        forget_everything()


class _UndoneError(Exception):
    """Raised to roll back what an example wrote."""
