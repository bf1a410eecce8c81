"""Tests of hints: a model, or the words of a question, choose among hints of authors."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.knowledge.pages.page import Page, PageMeta, page_name
from evennia_ai.engine.knowledge.restricted.hinting import (
    HintChoice,
    choose_by_numbers,
    choose_by_words,
    hint_messages,
    merge_summaries,
    page_hints,
    rank_hints,
    set_hints,
)
from evennia_ai.engine.knowledge.restricted.mediation import PagePassage, SafeSummary, refuse_answer
from evennia_ai.services.llm.structured import read_answer

TEXTS = ("Look for the lamp in the fog.", "Help the cook first.", "The tide knows.")


def a_hint(text: str) -> PagePassage:
    return PagePassage(
        base="vault", base_name="Vault", title="T", revision="1", score=1.0, content=text
    )


HINTS = tuple(map(a_hint, TEXTS))


def a_page(**fields: object) -> Page:
    return Page(name=page_name("Cellar"), body="Behind barrel 3.", meta=PageMeta(fields=fields))


@pytest.mark.req("S0-46")
@given(st.text() | st.lists(st.integers()).map(lambda numbers: json.dumps({"hints": numbers})))
def test_any_hint_choice_reveals_only_hints(reply):
    answer = read_answer(reply, HintChoice).answer
    told = refuse_answer("other") if answer is None else choose_by_numbers(answer, HINTS)
    assert set(told.summary.splitlines()) <= set(TEXTS)
    assert (told.observations, told.risks, told.answer_guidance) == ((), (), "")


@pytest.mark.req("S0-48")
@pytest.mark.parametrize(
    "reply",
    [
        *('{"hints": ["1"]}', '{"hints": [1.0]}', '{"hints": [true]}', '{"hints": 1}', "1", ""),
        *('{"hints": [1], "summary": "Behind barrel 3."}', '{"hints": [null]}', "[1]"),
    ],
)
def test_hint_choice_accepts_only_numbers(reply):
    assert read_answer(reply, HintChoice).answer is None


@pytest.mark.req("S0-48")
@pytest.mark.parametrize("numbers", [[0], [4], [1, 4], [-1], [10**9]])
def test_hint_choice_is_a_refusal_with_a_number_that_no_hint_has(numbers):
    told = choose_by_numbers(HintChoice(hints=numbers), HINTS)
    assert (told.decision, told.reason) == ("refuse", "safe_summary_generation_failed")


def test_chosen_hints_are_in_order_without_duplicates():
    assert (
        choose_by_numbers(HintChoice(hints=[2, 1, 2]), HINTS).summary == f"{TEXTS[1]}\n{TEXTS[0]}"
    )


def test_hint_choice_without_numbers_is_a_refusal():
    assert choose_by_numbers(HintChoice(hints=[]), HINTS).reason == "no_hint_fits"


def test_hint_request_has_only_question_and_hints():
    system, user = hint_messages("Where is the lamp?", HINTS)
    assert json.loads(user.content) == {
        "question": "Where is the lamp?",
        "hints": {"1": TEXTS[0], "2": TEXTS[1], "3": TEXTS[2]},
    }
    assert TEXTS[0] not in system.content


def test_hint_with_most_words_of_the_question_is_chosen_without_a_model():
    assert (
        choose_by_words("a lamp in the fog, or a cook?", HINTS).summary == f"{TEXTS[0]}\n{TEXTS[1]}"
    )
    assert choose_by_words("what is in it, of all of them", HINTS[:1]).reason == "no_hint_fits"
    assert choose_by_words("zeppelin", HINTS).decision == "refuse"


def test_forty_best_hints_are_offered():
    many = [a_hint(f"Nothing {n}.") for n in range(60)] + [a_hint("A lamp.")]
    assert len(rank_hints("lamp", many)) == 40
    assert rank_hints("lamp", many)[0].content == "A lamp."


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["A  b", "A b", 3, ""], ("A b",)),
        ("A b", ("A b",)),
        (7, ()),
        (["x" * 500], ("x" * 400,)),
    ],
)
def test_page_hints_are_texts_without_duplicates(given, told):
    assert page_hints(a_page(hints=given)) == told


def test_set_hints_keeps_the_other_fields():
    assert set_hints({"protect": "x"}, ["A"]) == {"protect": "x", "hints": ["A"]}
    assert set_hints({"protect": "x", "hints": ["A"]}, []) == {"protect": "x"}


def test_summary_and_hints_are_merged():
    summary = SafeSummary(decision="answer", reason="answerable", summary="Be kind.", risks=("A",))
    hints = choose_by_numbers(HintChoice(hints=[3]), HINTS)
    assert merge_summaries(summary, hints).summary == f"Be kind.\n{TEXTS[2]}"
    assert merge_summaries(summary, hints).risks == ("A",)
    assert merge_summaries(refuse_answer("other"), hints) == hints
    assert merge_summaries(summary, refuse_answer("no_hint_fits")) == summary
