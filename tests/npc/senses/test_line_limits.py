"""Limits of how many NPCs and model calls one line may cause. Its player pays for all of them."""

import pytest
from twisted.internet.task import Clock

from evennia_ai.npc.senses.events import SAME_SECONDS, TICK, Event, Lines, payer_of
from evennia_ai.services.llm.quotas import Quota, Quotas
from evennia_ai.store.model_calls import use_by_each

NPCS = ("Oren", "Brida", "Ismay", "Karl", "Tomas", "Wenna", "Ulf", "Rika", "Sven", "Maud")
ALL = ", ".join(NPCS)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def lines(clock):
    return Lines(seconds=clock.seconds, most_npcs=2, most_calls=3)


def said(**fields):
    made = {"kind": "say", "speaker_ref": "1", "speaker_name": "Anna", "text": "Well."}
    return Event(**{**made, "room_ref": "2", **fields})


def test_npcs_that_hear_the_same_line_share_its_counts(lines):
    one, other = lines.traced(said(), npc_ref="5"), lines.traced(said(), npc_ref="6")
    assert one.line is other.line
    assert one.line.player_ref == "1"


def test_same_words_said_again_are_another_line(lines, clock):
    first = lines.traced(said(), npc_ref="5")
    assert lines.traced(said(), npc_ref="5").line is not first.line
    clock.advance(SAME_SECONDS + 1)
    assert lines.traced(said(), npc_ref="6").line is not first.line


def test_reply_of_an_npc_belongs_to_the_line_that_led_to_it(lines):
    first = lines.traced(said(), npc_ref="5")
    answer = said(speaker_ref="5", speaker_rank="NPC", hops=1, line=first.line)
    assert lines.traced(answer, npc_ref="6").line is first.line
    assert payer_of(answer) == "1"


def test_words_of_an_npc_without_a_line_have_no_payer(lines):
    alone = lines.traced(said(speaker_ref="5", speaker_rank="NPC", hops=1), npc_ref="6")
    assert payer_of(alone) == ""


def test_ticks_of_two_npcs_do_not_share_a_line(lines):
    tick = said(kind=TICK, speaker_ref="", speaker_name="", speaker_rank="")
    assert lines.traced(tick, npc_ref="5").line is not lines.traced(tick, npc_ref="6").line


def test_why_silent_refuses_npcs_beyond_the_limit_of_a_line(lines):
    heard = lines.traced(said(), npc_ref="5")
    whys = [lines.why_silent(heard, npc_ref=ref) for ref in ("5", "6", "7", "5")]
    assert [bool(why) for why in whys] == [False, False, True, False]
    assert "EVENNIA_AI_LINE_NPCS" in whys[2]


def test_why_spent_refuses_calls_beyond_the_limit_of_a_line(lines):
    heard = lines.traced(said(), npc_ref="5")
    assert not lines.why_spent(heard)
    heard.line.calls = 3
    assert "EVENNIA_AI_LINE_CALLS" in lines.why_spent(heard)
    assert lines.why_silent(heard, npc_ref="5")


# Whole turns


@pytest.fixture(scope="module")
def _townsfolk(beforehand):
    """Make nine NPCs in addition to Oren, once for this file."""
    beforehand(lambda stage: [stage.make(key, "evennia_ai.typeclasses.AINPC") for key in NPCS[1:]])


@pytest.fixture
def town(_townsfolk, stage):
    """A function that installs a model with which each NPC addresses all others."""
    return lambda **conf: stage.talks_with(lambda request: f"{ALL}, what now?", **conf)


def goes_on(stage, seconds=15):
    for _ in range(seconds):
        stage.passes(1)


def answers(model):
    return [request for request in model.requests if request.question]


@pytest.mark.long
def test_one_line_causes_at_most_line_calls_model_calls(stage, town):
    model = town(line_npcs=10, line_calls=20)
    stage.says(stage.anna, f"{ALL}, all of you!")
    goes_on(stage)
    assert len(answers(model)) == 20


def test_one_line_is_answered_by_at_most_line_npcs_npcs(stage, town):
    model = town(line_npcs=4, line_calls=40, hop_limit=1)
    stage.says(stage.anna, f"{ALL}, all of you!")
    goes_on(stage)
    assert len({request.speaker for request in answers(model)}) == 4


def test_next_line_has_its_own_limits(stage, town):
    model = town(line_npcs=4, line_calls=6)
    stage.says(stage.anna, f"{ALL}, all of you!")
    goes_on(stage)
    stage.says(stage.ben, "Oren, and me?")
    goes_on(stage)
    assert len(answers(model)) == 12


def test_all_calls_of_a_chain_count_for_the_player_who_began_it(stage, town):
    model = town(line_npcs=4, line_calls=12)
    stage.says(stage.anna, f"{ALL}, all of you!")
    goes_on(stage)
    asked = len(answers(model))
    assert use_by_each("player_ref", 0.0)[str(stage.anna.id)].calls == asked == 12


def test_limit_of_a_player_counts_all_calls_of_a_chain(stage, town):
    five = Quotas(player=Quota(calls_per_minute=5), npc=Quota(), game=Quota())
    model = town(limits=five)
    stage.says(stage.anna, f"{ALL}, all of you!")
    goes_on(stage, seconds=30)
    assert len(answers(model)) == 5
