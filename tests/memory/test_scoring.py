"""What a memory counts: recency, importance and relevance, each from 0 to 1."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.memory.memories import Memory, words_of
from evennia_ai.memory.recalling import Score, scored
from tests.memory.builders import a_memory

ROPE = "Anna owes Oren a rope."
memories = st.builds(
    Memory,
    id=st.integers(1, 9),
    text=st.sampled_from([ROPE, "The ferry leaves at dawn.", "灯塔很旧", "", "!"]),
    importance=st.integers(1, 10),
    recalled_at=st.floats(0, 1e6),
)


def score_of(memory: Memory, *others: Memory, hours: float = 0.0, said: str = "") -> Score:
    return scored([memory, *others], hours=hours, said=words_of(said))[0]


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
    for score in scored(some, hours=hours, said=words_of(said)):
        assert all(0 <= number <= 1 for number in (*score, score.total))


@given(st.lists(memories, max_size=5, unique_by=lambda m: m.id), st.randoms())
def test_the_order_of_the_candidates_changes_no_score(some: list[Memory], random) -> None:
    mixed = random.sample(some, len(some))
    assert by_id(some) == by_id(mixed)


def by_id(some: list[Memory]) -> dict[int, Score]:
    scores = scored(some, hours=9, said=words_of("Anna, the rope and the ferry"))
    return {memory.id: score for memory, score in zip(some, scores, strict=True)}
