"""Recall: the scores of memories, which memories are taken, and the settings."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.memory.memories import Memory, comparison_words
from evennia_ai.engine.memory.recalling import (
    LEFT_OUT,
    MemorySettings,
    Moment,
    RecallResult,
    RecallRules,
    Score,
    read_memory_settings,
    recall_memories,
    refuse_memories,
    score_memories,
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
) -> RecallResult:
    return recall_memories(
        memories,
        rules=RecallRules(**rules),
        moment=moment,
        said=comparison_words(words),
        limit_tokens=limit,
        counter=ESTIMATE,
    )


def reason_of(told: RecallResult, number: int) -> str:
    return next(v.reason for v in told.verdicts if v.item == f"memory:{number}")


def some(count: int, **fields: Any) -> list[Memory]:
    return [a_memory(f"Fact number {i}.", id=i, **fields) for i in range(1, count + 1)]


def test_recall_has_no_verdicts_without_memories() -> None:
    assert judged().verdicts == ()


def test_recall_takes_the_most_important_memory() -> None:
    weak, strong = a_memory(id=1, importance=1), a_memory("Fire!", id=2, importance=10)
    assert taken(weak, strong, most=1) == [2]


def test_recall_takes_the_relevant_memory_first() -> None:
    rope = a_memory("Anna owes Oren a rope.", id=1)
    ferry = a_memory("The ferry leaves at dawn.", id=2)
    assert taken(rope, ferry, words="Where is the ferry?", most=1) == [2]


def test_recall_takes_the_older_memory_of_equal_scores() -> None:
    assert taken(*reversed(some(3)), most=2) == [1, 2]


def test_recalled_memories_are_in_the_order_of_learning() -> None:
    late = a_memory(id=1, created_at=5.0, importance=9)
    early = a_memory("Fire!", id=2, created_at=2.0)
    assert taken(late, early) == [2, 1]


def test_verdict_on_a_memory_beyond_the_most_taken_has_reason_and_score() -> None:
    told = judged(*some(2), most=1)
    verdict = told.verdicts[1]
    assert (verdict.kept, verdict.reason) == (False, "not among the 1 best")
    assert (verdict.cause or "").startswith("score 0.48: recency")


def test_verdict_on_a_recalled_memory_has_score_and_tokens() -> None:
    verdict = judged(a_memory()).verdicts[0]
    assert verdict.kept
    assert verdict.reason == "score 0.48: recency 0.99, importance 0.44, relevance 0.00"
    assert verdict.tokens > 0


def test_recall_takes_no_memory_when_its_share_of_the_prompt_is_0() -> None:
    told = judged(a_memory(), share_percent=0)
    assert told.kept == ()
    assert reason_of(told, 1) == "over the share of 0 tokens"


def test_recall_skips_a_memory_that_does_not_fit_and_takes_the_next() -> None:
    long = a_memory("word " * 50, id=1, importance=10)
    assert taken(long, a_memory(id=2), limit=200) == [2]


def test_whispered_memory_is_not_recalled_in_a_room() -> None:
    secret = a_memory(about=ANNA, learnt="private", importance=10)
    told = judged(secret)
    assert told.kept == ()
    assert (
        reason_of(told, 1)
        == "learnt in private; used only in private with the person who whispered it"
    )


def test_whispered_memory_is_recalled_in_private_with_its_speaker() -> None:
    assert taken(a_memory(about=ANNA, learnt="private"), moment=WITH_ANNA) == [1]


def test_whispered_memory_is_not_recalled_in_private_with_another_person() -> None:
    assert taken(a_memory(about=BEN, learnt="private"), moment=WITH_ANNA) == []


def test_whispered_memory_without_a_speaker_is_never_recalled() -> None:
    nameless = a_memory(about="", learnt="private")
    assert taken(nameless) == taken(nameless, moment=WITH_ANNA) == []


def test_public_memory_is_recalled_in_private() -> None:
    assert taken(a_memory(about=BEN), moment=WITH_ANNA) == [1]


def test_verdict_says_that_memories_without_a_component_are_left_out() -> None:
    told = RecallResult(judged=judged(a_memory()).judged, is_shown=False)
    assert (told.shown_ids, reason_of(told, 1)) == ((), LEFT_OUT)


def test_refused_memories_all_have_the_same_reason() -> None:
    told = refuse_memories(some(2), "component semantic_memories is disabled")
    assert {verdict.reason for verdict in told.verdicts} == {
        "component semantic_memories is disabled"
    }


def test_stored_verdicts_summarise_memories_that_were_not_taken() -> None:
    told = judged(*some(40), most=2)
    assert len(told.verdicts) == 40
    assert len(told.touched) == 2 + 12 + 1
    assert told.touched[-1].reason == "26 more memories were judged and not taken"


def test_words_said_are_words_and_speaker_names_of_the_newest_messages() -> None:
    history = History([said("user", "rope", name="Anna"), said("assistant", "ferry")])
    words = words_said(history, event_message("coins", name="Ben"), messages=2)
    assert words == comparison_words("ferry coins Ben")


def test_words_said_leave_out_texts_inserted_into_prompts() -> None:
    left = Message(role="user", content="rope", counted=False, stays=True, of="dynamic")
    history = History([said("user", "coins"), left])
    assert words_said(history, None, messages=1) == comparison_words("coins")


@given(
    st.lists(st.sampled_from([ANNA, BEN, ""]), max_size=12),
    st.lists(st.sampled_from(["aloud", "private"]), min_size=12, max_size=12),
    st.sampled_from([ROOM, WITH_ANNA]),
    st.integers(0, 60),
    st.integers(0, 5),
)
def test_every_memory_has_one_verdict_and_whispered_ones_stay_secret(
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
    return score_memories([memory, *others], hours=hours, said=comparison_words(said))[0]


@pytest.mark.parametrize(("hours", "wanted"), [(0, 1.0), (1, 0.995), (24, 0.8867), (240, 0.3003)])
def test_recency_of_a_memory_falls_by_half_a_percent_an_hour(hours: float, wanted: float) -> None:
    assert score_of(a_memory(), hours=hours).recency == wanted


def test_recency_of_a_memory_starts_at_its_last_recall() -> None:
    assert score_of(a_memory(created_at=0, recalled_at=10), hours=11).recency == 0.995


def test_recency_of_a_memory_is_at_most_1_when_the_clock_was_set_back() -> None:
    assert score_of(a_memory(recalled_at=50), hours=10).recency == 1.0


@pytest.mark.parametrize(("importance", "wanted"), [(1, 0.0), (10, 1.0), (5, 0.4444)])
def test_importance_score_of_a_memory_is_from_0_to_1(importance: int, wanted: float) -> None:
    assert score_of(a_memory(importance=importance)).importance == wanted


def test_memory_relevance_is_0_without_a_word_that_was_said() -> None:
    assert score_of(a_memory(ROPE), said="Good evening!").relevance == 0.0


def test_memory_relevance_grows_with_words_that_were_said() -> None:
    one = score_of(a_memory(ROPE), said="a rope").relevance
    two = score_of(a_memory(ROPE), said="a rope of Anna").relevance
    assert 0 < one < two < 1


def test_memory_relevance_is_lower_for_a_word_of_many_memories() -> None:
    rare = a_memory("The lighthouse fell.", id=1)
    others = [a_memory(f"The harbour of day {day}.", id=day) for day in range(2, 9)]
    said = "the lighthouse, the harbour"
    assert (
        score_of(rare, *others, said=said).relevance
        > score_of(others[0], rare, *others[1:], said=said).relevance
    )


def test_memory_score_is_the_mean_of_its_parts() -> None:
    assert Score(1.0, 0.5, 0.3).total == 0.6


def test_memory_score_is_rendered_with_its_parts() -> None:
    told = str(Score(0.95, 0.5, 0.3))
    assert told == "score 0.58: recency 0.95, importance 0.50, relevance 0.30"


@given(st.lists(memories, max_size=5), st.floats(0, 1e6), st.text(max_size=20))
def test_memory_scores_are_between_0_and_1(some: list[Memory], hours: float, said: str) -> None:
    for score in score_memories(some, hours=hours, said=comparison_words(said)):
        assert all(0 <= number <= 1 for number in (*score[:3], score.total))


@given(st.lists(memories, max_size=5, unique_by=lambda m: m.id), st.randoms())
def test_memory_scores_do_not_depend_on_the_order_of_candidates(some: list[Memory], random) -> None:
    mixed = random.sample(some, len(some))
    assert by_id(some) == by_id(mixed)


def by_id(some: list[Memory]) -> dict[int, Score]:
    scores = score_memories(some, hours=9, said=comparison_words("Anna, the rope and the ferry"))
    return {memory.id: score for memory, score in zip(some, scores, strict=True)}


def test_memory_settings_are_the_defaults_when_empty() -> None:
    assert read_memory_settings({}, where="X") == MemorySettings()


def test_memory_settings_take_single_fields() -> None:
    read = read_memory_settings({"most": 3, "kept": 50, "enabled": False}, where="X")
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
def test_memory_settings_error_names_the_field(given: object, told: str) -> None:
    with pytest.raises(FormatError) as raised:
        read_memory_settings(given, where="X")
    assert told in str(raised.value)
