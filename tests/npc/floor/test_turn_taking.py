"""Which of several NPCs answers one utterance."""

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.npc.floor.addressing import Addressed
from evennia_ai.npc.floor.bidding import MOST_ASKED, Bid, decision_on, roll_of


def a_bid(npc_ref="oren", claim=Addressed.WILLING, **fields):
    return Bid(npc_ref=npc_ref, claim=claim, **fields)


def test_decision_without_bids_lets_no_npc_speak():
    assert decision_on([]).speak == ()


def test_named_npcs_answer_in_the_order_of_their_names_in_the_text():
    late = a_bid("oren", Addressed.MEANT, named_at=20)
    soon = a_bid("brida", Addressed.MEANT, named_at=3)
    other = a_bid("ismay", Addressed.ENGAGED)
    decision = decision_on([late, other, soon])
    assert decision.speak == ("brida", "oren")
    assert decision.silent == {"ismay": "somebody else answers"}


def test_engaged_npc_that_was_addressed_last_answers():
    older = a_bid("brida", Addressed.ENGAGED, engaged_at=5.0, talkativeness=1.0, roll=0.0)
    newer = a_bid("oren", Addressed.ENGAGED, engaged_at=9.0)
    assert decision_on([older, newer, a_bid("ismay")]).speak == ("oren",)


def test_willing_npc_whose_talkativeness_exceeds_its_roll_answers():
    quiet = a_bid("brida", talkativeness=0.2, roll=0.6, spoke_at=0.0)
    talker = a_bid("oren", talkativeness=0.8, roll=0.6, spoke_at=99.0)
    assert decision_on([quiet, talker]).speak == ("oren",)


def test_longest_silent_npc_answers_when_no_talkativeness_exceeds_its_roll():
    newer = a_bid("brida", roll=0.9, spoke_at=50.0)
    older = a_bid("oren", roll=0.9, spoke_at=20.0)
    mute = a_bid("ismay", roll=0.9, spoke_at=0.0, talkativeness=0.0)
    assert decision_on([newer, older, mute]).speak == ("oren",)


def test_no_decider_is_asked_when_another_npc_answers():
    decision = decision_on([a_bid("brida", Addressed.UNDECIDED), a_bid("oren")])
    assert (decision.speak, decision.ask) == (("oren",), ())


def test_number_of_asked_deciders_is_bounded_for_many_npcs():
    bids = [a_bid(f"npc {number}", Addressed.UNDECIDED) for number in range(30)]
    decision = decision_on(bids)
    assert len(decision.ask) == MOST_ASKED
    assert len(decision.silent) == 30 - MOST_ASKED


def test_roll_depends_only_on_the_seed_and_spreads_from_0_to_1():
    assert roll_of("7", "1.4") == roll_of("7", "1.4")
    rolls = [roll_of("7", place) for place in range(200)]
    assert 0 <= min(rolls) < 0.1
    assert 0.9 < max(rolls) < 1


@given(
    st.lists(
        st.builds(
            a_bid,
            st.integers(0, 9).map(str),
            st.sampled_from([claim for claim in Addressed if claim is not Addressed.NONE]),
            named_at=st.integers(0, 5),
            engaged_at=st.integers(0, 3).map(float),
            talkativeness=st.sampled_from([0.0, 0.5, 1.0]),
            roll=st.floats(0, 0.99),
            spoke_at=st.integers(0, 3).map(float),
        ),
        unique_by=lambda bid: bid.npc_ref,
    )
)
def test_decision_lists_each_bid_once_and_lets_one_npc_speak_if_none_is_meant(bids):
    decision = decision_on(bids)
    told = [*decision.speak, *decision.ask, *decision.silent]
    assert sorted(told) == sorted(bid.npc_ref for bid in bids)
    meant = {bid.npc_ref for bid in bids if bid.claim is Addressed.MEANT}
    assert set(decision.speak) == meant or (not meant and len(decision.speak) <= 1)
    assert not (decision.speak and decision.ask)
    assert not bids or decision.speak or decision.ask
    assert decision == decision_on(bids[::-1])
