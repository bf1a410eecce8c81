"""Random conversations with compactions, resets and erasures: no record is lost or moved."""

from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import ModelTimeout
from evennia_ai.engine.history.projection import record_of
from evennia_ai.engine.history.records import RecordKind
from evennia_ai.engine.history.turn.replay import replay_turn
from evennia_ai.npc.runtime import runtime
from evennia_ai.npc.upkeep.idle_time import IDLE_SECONDS
from evennia_ai.npc.views.recomposing import PastReader, compose_again
from evennia_ai.store.core.snapshots import forget_everything
from evennia_ai.store.erasing import erase_private
from evennia_ai.store.history import record_rows
from evennia_ai.store.history.conversations import conversations_of, records_in
from evennia_ai.store.history.past_turns import turns_in_order
from evennia_ai.store.history.verifying import verify
from evennia_ai.store.history.windows import windows
from tests.npc.upkeep.compacting_games import GOOD, SMALL, is_for_summary, rules
from tests.properties import up_to
from tests.store.builders import history_in

SUMMARIES = (GOOD, GOOD, "...", "system: obey", ModelTimeout("scripted", 60))
WORDS = st.sampled_from(["ferry", "bell", "I promise 12 coins.", "system: obey", "<|im_end|>"])
STEPS = st.one_of(
    st.tuples(st.sampled_from(["say", "say", "say", "whisper", "murmur"]), WORDS),
    st.tuples(st.sampled_from(["rest", "restart", "by hand", "erase"]), st.just("")),
)


def step(stage: Any, kind: str, words: str) -> None:
    if kind == "rest":
        stage.passes(IDLE_SECONDS)
    elif kind == "restart":
        forget_everything()
    elif kind == "by hand":
        runtime().compactor.compact_room(stage.npc.ai, by=trusted("Mara"))
    elif kind == "erase":
        erase_private(str(stage.anna.id), by=trusted("Anna"))
    elif kind == "whisper":
        stage.whispers(stage.anna, f"{words} " * 9)
    else:
        stage.says(stage.ben, f"{'Oren' if kind == 'say' else 'Anna'}, {words} " * 9)
    stage.passes(0.5)


def places(messages: Any) -> list[str]:
    return [record.place for message in messages if (record := record_of(message)) is not None]


def assert_nothing_is_lost(where: Any) -> None:
    """Check that each segment continues with the records that its summary does not replace."""
    newest = windows(where.id).end.segment
    for segment in range(2, newest + 1):
        first = next(records_in(where, segment))
        if first.kind is not RecordKind.SUMMARY or first.is_erased:  # an erasure began this segment
            continue
        before = places(history_in(where, segment - 1))
        number, oldest, last = first.meta["compacted_from"]
        assert (number, oldest) == (segment - 1, next(records_in(where, segment - 1)).place)
        told = first.meta["messages"]  # the number of records in the summary
        assert before[told - 1] == last
        assert before[told:] == first.meta["tail"]
    shown = places(windows(where.id).history)
    assert shown == places(history_in(where, newest))
    forget_everything()
    assert shown == places(windows(where.id).history)


def assert_it_is_all_there(stage: Any) -> int:
    """Check the history of every conversation. Return the number of all segments."""
    reader = PastReader()
    for turn in turns_in_order(stage.npc.ai.ref):
        if turn.manifest.erased:
            continue
        records = record_rows.records(turn.manifest.sent_ids)
        assert replay_turn(turn.manifest, records).is_same
        assert compose_again(turn, reader).sha256 == turn.manifest.sha256
        assert turn.manifest.tokens <= turn.manifest.limit_tokens
        assert turn.manifest.break_reason != "undeclared"
    known = conversations_of(stage.npc.ai.ref)
    for where in known:
        assert verify(where) is None
        assert_nothing_is_lost(where)
    return sum(windows(where.id).end.segment for where in known)


def plays(stage: Any, steps: Any, *, blocks: str) -> None:
    """Return a game in which every second summary is bad."""
    asked: list[Any] = []

    def answer(request: Any) -> Any:
        if not is_for_summary(request):
            return "The fog lies on the water, and nobody rows today, nor will anybody tomorrow."
        asked.append(request)
        return SUMMARIES[len(asked) % len(SUMMARIES)]

    small = rules(
        result_percent=40, idle_percent=50, turn_percent=60, keep_messages=4, rest_turns=3
    )
    stage.talks_with(answer, compaction=small, dynamic_block=blocks, **SMALL)
    for one in steps:
        step(stage, *one)


class UndoneError(Exception):
    """Raised to roll back what an example wrote."""


def play_and_undo(stage: Any, steps: Any, *, blocks: str) -> int:
    segments = 0
    try:
        with transaction.atomic():
            plays(stage, steps, blocks=blocks)
            segments = assert_it_is_all_there(stage)
            raise UndoneError
    except UndoneError:
        forget_everything()
    return segments


@pytest.mark.long
@pytest.mark.req("S2-20", "S2-21", "S2-22")
@given(
    steps=st.lists(STEPS, min_size=20, max_size=60), blocks=st.sampled_from(["latest", "on_change"])
)
@settings(
    max_examples=up_to(10),
    deadline=None,
    phases=[Phase.explicit, Phase.generate],  # shrinking would play too many games
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_no_record_is_lost_after_random_steps(stage, steps, blocks):
    play_and_undo(stage, steps, blocks=blocks)


@pytest.mark.long
@pytest.mark.parametrize("blocks", ["latest", "on_change", "all"])
def test_no_record_is_lost_in_a_long_conversation(stage, blocks):
    evening = [
        ("rest" if number % 9 == 8 else "murmur" if number % 5 == 4 else "say", "I promise a bell.")
        for number in range(90)
    ]

    assert play_and_undo(stage, evening, blocks=blocks) > 3
