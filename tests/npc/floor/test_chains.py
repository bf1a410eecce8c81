"""How long NPCs answer each other without a person, and what continues such an exchange."""

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


def test_chain_is_not_over_in_a_room_without_words(chains):
    assert not chains.is_over("2")


def test_chain_is_over_when_npcs_have_talked_for_the_allowed_time(chains, clock):
    chains.heard(said())
    for hops in range(1, 5):
        clock.advance(3)
        chains.heard(said(hops))
    assert chains.is_over("2")
    assert not chains.is_over("3")


def test_words_of_a_person_begin_a_new_chain(chains, clock):
    chains.heard(said())
    clock.advance(9)
    chains.heard(said(1))
    chains.heard(said())
    clock.advance(9)
    chains.heard(said(1))
    assert not chains.is_over("2")


def test_chain_restarts_when_an_npc_speaks_after_a_long_silence(chains, clock):
    chains.heard(said(1))
    clock.advance(11)
    assert chains.is_over("2")
    chains.heard(said(1))
    assert not chains.is_over("2")


def test_whispers_and_happenings_do_not_begin_a_new_chain(chains, clock):
    chains.heard(said())
    clock.advance(6)
    chains.heard(said(kind="whisper", private=True))
    chains.heard(said(kind="arrive"))
    clock.advance(6)
    assert chains.is_over("2")


def test_chains_forget_rooms_beyond_the_limit(chains):
    for number in range(MOST_ROOMS + 5):
        chains.heard(said(room_ref=str(number)))
    assert len(chains._of_room) == MOST_ROOMS


LINE = Line(player_ref="1")
ANSWER = "She leaves at the slack of noon."


@pytest.mark.parametrize(
    ("text", "fields", "seconds", "hops"),
    [
        # Any words within MOMENT_SECONDS after the NPC continue its line.
        ("Oren, hear, hear!", {}, 0.0, 3),
        ("Oren, hear, hear!", {}, MOMENT_SECONDS, 3),
        ("Oren, hear, hear!", {"kind": "pose"}, 1.0, 3),
        ("Oren, hear, hear!", {"kind": "whisper", "private": True}, 1.0, 3),
        ("It growls.", {"kind": "growl", "wants_answer": True}, 1.0, 3),
        # Words that repeat the NPC continue its line later and in other rooms too.
        (ANSWER, {}, 9.0, 3),
        (f'Oren said: "{ANSWER.upper()}"', {}, 9.0, 3),
        ("... the slack of noon!", {}, 9.0, 3),
        (f"The radio says {ANSWER}", {"room_ref": "3"}, 9.0, 3),
        # Other words, later or in another room, do not continue the line.
        ("Oren, nine o'clock and all is well!", {}, MOMENT_SECONDS + 0.1, 0),
        ("Oren, nine o'clock and all is well!", {"room_ref": "3"}, 0.0, 0),
        ("At noon.", {}, 9.0, 0),
        (ANSWER, {}, 10.1, 0),
        # A person's words and an arrival do not continue the line.
        (ANSWER, {"unplayed": False}, 0.0, 0),
        ("The parrot comes in.", {"kind": "arrive"}, 0.0, 0),
    ],
)
def test_unplayed_speaker_continues_an_npc_line_when_soon_after_or_repeating(
    chains, clock, text, fields, seconds, hops
):
    chains.spoke("2", ANSWER, speaker_ref="9", hops=2, line=LINE)
    clock.advance(seconds)
    heard = chains.continued(said(text=text, **{"unplayed": True, **fields}))
    assert heard.hops == hops
    assert heard.line is (LINE if hops else None)


def test_unplayed_speaker_continues_the_newest_of_several_npc_lines(chains, clock):
    chains.spoke("2", "Aye.", speaker_ref="9", hops=3, line=None)
    clock.advance(1)
    chains.spoke("2", "No.", speaker_ref="9", hops=1, line=LINE)
    assert chains.continued(said(unplayed=True)).hops == 2


def test_chains_forget_the_oldest_lines_beyond_the_limit(chains):
    chains.spoke("2", ANSWER, speaker_ref="9", hops=1, line=LINE)
    for at in range(MOST_SPOKEN):
        chains.spoke("3", f"Aye {at}.", speaker_ref="9", hops=1, line=LINE)
    assert chains.continued(said(text=ANSWER, unplayed=True)).hops == 0


def test_unplayed_speaker_continues_another_unplayed_one_but_not_itself(chains, clock):
    chains.spoke("2", ANSWER, speaker_ref="9", hops=1, line=LINE)
    clock.advance(4)
    assert chains.continued(said(text="Squawk!", unplayed=True)).hops == 2
    clock.advance(4)
    assert chains.continued(said(text="Squawk!", unplayed=True)).hops == 0
    doll = said(text="I love you!", speaker_ref="7", unplayed=True)
    assert chains.continued(doll).hops == 3
    assert chains.continued(doll).hops == 3
