"""Hints: what a model, or words, may choose of what authors wrote, and nothing else."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.knowledge.pages.page import Page, PageMeta, page_name
from evennia_ai.engine.knowledge.restricted.hinting import (
    HintChoice,
    by_words,
    chosen,
    hint_messages,
    hints_of,
    ranked,
    together,
    with_hints,
)
from evennia_ai.engine.knowledge.restricted.mediation import PagePassage, SafeSummary, refused
from evennia_ai.services.llm.structured import read

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
def test_whatever_a_model_writes_only_hints_are_told(reply):
    answer = read(reply, HintChoice).answer
    told = refused("other") if answer is None else chosen(answer, HINTS)
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
def test_anything_but_numbers_is_no_choice(reply):
    assert read(reply, HintChoice).answer is None


@pytest.mark.req("S0-48")
@pytest.mark.parametrize("numbers", [[0], [4], [1, 4], [-1], [10**9]])
def test_a_number_of_no_hint_is_a_refusal(numbers):
    told = chosen(HintChoice(hints=numbers), HINTS)
    assert (told.decision, told.reason) == ("refuse", "safe_summary_generation_failed")


def test_the_hints_are_told_in_the_order_of_the_choice_each_once():
    assert chosen(HintChoice(hints=[2, 1, 2]), HINTS).summary == f"{TEXTS[1]}\n{TEXTS[0]}"


def test_nothing_chosen_is_a_refusal():
    assert chosen(HintChoice(hints=[]), HINTS).reason == "no_hint_fits"


def test_the_model_gets_the_question_and_the_hints_alone():
    system, user = hint_messages("Where is the lamp?", HINTS)
    assert json.loads(user.content) == {
        "question": "Where is the lamp?",
        "hints": {"1": TEXTS[0], "2": TEXTS[1], "3": TEXTS[2]},
    }
    assert TEXTS[0] not in system.content


def test_words_choose_what_has_most_of_them():
    assert by_words("a lamp in the fog, or a cook?", HINTS).summary == f"{TEXTS[0]}\n{TEXTS[1]}"
    assert by_words("what is in it, of all of them", HINTS[:1]).reason == "no_hint_fits"
    assert by_words("zeppelin", HINTS).decision == "refuse"


def test_forty_are_offered_and_the_fitting_ones_first():
    many = [a_hint(f"Nothing {n}.") for n in range(60)] + [a_hint("A lamp.")]
    assert len(ranked("lamp", many)) == 40
    assert ranked("lamp", many)[0].content == "A lamp."


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["A  b", "A b", 3, ""], ("A b",)),
        ("A b", ("A b",)),
        (7, ()),
        (["x" * 500], ("x" * 400,)),
    ],
)
def test_hints_of_a_page_are_texts_each_once(given, told):
    assert hints_of(a_page(hints=given)) == told


def test_hints_are_written_beside_the_other_fields():
    assert with_hints({"protect": "x"}, ["A"]) == {"protect": "x", "hints": ["A"]}
    assert with_hints({"protect": "x", "hints": ["A"]}, []) == {"protect": "x"}


def test_a_summary_and_hints_are_told_together():
    summary = SafeSummary(decision="answer", reason="answerable", summary="Be kind.", risks=("A",))
    hints = chosen(HintChoice(hints=[3]), HINTS)
    assert together(summary, hints).summary == f"Be kind.\n{TEXTS[2]}"
    assert together(summary, hints).risks == ("A",)
    assert together(refused("other"), hints) == hints
    assert together(summary, refused("no_hint_fits")) == summary
