"""Twenty players flood one NPC with lines: it still answers everybody else soon."""

import pytest

from evennia_ai.npc.recording.event_recorder import OVERFLOW
from evennia_ai.services.llm.quotas import Quota, Quotas

ATTACKERS = 20
BURST = 20
"""Lines of each attacker; in all three times as many as fit into the queue (128)."""


def number_of(request):
    return request.question.removeprefix("Oren, ")


@pytest.fixture
def model(stage):
    """A model that takes ten seconds for each reply and repeats the question in it."""
    return stage.talks_with(lambda request: f"Heard {number_of(request)}", delay_seconds=10)


@pytest.fixture(scope="module")
def _attackers(beforehand):
    """The ids of the attackers' characters, created once for this file."""
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
    """Return the questions that the model got, in order. Requests of idle time have none."""
    return [number_of(request) for request in model.requests if request.question]


@pytest.mark.long
def test_new_speaker_is_answered_within_two_turns_when_twenty_others_flood(stage, model, attackers):
    all_press(stage, attackers)
    stage.says(stage.anna, "Oren, what of me?")
    asked = len(questions(model))
    stage.passes(10)
    stage.passes(10)
    assert "what of me?" in questions(model)[asked : asked + 2]
    assert any("Heard what of me?" in line for line in stage.screen_of(stage.ben))


@pytest.mark.long
def test_new_speaker_is_answered_within_two_turns_each_time_during_a_flood(stage, model, attackers):
    all_press(stage, attackers, lines=8)
    for turn in range(6):
        stage.says(stage.anna, f"Oren, I ask {turn}")
        asked = len(questions(model))
        stage.passes(10)
        stage.passes(10)
        assert f"I ask {turn}" in questions(model)[asked : asked + 2]
        all_press(stage, attackers, lines=2)
        stage.passes(10)


@pytest.mark.req("S2-10", "S2-32")
def test_queue_is_bounded_and_overflow_is_recorded_once(stage, model, attackers):
    stage.install(model, queue_limit=3)
    for attacker in (*attackers, *attackers):
        stage.says(attacker, f"Oren, {attacker.key}")
    notes = [body for kind, _, body in stage.records() if kind == "event"]
    assert stage.npc.ai.status().now.waiting == 3
    assert notes == [OVERFLOW]


@pytest.mark.long
def test_history_keeps_all_lines_of_a_flood(stage, model, attackers):
    all_press(stage, attackers)
    heard = [body for kind, _, body in stage.records() if kind == "user"]
    assert len(heard) == ATTACKERS * BURST


def test_lines_of_a_flooding_speaker_get_one_answer_after_the_running_one(stage, model, attackers):
    all_press(stage, attackers[:1])
    for _ in range(12):
        stage.passes(10)
    others = " ".join(f"Oren, Attacker0 {line}" for line in range(1, BURST))
    assert questions(model) == ["Attacker0 0", others.removeprefix("Oren, ")]


def test_flooding_speakers_are_answered_in_rotation(stage, model, attackers):
    for _ in range(9):
        all_press(stage, attackers[:3], lines=2)
        stage.passes(10)
    who = [question.split()[0] for question in questions(model)]
    assert {frozenset(who[at : at + 3]) for at in range(0, 9, 3)} == {
        frozenset({"Attacker0", "Attacker1", "Attacker2"})
    }


def test_flooding_speaker_still_gets_some_turns_when_others_ask(stage, model, attackers):
    all_press(stage, attackers[:1], lines=8)
    asked = len(questions(model))
    for turn in range(14):
        all_press(stage, attackers[:1], lines=2)
        stage.says(stage.anna if turn % 2 else stage.ben, f"Oren, I ask {turn}")
        stage.passes(10)
    pressing = [one for one in questions(model)[asked:] if one.startswith("Attacker0")]
    assert len(pressing) >= 3


def test_full_queue_of_one_speaker_does_not_drop_lines_of_others(stage, model, attackers):
    stage.install(model, queue_limit=10, speaker_limit=10)
    all_press(stage, attackers[:1], lines=20)
    for number in range(4):
        stage.says(stage.player(f"Guest{number}"), f"Oren, guest {number}")
    for _ in range(12):
        stage.passes(10)
    guests = [one for one in questions(model) if one.startswith("guest")]
    assert guests == [f"guest {number}" for number in range(4)]


def test_lines_over_a_call_limit_are_not_queued(stage, attackers):
    one_call = Quotas(player=Quota(calls_per_minute=1), npc=Quota(), game=Quota())
    slow = stage.talks_with("Aye.", delay_seconds=10, limits=one_call)
    all_press(stage, attackers[:1], lines=5)
    assert stage.npc.ai.status().now.waiting == 0
    assert len(slow.requests) == 1


@pytest.mark.long
def test_uncommitted_lines_of_one_speaker_survive_a_flood_by_others(stage, model, attackers):
    """Each attacker says sixty lines before the recorder commits any of them."""
    for attacker in attackers:
        for line in range(60):
            attacker.at_say(f"Oren, {attacker.key} {line}", msg_self=True)
    stage.anna.at_say("Oren, what of me?", msg_self=True)
    for _ in range(30):
        stage.passes()
    assert "Oren, what of me?" in [body for _, name, body in stage.records() if name == "Anna"]
    stage.passes(10)
    assert "what of me?" in questions(model)[:3]


@pytest.mark.long
def test_other_npc_answers_at_once_during_a_flood(stage, model, attackers):
    brida = stage.make("Brida", "evennia_ai.typeclasses.AINPC")
    assert brida.ai.enabled
    all_press(stage, attackers, lines=8)
    before = len(model.requests)
    stage.says(stage.anna, "Brida, and you?")
    assert [request.speaker for request in model.requests[before:]] == ["Brida"]
