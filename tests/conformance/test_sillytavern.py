"""Test that the rules `sillytavern` give the answers of SillyTavern 1.19.

Each case of the conformance kit that SillyTavern answered is one test: lore, whole prompts and
macros. `differences.py` lists the cases in which the package differs.
"""

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.absent import need
from tests.conformance.differences import (
    NOBODY_SPEAKS,
    NOT_ASKED,
    ON_PURPOSE,
    OPEN,
    render_differences,
)
from tests.conformance.sillytavern_cases import LORE, MACROS, PROMPTS, Case, share_of

DIFFERENT = {name: one for one in ON_PURPOSE for name in one.cases}
LISTED = {*DIFFERENT, *NOT_ASKED, *OPEN}
ALL = {**PROMPTS, **MACROS}
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "scenarios.md"


def counts_exactly(case: Case) -> bool:
    return "openai_max_context" in case.case["input"].get("preset", {})


def _params(cases: dict[str, Case], names: set[str]) -> list[Any]:
    """Return the cases as parameters. The marked ones need the package that counts exactly."""
    return [
        pytest.param(
            cases[name],
            id=name,
            marks=[pytest.mark.extra] * counts_exactly(cases[name]),
        )
        for name in sorted(names)
    ]


def wrong(case: Case) -> list[str]:
    if counts_exactly(case):
        need("bpe_openai", undone="nothing is counted as the application counts")
    return case.wrong()


@pytest.mark.parametrize("case", _params(LORE, LORE.keys() - LISTED))
def test_lore_case_gives_the_same_entries_as_sillytavern(case: Case) -> None:
    assert wrong(case) == []


@pytest.mark.parametrize("case", _params(PROMPTS, PROMPTS.keys() - LISTED))
def test_prompt_equals_the_one_that_sillytavern_assembled(case: Case) -> None:
    assert wrong(case) == []


@pytest.mark.parametrize("case", _params(MACROS, MACROS.keys() - LISTED))
def test_macro_case_gives_the_text_and_variables_of_sillytavern(case: Case) -> None:
    assert wrong(case) == []


@pytest.mark.parametrize("case", _params(ALL, LISTED))
def test_listed_difference_to_sillytavern_still_exists(case: Case) -> None:
    assert wrong(case) != []


@pytest.mark.parametrize("name", NOBODY_SPEAKS.cases)
def test_example_text_without_speaker_is_the_only_difference_to_sillytavern(name: str) -> None:
    made, told = PROMPTS[name].messages()
    preset = PROMPTS[name].case["input"]["preset"]
    heading = preset.get("new_example_chat_prompt", "[Example Chat]")
    kept = Counter(map(str, made)) - Counter(map(str, told))
    assert kept
    assert all("'role': 'system'" in message and "'name'" not in message for message in kept)
    with_speakers = [
        message
        for message, after in pairwise([*told, {}])
        if message["content"] != heading or "name" in after
    ]
    assert [message for message in made if str(message) not in kept] == with_speakers


def test_text_deeper_than_a_cut_history_is_placed_at_the_history_s_top() -> None:
    """SillyTavern loses this text (S3-06)."""
    assert wrong(PROMPTS["trim-inject-700"]) != []
    made, told = PROMPTS["trim-inject-700"].messages()
    at = [message["content"] for message in made].index("TWENTY")
    assert made[at - 1]["content"] == "[Start a new Chat]"
    assert made[at + 1 :] == told[at + 1 :]


@pytest.mark.parametrize(
    ("cases", "least", "count"), [(LORE, 99, 300), (PROMPTS, 99, 180), (MACROS, 99, 200)]
)
def test_share_of_cases_that_agree_with_sillytavern_is_high(
    cases: dict[str, Case], least: int, count: int
) -> None:
    share = share_of(cases)
    assert share.percent >= least
    assert share.counted >= count


def test_listed_differences_name_existing_cases_once() -> None:
    names = [*NOT_ASKED, *OPEN, *(name for one in ON_PURPOSE for name in one.cases)]
    assert len(names) == len(set(names))
    assert set(names) <= ALL.keys()


def test_documentation_has_the_table_of_differences_on_purpose() -> None:
    """`python -m tests.conformance` writes the table."""
    assert render_differences() in PAGE.read_text("utf-8")
