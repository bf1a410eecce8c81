"""Without a model an NPC quotes what was activated."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evennia_ai.llm.chat import ChatMessage, Passage
from evennia_ai.llm.clients.offline import ANSWER_CHARACTERS, OfflineResponder
from tests.effort import little_work
from tests.llm.builders import a_passage, a_request
from tests.llm.test_resilience import outcome

FERRY = a_passage(
    "Saltmere is a village. The last ferry leaves at dusk. Its captain is called Mr. Hale."
)
LIGHT = a_passage("The lighthouse has been dark since spring.", score=1.0)


def said(question: str, *passages: Passage, **more: Any) -> str:
    request = a_request(question, passages=passages, **more)
    return str(outcome(OfflineResponder("Hm.").complete(request)).text)


def test_a_reply_is_there_at_once_and_says_it_is_offline() -> None:
    model = OfflineResponder("Hm.")
    reply = outcome(model.complete(a_request("When does the ferry leave?", passages=(FERRY,))))
    assert (reply.offline, model.offline, reply.usage) == (True, True, None)
    assert reply.text == "The last ferry leaves at dusk."


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Is there a FERRY?", "The last ferry leaves at dusk."),
        ("any ferries tonight?", "The last ferry leaves at dusk."),
        ("Who is the captain?", "Its captain is called Mr. Hale."),
        ("Is the lighthouse working?", "The lighthouse has been dark since spring."),
    ],
)
def test_the_sentence_with_the_questions_words_is_said(question: str, answer: str) -> None:
    assert said(question, FERRY, LIGHT) == answer


def test_two_sentences_that_fit_alike_are_said_in_their_order() -> None:
    answer = said("the captain of the ferry", FERRY)
    assert answer == "The last ferry leaves at dusk. Its captain is called Mr. Hale."


def test_very_common_words_and_the_npcs_name_are_no_reason_to_say_a_thing() -> None:
    oren = a_passage("Oren is what you would call the best of them.")
    assert said("Oren, what is it that you want of them?", oren, speaker="Oren") == "Hm."


def test_of_sentences_that_fit_alike_the_higher_score_then_the_earlier_wins() -> None:
    first, second = a_passage("A gull is grey."), a_passage("A gull is white.")
    assert said("gull", first, second).startswith("A gull is grey.")
    best = a_passage("One gull is red and " + "very " * 54 + "old.", score=2.0)
    assert said("gull", first, best).startswith("One gull is red")


@pytest.mark.parametrize(
    ("question", "text", "answer"),
    [
        ("Wann fährt die Fähre?", "Die Fähre fährt um acht.", "Die Fähre fährt um acht."),
        ("где паром", "Вот паром. Вот дом.", "Вот паром."),
        ("灯塔在哪里", "这是港口。灯塔在北边。", "灯塔在北边。"),
    ],
)
def test_words_of_any_script_are_found(question: str, text: str, answer: str) -> None:
    assert said(question, a_passage(text)) == answer


def test_without_a_fitting_sentence_the_best_constant_passage_is_quoted() -> None:
    low = a_passage("Nets are dear.", constant=True)
    high = a_passage("Fish is cheap. Salt is not.", score=2.0, constant=True)
    assert said("Do you know any songs?", LIGHT, low, high) == "Fish is cheap."


def test_a_constant_passage_is_gone_through_before_the_fallback_is_said() -> None:
    fish = a_passage("Fish is cheap. Salt is not.", constant=True)
    heard: list[ChatMessage] = []
    for answer in ("Fish is cheap.", "Salt is not.", "Hm."):
        assert said("Any songs?", fish, messages=tuple(heard)) == answer
        heard.append(ChatMessage(role="assistant", content=answer))


@pytest.mark.parametrize("passages", [(), (FERRY, LIGHT), (a_passage("", constant=True),)])
def test_with_nothing_to_quote_the_fallback_is_said(passages: tuple[Passage, ...]) -> None:
    assert said("Do you know any songs?", *passages) == "Hm."


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("@@depth 4\n@@role system\nThe ferry is red.", "The ferry is red."),
        ("# The ferry\nThe ferry is red.", "The ferry is red."),
        ("== Ferry ==\nThe ferry is red.\n---", "The ferry is red."),
        ("[The ferry is red.]", "The ferry is red."),
        ("[[The **ferry** is _red_.\n]]", "The ferry is red."),
        ("The ferry - the old one - is 2. to none.", "The ferry - the old one - is 2."),
        ("The ferry sea_gull is red.", "The ferry sea_gull is red."),
        ("- The ferry is red.", "The ferry is red."),
        ("1. The ferry is red.", "The ferry is red."),
        ("<lore>The ferry is red.</lore>", "The ferry is red."),
        ("{{//a note}}The ferry is red.", "The ferry is red."),
        ("{{char}} rows the ferry.", "Oren rows the ferry."),
        ("<START>\nThe  ferry\tis red.", "The ferry is red."),
    ],
)
def test_markup_is_not_said(text: str, answer: str) -> None:
    assert said("Which ferry?", a_passage(text), speaker="Oren") == answer


def test_a_long_sentence_is_cut_at_a_word() -> None:
    answer = said("ferry", a_passage("The ferry " + "rocks " * 200 + "gently."))
    assert len(answer) <= ANSWER_CHARACTERS
    assert answer.endswith("rocks…")


def test_the_same_sentence_in_two_passages_is_said_once() -> None:
    assert said("lighthouse", LIGHT, LIGHT) == LIGHT.text


@settings(deadline=None)
@given(st.text(max_size=80), st.lists(st.text(max_size=400), max_size=4))
def test_an_answer_is_never_empty_nor_too_long_and_always_the_same(
    question: str, texts: list[str]
) -> None:
    passages = tuple(map(a_passage, texts))
    answer = said(question, *passages)
    assert 0 < len(answer) <= ANSWER_CHARACTERS
    assert answer == said(question, *passages)


@pytest.mark.parametrize("unit", ["[", "{{", "<a ", ". ", "ferry ", "ferry. ", "*", "船"])
def test_hostile_passages_cost_no_more_than_their_length(unit: str) -> None:
    with little_work():
        said("ferry 船船", a_passage(unit * 50_000))
