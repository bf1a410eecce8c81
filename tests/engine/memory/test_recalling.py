"""Recalling: what a memory counts, which are taken, and the settings that say so."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.memory.memories import Memory, compared_words
from evennia_ai.engine.memory.recalling import (
    LEFT_OUT,
    MemorySettings,
    Moment,
    Recalled,
    RecallRules,
    Score,
    read_memory,
    recall_memories,
    refuse_memories,
    scored,
)
from evennia_ai.engine.memory.scenes import words_said
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import Message, event_message, said
from evennia_ai.engine.prompt.tokens import ESTIMATE
from tests.engine.memory.builders import ANNA, BEN, a_memory

ROOM = Moment(hours=1.0)
WITH_ANNA = Moment(hours=1.0, confidant_ref=ANNA)


def taken(*memories: Memory, **options: Any) -> list[int]:
    return [memory.id for memory in judged(*memories, **options).kept]


def judged(
    *memories: Memory, words: str = "", moment: Moment = ROOM, limit: int = 1000, **rules: int
) -> Recalled:
    return recall_memories(
        memories,
        rules=RecallRules(**rules),
        moment=moment,
        said=compared_words(words),
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
    told = refuse_memories(some(2), "component semantic_memories is disabled")
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
    words = words_said(history, event_message("coins", name="Ben"), messages=2)
    assert words == compared_words("ferry coins Ben")


def test_what_stays_in_the_history_was_said_by_nobody() -> None:
    left = Message(role="user", content="rope", counted=False, stays=True, of="dynamic")
    history = History([said("user", "coins"), left])
    assert words_said(history, None, messages=1) == compared_words("coins")


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


ROPE = "Anna owes Oren a rope."
memories = st.builds(
    Memory,
    id=st.integers(1, 9),
    text=st.sampled_from([ROPE, "The ferry leaves at dawn.", "灯塔很旧", "", "!"]),
    importance=st.integers(1, 10),
    recalled_at=st.floats(0, 1e6),
)


def score_of(memory: Memory, *others: Memory, hours: float = 0.0, said: str = "") -> Score:
    return scored([memory, *others], hours=hours, said=compared_words(said))[0]


@pytest.mark.parametrize(("hours", "wanted"), [(0, 1.0), (1, 0.995), (24, 0.8867), (240, 0.3003)])
def test_recency_falls_by_half_a_percent_an_hour(hours: float, wanted: float) -> None:
    assert score_of(a_memory(), hours=hours).recency == wanted


def test_recency_counts_from_when_it_was_last_recalled() -> None:
    assert score_of(a_memory(created_at=0, recalled_at=10), hours=11).recency == 0.995


def test_a_clock_that_was_set_back_makes_nothing_more_than_new() -> None:
    assert score_of(a_memory(recalled_at=50), hours=10).recency == 1.0


@pytest.mark.parametrize(("importance", "wanted"), [(1, 0.0), (10, 1.0), (5, 0.4444)])
def test_importance_goes_from_0_to_1(importance: int, wanted: float) -> None:
    assert score_of(a_memory(importance=importance)).importance == wanted


def test_what_shares_nothing_with_what_was_said_is_not_relevant() -> None:
    assert score_of(a_memory(ROPE), said="Good evening!").relevance == 0.0


def test_more_telling_words_are_more_relevant() -> None:
    one = score_of(a_memory(ROPE), said="a rope").relevance
    two = score_of(a_memory(ROPE), said="a rope of Anna").relevance
    assert 0 < one < two < 1


def test_a_word_that_many_memories_have_tells_less() -> None:
    rare = a_memory("The lighthouse fell.", id=1)
    others = [a_memory(f"The harbour of day {day}.", id=day) for day in range(2, 9)]
    said = "the lighthouse, the harbour"
    assert (
        score_of(rare, *others, said=said).relevance
        > score_of(others[0], rare, *others[1:], said=said).relevance
    )


def test_the_score_is_the_mean_of_the_three() -> None:
    assert Score(1.0, 0.5, 0.3).total == 0.6


def test_the_score_says_what_it_is_made_of() -> None:
    told = str(Score(0.95, 0.5, 0.3))
    assert told == "score 0.58: recency 0.95, importance 0.50, relevance 0.30"


@given(st.lists(memories, max_size=5), st.floats(0, 1e6), st.text(max_size=20))
def test_every_number_stays_between_0_and_1(some: list[Memory], hours: float, said: str) -> None:
    for score in scored(some, hours=hours, said=compared_words(said)):
        assert all(0 <= number <= 1 for number in (*score[:3], score.total))


@given(st.lists(memories, max_size=5, unique_by=lambda m: m.id), st.randoms())
def test_the_order_of_the_candidates_changes_no_score(some: list[Memory], random) -> None:
    mixed = random.sample(some, len(some))
    assert by_id(some) == by_id(mixed)


def by_id(some: list[Memory]) -> dict[int, Score]:
    scores = scored(some, hours=9, said=compared_words("Anna, the rope and the ferry"))
    return {memory.id: score for memory, score in zip(some, scores, strict=True)}


def test_without_anything_given_all_is_as_by_default() -> None:
    assert read_memory({}, where="X") == MemorySettings()


def test_single_ones_are_set() -> None:
    read = read_memory({"most": 3, "kept": 50, "enabled": False}, where="X")
    assert read == MemorySettings(enabled=False, kept=50, recall=RecallRules(most=3))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([], "X: must be a dictionary"),
        ({"mots": 3}, "X: there is no rule 'mots'; did you mean most?"),
        ({"most": True}, "X.most: must be a whole number from 0 to 100, not True"),
        ({"share_percent": 91}, "X.share_percent: must be a whole number from 0 to 90, not 91"),
        ({"kept": 0}, "X.kept: must be a whole number from 1 to 2000, not 0"),
        ({"enabled": 1}, "X.enabled: must be True or False, not 1"),
    ],
)
def test_a_wrong_one_is_told(given: object, told: str) -> None:
    with pytest.raises(FormatError) as raised:
        read_memory(given, where="X")
    assert told in str(raised.value)
