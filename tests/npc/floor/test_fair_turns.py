"""One NPC among many who speak: nobody who presses keeps it from anybody else."""

import pytest

from evennia_ai.npc.recording.event_recorder import OVERFLOW
from evennia_ai.services.llm.quotas import Quota, Quotas

ATTACKERS = 20
BURST = 20
"""Lines of each; together three times what waits (128)."""


def number_of(request):
    return request.question.removeprefix("Oren, ")


@pytest.fixture
def model(stage):
    """A model that takes ten seconds for each reply; NPCs tell what they heard."""
    return stage.talks_with(lambda request: f"Heard {number_of(request)}", delay_seconds=10)


@pytest.fixture(scope="module")
def _attackers(beforehand):
    """Their ids."""
    return beforehand(
        lambda stage: [stage.player(f"Attacker{number}").id for number in range(ATTACKERS)]
    )


@pytest.fixture
def attackers(stage, _attackers):
    return [stage.who(known) for known in _attackers]


def all_press(stage, attackers, *, lines=BURST):
    for line in range(lines):
        for attacker in attackers:
            attacker.at_say(f"Oren, {attacker.key} {line}", msg_self=True)
        stage.passes()


def questions(model):
    """What was answered, in order; an NPC that has time also remembers, and is asked nothing."""
    return [number_of(request) for request in model.requests if request.question]


@pytest.mark.long
def test_the_twenty_first_is_answered_within_two_turns(stage, model, attackers):
    all_press(stage, attackers)
    stage.says(stage.anna, "Oren, what of me?")
    asked = len(questions(model))
    stage.passes(10)
    stage.passes(10)
    assert "what of me?" in questions(model)[asked : asked + 2]
    assert any("Heard what of me?" in line for line in stage.screen_of(stage.ben))


@pytest.mark.long
def test_whoever_comes_while_many_press_is_answered_within_two_turns_each_time(
    stage, model, attackers
):
    all_press(stage, attackers, lines=8)
    for turn in range(6):
        stage.says(stage.anna, f"Oren, I ask {turn}")
        asked = len(questions(model))
        stage.passes(10)
        stage.passes(10)
        assert f"I ask {turn}" in questions(model)[asked : asked + 2]
        all_press(stage, attackers, lines=2)
        stage.passes(10)


@pytest.mark.long
@pytest.mark.req("S2-10", "S2-32")
def test_what_waits_is_bounded_and_what_is_too_much_recorded_once(stage, model, attackers):
    all_press(stage, attackers)
    notes = [body for kind, _, body in stage.records() if kind == "event"]
    assert stage.npc.ai.status().waiting == 128
    assert notes == [OVERFLOW]


@pytest.mark.req("S2-32")
def test_what_many_say_once_is_bounded_too(stage, model, attackers):
    stage.install(model, queue_limit=3)
    for attacker in attackers:
        stage.says(attacker, f"Oren, {attacker.key}")
    assert stage.npc.ai.status().waiting == 3


@pytest.mark.long
def test_all_that_was_said_stays_in_the_history_as_heard(stage, model, attackers):
    all_press(stage, attackers)
    heard = [body for kind, _, body in stage.records() if kind == "user"]
    assert len(heard) == ATTACKERS * BURST


def test_the_newest_words_of_a_speaker_stand_for_the_older_ones(stage, model, attackers):
    all_press(stage, attackers[:1])
    for _ in range(12):
        stage.passes(10)
    assert questions(model) == [f"Attacker0 {line}" for line in (0, *range(BURST - 8, BURST))]


def test_those_who_press_are_answered_in_turn(stage, model, attackers):
    all_press(stage, attackers[:3], lines=5)
    for _ in range(16):
        stage.passes(10)
    who = [question.split()[0] for question in questions(model)]
    assert {frozenset(who[at : at + 3]) for at in range(0, 9, 3)} == {
        frozenset({"Attacker0", "Attacker1", "Attacker2"})
    }


def test_those_who_press_are_not_kept_waiting_for_ever(stage, model, attackers):
    all_press(stage, attackers[:1], lines=8)
    asked = len(questions(model))
    for turn in range(12):
        stage.says(stage.anna if turn % 2 else stage.ben, f"Oren, I ask {turn}")
        stage.passes(10)
    pressing = [one for one in questions(model)[asked:] if one.startswith("Attacker0")]
    assert len(pressing) >= 3


def test_a_full_share_costs_nobody_else_a_place(stage, model, attackers):
    stage.install(model, queue_limit=10, speaker_limit=10)
    all_press(stage, attackers[:1], lines=20)
    for number in range(4):
        stage.says(stage.player(f"Guest{number}"), f"Oren, guest {number}")
    for _ in range(12):
        stage.passes(10)
    guests = [one for one in questions(model) if one.startswith("guest")]
    assert guests == [f"guest {number}" for number in range(4)]


def test_at_a_limit_words_take_no_place_among_what_waits(stage, attackers):
    one_call = Quotas(player=Quota(calls_per_minute=1), npc=Quota(), game=Quota())
    slow = stage.talks_with("Aye.", delay_seconds=10, limits=one_call)
    all_press(stage, attackers[:1], lines=5)
    assert stage.npc.ai.status().waiting == 0
    assert len(slow.requests) == 1


@pytest.mark.long
def test_what_is_not_recorded_yet_is_kept_fairly(stage, model, attackers):
    """Sixty lines each in one moment, before anything of it is committed."""
    for attacker in attackers:
        for line in range(60):
            attacker.at_say(f"Oren, {attacker.key} {line}", msg_self=True)
    stage.anna.at_say("Oren, what of me?", msg_self=True)
    for _ in range(30):
        stage.passes()
    assert "Oren, what of me?" in [body for _, name, body in stage.records() if name == "Anna"]
    stage.passes(10)
    assert "what of me?" in questions(model)[:3]


def test_another_npc_hears_nothing_of_it(stage, model, attackers):
    brida = stage.make("Brida", "evennia_ai.typeclasses.AINPC")
    assert brida.ai.enabled
    all_press(stage, attackers, lines=8)
    before = len(model.requests)
    stage.says(stage.anna, "Brida, and you?")
    assert [request.speaker for request in model.requests[before:]] == ["Brida"]
