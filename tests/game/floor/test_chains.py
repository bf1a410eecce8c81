"""How long NPCs answer each other without a person."""

import pytest
from twisted.internet.task import Clock

from evennia_ai.game.senses.events import MOST_ROOMS, Chains, Event


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
