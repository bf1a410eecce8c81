"""NPCs bid for the same utterance: which of them speak, and what the others get as a reason."""

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from evennia_ai.npc.floor.addressing import Addressed
from evennia_ai.npc.floor.bidding import PATIENCE_SECONDS, YES_OF_ANOTHER, Bid, Floors
from evennia_ai.npc.senses.events import Event


class Later:
    """A stand-in for the recorder: `comes` calls the functions that `then` has queued."""

    def __init__(self):
        self.planned = []

    def then(self, do):
        self.planned.append(do)

    def comes(self):
        planned, self.planned = self.planned, []
        for do in planned:
            do()


class Npc:
    """A bidder that lists in `told` which of its methods were called, and the reasons."""

    def __init__(self):
        self.told = []
        self.asked = Deferred()

    def speak(self, *, ended=None):
        self.told.append("speaks")
        self.ended = ended

    def keep_silent(self, why):
        self.told.append(why)

    def decide(self):
        self.told.append("asked")
        return self.asked


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def later():
    return Later()


@pytest.fixture
def floors(clock, later):
    return Floors(clock, when_committed=later.then, hop_seconds=60.0)


def said(text="Well?", **fields):
    made = {"kind": "say", "speaker_ref": "1", "speaker_name": "Anna", "room_ref": "2"}
    return Event(**{**made, "text": text, **fields})


def bids(floors, claim, *refs, event=None):
    npcs = []
    for place, ref in enumerate(refs):
        npcs.append(Npc())
        bid = Bid(npc_ref=ref, claim=claim, named_at=place)
        floors.bid(event or said(), bid, npcs[-1])
    return npcs


def test_floor_is_decided_only_after_all_npcs_have_bid(floors, later):
    first, second = bids(floors, Addressed.WILLING, "7", "8")
    assert first.told == second.told == []
    later.comes()
    assert sorted(first.told + second.told) == ["somebody else answers", "speaks"]


def test_next_npc_speaks_when_the_previous_has_ended_or_took_too_long(floors, later, clock):
    first, second, third = bids(floors, Addressed.MEANT, "7", "8", "9")
    later.comes()
    assert (first.told, second.told, third.told) == (["speaks"], [], [])
    first.ended()
    assert (second.told, third.told) == (["speaks"], [])
    clock.advance(PATIENCE_SECONDS)
    assert third.told == ["speaks"]
    second.ended()
    assert third.told == ["speaks"]


def test_second_bid_of_an_npc_opens_a_new_floor(floors, later):
    bids(floors, Addressed.WILLING, "7")
    bids(floors, Addressed.WILLING, "7")
    first, second = bids(floors, Addressed.WILLING, "7", "8")
    later.comes()
    assert sorted(first.told + second.told) == ["somebody else answers", "speaks"]


def test_garbled_and_plain_words_count_as_one_utterance(floors, later):
    (first,) = bids(floors, Addressed.WILLING, "7", event=said("Mae govannen", language="elvish"))
    (second,) = bids(floors, Addressed.WILLING, "8", event=said("Xae goxaxxen", language="elvish"))
    later.comes()
    assert sorted(first.told + second.told) == ["somebody else answers", "speaks"]


def test_first_decider_that_agrees_speaks_and_the_others_are_cancelled(floors, later):
    first, second = bids(floors, Addressed.UNDECIDED, "7", "8")
    later.comes()
    second.asked.callback("")
    assert second.told == ["asked", "speaks"]
    assert first.told == ["asked", YES_OF_ANOTHER]
    assert first.asked.called


def test_no_npc_speaks_when_all_deciders_decline(floors, later):
    npcs = bids(floors, Addressed.UNDECIDED, "7", "8")
    later.comes()
    for npc in npcs:
        npc.asked.callback("the decider says no")
    assert [npc.told for npc in npcs] == [["asked", "the decider says no"]] * 2


def test_no_npc_speaks_after_floors_are_closed(floors, later):
    (npc,) = bids(floors, Addressed.WILLING, "7")
    floors.close()
    later.comes()
    assert npc.told == []
