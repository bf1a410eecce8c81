"""What an NPC may remember of the world and not of itself: the cases, and whatever else is said."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.memory import learning
from evennia_ai.engine.memory.learning import People, judged

CASES = yaml.safe_load((Path(__file__).parent / "cases" / "persona.yaml").read_text("utf-8"))
OREN = People(own_names=("Oren", "ferryman"), other_names=("Anna", "Ben"))
SHE = People(own_names=("Oren", "ferryman"), other_names=("Anna", "Ben"), is_about_somebody=True)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["text"])
def test_a_text_is_taken_or_refused_by_a_rule(case: dict[str, Any]) -> None:
    found = judged(case["text"], SHE if case.get("about") else OREN)
    wanted = getattr(learning, case["refused"]).format(npc="Oren") if "refused" in case else ""
    assert found == (case.get("becomes", case["text"]), wanted)


def test_there_are_many_cases() -> None:
    assert len(CASES) > 80


def test_a_refusal_names_the_npc() -> None:
    assert "what Oren is" in judged("Oren is a dragon.", OREN).refusal


@given(st.text(max_size=80))
def test_any_text_is_judged(text: str) -> None:
    assert judged(text, OREN).text or not text


@given(st.text(max_size=20), st.sampled_from(["I am ", "Oren is ", "You are ", "My name is "]))
def test_no_beginning_of_another_language_hides_what_it_is(end: str, begin: str) -> None:
    tail = "".join(c for c in end if c.isalnum() and not c.isupper())
    assert judged(f"{begin}a dragon {tail}", OREN).refusal


def test_a_long_text_is_judged_at_once() -> None:
    assert judged("and I " * 5000 + "'" * 5000, OREN).refusal
