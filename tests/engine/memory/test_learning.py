"""Texts that an NPC may or may not remember: stored cases, and properties of any text."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.memory import learning
from evennia_ai.engine.memory.learning import People, judge_text

CASES = yaml.safe_load((Path(__file__).parent / "cases" / "persona.yaml").read_text("utf-8"))
OREN = People(own_names=("Oren", "ferryman"), other_names=("Anna", "Ben"))
SHE = People(own_names=("Oren", "ferryman"), other_names=("Anna", "Ben"), is_about_somebody=True)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["text"])
def test_new_memory_is_accepted_or_refused_as_in_the_stored_case(case: dict[str, Any]) -> None:
    found = judge_text(case["text"], SHE if case.get("about") else OREN)
    wanted = getattr(learning, case["refused"]).format(npc="Oren") if "refused" in case else ""
    assert found == (case.get("becomes", case["text"]), wanted)


def test_all_stored_cases_of_memories_about_the_npc_are_loaded() -> None:
    assert len(CASES) > 80


def test_refusal_of_a_memory_names_the_npc() -> None:
    assert "what Oren is" in judge_text("Oren is a dragon.", OREN).refusal


@given(st.text(max_size=80))
def test_judge_text_accepts_or_refuses_any_text_without_an_error(text: str) -> None:
    assert judge_text(text, OREN).text or not text


@given(st.text(max_size=20), st.sampled_from(["I am ", "Oren is ", "You are ", "My name is "]))
def test_statement_about_the_npc_is_refused_with_any_ending(end: str, begin: str) -> None:
    tail = "".join(c for c in end if c.isalnum() and not c.isupper())
    assert judge_text(f"{begin}a dragon {tail}", OREN).refusal


def test_long_memory_text_is_refused_in_linear_time() -> None:
    assert judge_text("and I " * 5000 + "'" * 5000, OREN).refusal
