"""An ended turn is freed at once, without waiting for the garbage collector.

While a model thinks, the collector freezes all objects, and examines them again only once a day.
"""

import gc
from collections import Counter

from evennia_ai.engine.compose import Composition
from evennia_ai.engine.history.records import Record, RecordKind
from evennia_ai.engine.prompt.prompt import Prompt
from evennia_ai.npc.mind.pending_answer import PendingAnswer
from evennia_ai.npc.turn.turn import Turn

BIG = (Turn, PendingAnswer, Composition, Prompt)


def test_ended_turn_is_freed_without_the_garbage_collector(stage):
    stage.talks_with("Aye.", delay_seconds=2.0)
    gc.collect()
    gc.disable()
    try:
        stage.says(stage.anna, "Oren, will you take me over?")
        under_way = Counter(type(one) for one in gc.get_objects() if type(one) in BIG)
        stage.passes(2.0)
        left = [type(one).__name__ for one in gc.get_objects() if type(one) in BIG]
    finally:
        gc.enable()
    assert under_way[Turn] == 1
    assert "Aye." in stage.screen_of(stage.anna)[-1]
    assert left == []


def test_facts_of_past_prompts_are_in_no_reference_cycle(stage):
    stage.talks_with(lambda _: "Aye.")
    before = _facts()
    for speaker in (stage.anna, stage.ben) * 2:  # each prompt has other facts
        stage.says(speaker, "Oren, will you take me over?")
    # The test's transaction refers to all of them, so only references between them are examined.
    facts = sorted(_facts(but=before), key=lambda one: one.seq)
    assert [bool(one.memo) for one in facts] == [False, False, False, True]


def _facts(but=()):
    """Return the facts of prompts in memory, without those that existed before."""
    known = set(map(id, but))
    found = (one for one in gc.get_objects() if type(one) is Record and id(one) not in known)
    return [one for one in found if one.kind is RecordKind.CONTEXT_BLOCK]
