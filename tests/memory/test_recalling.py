"""Which memories are taken, and the verdict on each that was not."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.memory.memories import Memory, words_of
from evennia_ai.memory.recalling import (
    LEFT_OUT,
    Moment,
    Recalled,
    RecallRules,
    recalled,
    refused,
    words_said,
)
from evennia_ai.prompt.history import History
from evennia_ai.prompt.messages import Message, pending, said
from evennia_ai.prompt.tokens import ESTIMATE
from tests.memory.builders import ANNA, BEN, a_memory

ROOM = Moment(hours=1.0)
WITH_ANNA = Moment(hours=1.0, confidant_ref=ANNA)


def taken(*memories: Memory, **options: Any) -> list[int]:
    return [memory.id for memory in judged(*memories, **options).kept]


def judged(
    *memories: Memory, words: str = "", moment: Moment = ROOM, limit: int = 1000, **rules: int
) -> Recalled:
    return recalled(
        memories,
        rules=RecallRules(**rules),
        moment=moment,
        said=words_of(words),
        limit_tokens=limit,
        counter=ESTIMATE,
    )


def reason_of(told: Recalled, number: int) -> str:
    return next(v.reason for v in told.verdicts if v.item == f"memory:{number}")


def some(count: int, **fields: Any) -> list[Memory]:
    return [a_memory(f"Fact number {i}.", id=i, **fields) for i in range(1, count + 1)]


def test_without_candidates_nothing_is_recalled() -> None:
    assert judged().verdicts == ()


def test_the_best_are_taken() -> None:
    weak, strong = a_memory(id=1, importance=1), a_memory("Fire!", id=2, importance=10)
    assert taken(weak, strong, most=1) == [2]


def test_what_is_spoken_of_is_taken_first() -> None:
    rope = a_memory("Anna owes Oren a rope.", id=1)
    ferry = a_memory("The ferry leaves at dawn.", id=2)
    assert taken(rope, ferry, words="Where is the ferry?", most=1) == [2]


def test_equal_scores_go_by_the_older_one() -> None:
    assert taken(*reversed(some(3)), most=2) == [1, 2]


def test_they_stand_in_the_order_in_which_they_were_learnt() -> None:
    late = a_memory(id=1, created_at=5.0, importance=9)
    early = a_memory("Fire!", id=2, created_at=2.0)
    assert taken(late, early) == [2, 1]


def test_what_is_over_the_number_says_so_with_its_score() -> None:
    told = judged(*some(2), most=1)
    verdict = told.verdicts[1]
    assert (verdict.kept, verdict.reason) == (False, "the 1 best are taken")
    assert (verdict.cause or "").startswith("score 0.48: recency")


def test_a_taken_one_tells_its_score_and_its_tokens() -> None:
    verdict = judged(a_memory()).verdicts[0]
    assert verdict.kept
    assert verdict.reason == "score 0.48: recency 0.99, importance 0.44, relevance 0.00"
    assert verdict.tokens > 0


def test_a_share_of_nothing_takes_nothing() -> None:
    told = judged(a_memory(), share_percent=0)
    assert told.kept == ()
    assert reason_of(told, 1) == "over the share of 0 tokens"


def test_one_that_does_not_fit_is_passed_over_for_the_next() -> None:
    long = a_memory("word " * 50, id=1, importance=10)
    assert taken(long, a_memory(id=2), limit=200) == [2]


def test_what_was_whispered_never_shows_in_a_room() -> None:
    secret = a_memory(about=ANNA, learnt="private", importance=10)
    told = judged(secret)
    assert told.kept == ()
    assert reason_of(told, 1) == "learnt in private; shown only in private to who told it"


def test_what_was_whispered_shows_to_who_whispered_it() -> None:
    assert taken(a_memory(about=ANNA, learnt="private"), moment=WITH_ANNA) == [1]


def test_what_another_one_whispered_does_not() -> None:
    assert taken(a_memory(about=BEN, learnt="private"), moment=WITH_ANNA) == []


def test_a_whisper_of_nobody_shows_nowhere() -> None:
    nameless = a_memory(about="", learnt="private")
    assert taken(nameless) == taken(nameless, moment=WITH_ANNA) == []


def test_what_was_heard_aloud_shows_in_private_too() -> None:
    assert taken(a_memory(about=BEN), moment=WITH_ANNA) == [1]


def test_what_found_no_place_is_told_as_left_out() -> None:
    told = Recalled(judged=judged(a_memory()).judged, is_shown=False)
    assert (told.shown_ids, reason_of(told, 1)) == ((), LEFT_OUT)


def test_refused_ones_all_tell_the_same_reason() -> None:
    told = refused(some(2), "component semantic_memories is disabled")
    assert {verdict.reason for verdict in told.verdicts} == {
        "component semantic_memories is disabled"
    }


def test_of_a_past_turn_the_many_others_are_told_in_one_line() -> None:
    told = judged(*some(40), most=2)
    assert len(told.verdicts) == 40
    assert len(told.touched) == 2 + 12 + 1
    assert told.touched[-1].reason == "26 more memories were judged and not taken"


def test_the_newest_messages_and_their_speakers_count() -> None:
    history = History([said("user", "rope", name="Anna"), said("assistant", "ferry")])
    words = words_said(history, pending("coins", name="Ben"), messages=2)
    assert words == words_of("ferry coins Ben")


def test_what_stays_in_the_history_was_said_by_nobody() -> None:
    left = Message(role="user", content="rope", counted=False, stays=True, of="dynamic")
    history = History([said("user", "coins"), left])
    assert words_said(history, None, messages=1) == words_of("coins")


@given(
    st.lists(st.sampled_from([ANNA, BEN, ""]), max_size=12),
    st.lists(st.sampled_from(["aloud", "private"]), min_size=12, max_size=12),
    st.sampled_from([ROOM, WITH_ANNA]),
    st.integers(0, 60),
    st.integers(0, 5),
)
def test_every_candidate_has_one_verdict_and_no_whisper_is_told(
    about: list[str], learnt: list[Any], moment: Moment, limit: int, most: int
) -> None:
    memories = [
        a_memory(f"Fact {i}.", id=i, about=ref, learnt=learnt[i]) for i, ref in enumerate(about)
    ]
    told = judged(*memories, moment=moment, limit=limit * 10, most=most)
    assert [v.item for v in told.verdicts] == [memory.origin for memory in memories]
    assert len(told.kept) <= most
    assert sum(v.tokens for v in told.verdicts if v.kept) <= limit
    secret = [memory for memory in told.kept if memory.learnt == "private"]
    assert all(memory.about == moment.confidant_ref == ANNA for memory in secret)
