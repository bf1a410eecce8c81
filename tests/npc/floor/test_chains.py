"""How long NPCs answer each other without a person."""

import pytest
from twisted.internet.task import Clock

from evennia_ai.npc.senses.events import (
    MOMENT_SECONDS,
    MOST_ROOMS,
    MOST_SPOKEN,
    Chains,
    Event,
    Line,
)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def chains(clock):
    return Chains(seconds=clock.seconds, budget_seconds=10.0)


def said(hops=0, room_ref="2", **fields):
    made = {"kind": "say", "speaker_ref": "1", "speaker_name": "Anna", "text": "Well."}
    return Event(**{**made, "hops": hops, "room_ref": room_ref, **fields})


def test_a_room_in_which_nothing_was_said_has_no_chain(chains):
    assert not chains.is_over("2")


def test_it_is_over_when_npcs_have_talked_for_long(chains, clock):
    chains.heard(said())
    for hops in range(1, 5):
        clock.advance(3)
        chains.heard(said(hops))
    assert chains.is_over("2")
    assert not chains.is_over("3")


def test_a_persons_word_begins_anew(chains, clock):
    chains.heard(said())
    clock.advance(9)
    chains.heard(said(1))
    chains.heard(said())
    clock.advance(9)
    chains.heard(said(1))
    assert not chains.is_over("2")


def test_after_a_long_silence_npcs_may_talk_again(chains, clock):
    chains.heard(said(1))
    clock.advance(11)
    assert chains.is_over("2")
    chains.heard(said(1))
    assert not chains.is_over("2")


def test_what_is_whispered_or_happens_begins_nothing(chains, clock):
    chains.heard(said())
    clock.advance(6)
    chains.heard(said(kind="whisper", private=True))
    chains.heard(said(kind="arrive"))
    clock.advance(6)
    assert chains.is_over("2")


def test_rooms_are_forgotten_when_there_are_too_many(chains):
    for number in range(MOST_ROOMS + 5):
        chains.heard(said(room_ref=str(number)))
    assert len(chains._of_room) == MOST_ROOMS


LINE = Line(player_ref="1")
ANSWER = "She leaves at the slack of noon."


@pytest.mark.parametrize(
    ("text", "fields", "seconds", "hops"),
    [
        # In a moment after the NPC, whatever is said.
        ("Oren, hear, hear!", {}, 0.0, 3),
        ("Oren, hear, hear!", {}, MOMENT_SECONDS, 3),
        ("Oren, hear, hear!", {"kind": "pose"}, 1.0, 3),
        ("Oren, hear, hear!", {"kind": "whisper", "private": True}, 1.0, 3),
        ("It growls.", {"kind": "growl", "wants_answer": True}, 1.0, 3),
        # Later, or anywhere, the words of the NPC.
        (ANSWER, {}, 9.0, 3),
        (f'Oren said: "{ANSWER.upper()}"', {}, 9.0, 3),
        ("... the slack of noon!", {}, 9.0, 3),
        (f"The radio says {ANSWER}", {"room_ref": "3"}, 9.0, 3),
        # Something else, later or elsewhere: it begins a chain.
        ("Oren, nine o'clock and all is well!", {}, MOMENT_SECONDS + 0.1, 0),
        ("Oren, nine o'clock and all is well!", {"room_ref": "3"}, 0.0, 0),
        ("At noon.", {}, 9.0, 0),
        (ANSWER, {}, 10.1, 0),
        # A person, and who came.
        (ANSWER, {"unplayed": False}, 0.0, 0),
        ("The parrot comes in.", {"kind": "arrive"}, 0.0, 0),
    ],
)
def test_unplayed_speaker_continues_what_an_npc_said_and_nothing_else(
    chains, clock, text, fields, seconds, hops
):
    chains.spoke("2", ANSWER, speaker_ref="9", hops=2, line=LINE)
    clock.advance(seconds)
    heard = chains.continued(said(text=text, **{"unplayed": True, **fields}))
    assert heard.hops == hops
    assert heard.line is (LINE if hops else None)


def test_unplayed_speaker_continues_the_newest_of_several_lines(chains, clock):
    chains.spoke("2", "Aye.", speaker_ref="9", hops=3, line=None)
    clock.advance(1)
    chains.spoke("2", "No.", speaker_ref="9", hops=1, line=LINE)
    assert chains.continued(said(unplayed=True)).hops == 2


def test_chains_remember_a_bounded_number_of_lines(chains):
    chains.spoke("2", ANSWER, speaker_ref="9", hops=1, line=LINE)
    for at in range(MOST_SPOKEN):
        chains.spoke("3", f"Aye {at}.", speaker_ref="9", hops=1, line=LINE)
    assert chains.continued(said(text=ANSWER, unplayed=True)).hops == 0


def test_another_unplayed_speaker_continues_the_first_one_and_nobody_continues_himself(
    chains, clock
):
    chains.spoke("2", ANSWER, speaker_ref="9", hops=1, line=LINE)
    clock.advance(4)
    assert chains.continued(said(text="Squawk!", unplayed=True)).hops == 2
    clock.advance(4)
    assert chains.continued(said(text="Squawk!", unplayed=True)).hops == 0
    doll = said(text="I love you!", speaker_ref="7", unplayed=True)
    assert chains.continued(doll).hops == 3
    assert chains.continued(doll).hops == 3
