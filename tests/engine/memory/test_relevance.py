"""Relevance of memories: its sources, and no influence of secret memories on it."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.memory import memories as words_of_memories
from evennia_ai.engine.memory.memories import Memory, comparison_words
from evennia_ai.engine.memory.recalling import Moment, RecallRules, recall_memories, score_memories
from evennia_ai.engine.memory.relevance import (
    NEIGHBOUR_HOURS,
    Relevance,
    RelevanceParts,
    RelevanceWeights,
    score_relevance,
)
from evennia_ai.engine.prompt.tokens import ESTIMATE
from tests.engine.memory.builders import ANNA, BEN, a_memory

ALONE = {"neighbours_percent": 0, "scene_percent": 0, "meaning_percent": 0, "second_percent": 0}
FERRY = a_memory("The ferry leaves at dawn.", id=1, place_ref="3")
ROPE = a_memory("Somebody wants a rope.", id=2, place_ref="3")
SALE = a_memory("Corvin sold the brindled mare to Hedda.", id=1)
TRADE = a_memory("Hedda makes barrels.", id=2, created_at=500.0)
COUGH = a_memory("Lukas has a cough.", id=3, created_at=900.0)


def judged(*memories: Memory, said: str, near: Any = None, **weights: Any) -> list[Relevance]:
    given = RelevanceWeights(**{**ALONE, **weights})
    return score_relevance(memories, comparison_words(said), weights=given, near=near or {})


def totals(*memories: Memory, said: str, **weights: Any) -> list[float]:
    return [found.total for found in judged(*memories, said=said, **weights)]


def test_memory_relevance_against_itself_is_a_half_for_one_rare_word() -> None:
    barrels = a_memory("Hedda repairs barrels.", id=2)
    said = "Who repairs barrels?"
    assert totals(TRADE, SALE, said="barrels", against="itself") == [0.5, 0.0]
    assert totals(barrels, SALE, said=said, against="itself") == [0.6667, 0.0]


def test_memory_relevance_against_best_keeps_the_ratios_between_memories() -> None:
    one, both = totals(TRADE, a_memory("Barrels leak.", id=5), said="Do barrels leak?")
    assert 0 < one < both < 1
    by_itself = totals(
        TRADE, a_memory("Barrels leak.", id=5), said="barrels leak", against="itself"
    )
    assert one / both < by_itself[0] / by_itself[1]


def test_memory_relevance_counts_words_of_memories_learnt_just_before_or_after() -> None:
    assert totals(FERRY, ROPE, said="ferry")[1] == 0
    found = judged(FERRY, ROPE, said="ferry", neighbours_percent=50)[1]
    assert found.total > 0 == found.parts.words + found.parts.scene


def test_relevance_counts_words_of_memories_two_places_apart_half() -> None:
    far = a_memory("It rains.", id=3, place_ref="3")
    _, near, second = totals(FERRY, ROPE, far, said="ferry", neighbours_percent=100)
    assert abs(near - 2 * second) < 0.001


def test_neighbour_memories_have_one_place_and_time_and_no_builder_as_author() -> None:
    elsewhere = a_memory("Somebody wants a rope.", id=2, place_ref="4")
    later = a_memory("Fire!", id=3, place_ref="3", created_at=NEIGHBOUR_HOURS + 0.1)
    builders = a_memory("The lake is deep.", id=4, place_ref="3", author="Mira")
    found = totals(FERRY, elsewhere, later, builders, said="ferry", neighbours_percent=100)
    assert found[1:] == [0, 0, 0]


def test_memory_relevance_counts_words_of_the_memorys_scene() -> None:
    debt = a_memory("Anna owes Oren a rope.", id=2, scene="corvin ferry storm")
    found = judged(COUGH, debt, said="Who was here in the storm?", scene_percent=40)
    assert [one.total > 0 for one in found] == [False, True]
    assert found[1].parts == RelevanceParts(scene=found[1].parts.scene)


def test_memory_relevance_adds_similar_meanings_and_ignores_distant_ones() -> None:
    near = {SALE.id: 0.6, TRADE.id: 0.05}
    found = judged(SALE, TRADE, said="Who got the horse?", near=near, meaning_percent=100)
    assert found[0].parts.meaning > 0 == found[0].parts.words
    assert found[1].total == 0


def test_memory_relevance_is_higher_for_a_word_than_for_a_distant_meaning() -> None:
    found = totals(
        SALE, TRADE, said="barrels", near={SALE.id: 0.2, TRADE.id: 0.0}, meaning_percent=500
    )
    assert found[1] > found[0]


def test_name_in_the_best_memory_is_searched_for_in_other_memories() -> None:
    said = "What work does the buyer of the brindled mare of Corvin do?"
    others = (COUGH, a_memory("It rains.", id=4))
    assert totals(SALE, TRADE, *others, said=said)[1] == 0
    found = judged(SALE, TRADE, *others, said=said, second_percent=80)
    assert found[1].parts == RelevanceParts(second=0.8)
    assert found[0].parts.second == 0
    assert found[0].total > found[1].total
    assert [one.total for one in found[2:]] == [0, 0]


def test_names_are_not_searched_for_when_the_best_memory_is_no_clear_match() -> None:
    assert totals(SALE, TRADE, COUGH, said="mare", second_percent=80)[1] == 0


def test_names_are_not_searched_for_when_the_best_memory_has_too_many_names() -> None:
    crowd = a_memory("Corvin sold the brindled mare to Hedda, Lukas, Brida or Maud.", id=1)
    names = enumerate(("Hedda", "Lukas", "Brida", "Maud"), start=2)
    some = [a_memory(f"{name} rests.", id=i) for i, name in names]
    assert totals(crowd, *some, said="Corvin's brindled mare", second_percent=80)[1:] == [0] * 4


def test_capitalised_word_is_no_name_when_another_memory_has_the_word_in_small_letters() -> None:
    capital = a_memory("Corvin sold the brindled mare to Miller.", id=1)
    small = a_memory("The miller sleeps.", id=2)
    assert totals(capital, small, said="Corvin's brindled mare", second_percent=80)[1] == 0


def test_memory_score_is_rendered_with_relevance_by_source() -> None:
    rules = RecallRules()
    debt = a_memory("Anna owes Oren a rope.", id=2, scene="ferry storm", created_at=50.0)
    told = score_memories(
        [COUGH, debt], hours=50.0, said=comparison_words("rope storm"), rules=rules
    )[1]
    assert str(told).startswith("score ")
    assert "relevance 0.91 (words 0.61, scene 0.30)" in str(told)


def test_memory_score_weighs_relevance_by_relevance_percent() -> None:
    once, thrice = (
        score_memories(
            [SALE], hours=0, said=frozenset(), rules=RecallRules(relevance_percent=percent)
        )[0]
        for percent in (100, 300)
    )
    assert (once.total, thrice.total) == (0.4815, 0.2889)


def secret(text: str, **fields: Any) -> Memory:
    return a_memory(text, about=ANNA, learnt="private", place_ref="3", **fields)


def kept_scores(*memories: Memory, said: str, confidant: str = "") -> dict[int, str]:
    found = recall_memories(
        memories,
        rules=RecallRules(),
        moment=Moment(confidant_ref=confidant),
        said=comparison_words(said),
        limit_tokens=10_000,
        counter=ESTIMATE,
    )
    return {one.memory.id: str(one.score) for one in found.judged if one.score is not None}


def test_whispered_memory_does_not_lower_the_scores_of_public_memories() -> None:
    whisper = secret("The ferry is stolen.", id=1)
    aloud = a_memory("Somebody wants a rope.", id=2, place_ref="3")
    assert kept_scores(whisper, aloud, said="ferry") == kept_scores(aloud, said="ferry")
    # In private with the person who whispered it, a whisper is not a neighbour of public memories
    # either.
    assert "relevance 0.00" in kept_scores(whisper, aloud, said="ferry", confidant=ANNA)[2]


def test_names_of_a_whispered_memory_are_searched_for_only_with_its_speaker() -> None:
    whisper = secret("Corvin sold the brindled mare to Hedda.", id=1)
    said = "Who has the brindled mare of Corvin?"
    assert kept_scores(whisper, TRADE, said=said) == kept_scores(TRADE, said=said)
    assert kept_scores(whisper, TRADE, said=said, confidant=BEN) == kept_scores(TRADE, said=said)
    assert "asked in turn" in kept_scores(whisper, TRADE, COUGH, said=said, confidant=ANNA)[2]


def test_words_of_a_memory_are_computed_once(monkeypatch: Any) -> None:
    read: list[str] = []

    def counted(text: str, languages: tuple[str, ...]) -> frozenset[str]:
        read.append(text)
        return comparison_words(text, languages)

    monkeypatch.setattr(words_of_memories, "comparison_words", counted)
    memories = [a_memory(f"Corvin met Hedda on day {i}.", id=i, scene="storm") for i in range(50)]
    said = comparison_words("Corvin, Hedda, day 7 and the storm")
    for _ in range(3):
        score_memories(memories, hours=1.0, said=said)
    texts = [one for one in read if one.startswith("Corvin met")]
    assert len(texts) == 50


some_memories = st.lists(
    st.builds(
        Memory,
        id=st.integers(1, 9),
        text=st.sampled_from(
            ["Corvin sold the mare to Hedda.", "Hedda works.", "灯塔很旧", "", "!"]
        ),
        scene=st.sampled_from(["", "storm ferry", "灯塔"]),
        created_at=st.floats(0, 50),
        place_ref=st.sampled_from(["", "3"]),
    ),
    max_size=6,
    unique_by=lambda memory: memory.id,
)


@given(
    some_memories,
    st.sampled_from(["", "Corvin's mare in the storm", "灯塔", "Hedda"]),
    st.dictionaries(st.integers(1, 9), st.floats(-1, 1)),
    st.sampled_from(["best", "itself"]),
)
def test_memory_relevance_is_from_0_to_1_and_grows_with_its_parts(
    memories: list[Memory], said: str, near: dict[int, float], against: Any
) -> None:
    weights = RelevanceWeights(against=against)
    found = score_relevance(memories, comparison_words(said), weights=weights, near=near)
    assert all(0 <= one.total < 1 and min(one.parts) >= 0 for one in found)
    by_sum = sorted(found, key=lambda one: sum(one.parts))
    assert [one.total for one in by_sum] == sorted(one.total for one in found)


def test_memory_relevance_is_0_when_nothing_was_said() -> None:
    assert totals(SALE, TRADE, said="") == [0, 0]
    assert totals(said="mare") == []


def test_rendered_relevance_is_empty_when_only_the_memorys_own_words_scored() -> None:
    assert RelevanceParts(words=0.5).render_breakdown(0.5) == ""
