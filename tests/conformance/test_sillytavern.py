"""Test that the rules `sillytavern` give the answers of SillyTavern 1.19.

Each case of `sillytavern/*.json` (lore), `sillytavern-assembly/*.json` (whole prompts) and
`sillytavern-macros/macros.json` is one test; `sillytavern-scripts/scripts.json` (regex scripts) has
one test for all cases. `differences.py` lists the cases in which the package
differs.
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
from tests.conformance.sillytavern_cases import LORE, MACROS, PROMPTS, SCRIPTS, Case, share_of

DIFFERENT = {name: one for one in ON_PURPOSE for name in one.cases}
LISTED = {*DIFFERENT, *NOT_ASKED, *OPEN}
ALL = {**PROMPTS, **MACROS, **SCRIPTS}
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "scenarios.md"


def counts_exactly(case: Case) -> bool:
    return "openai_max_context" in case.given.get("openai", {})


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


def ours(case: Case) -> list[Any]:
    if counts_exactly(case):
        need("bpe_openai", undone="nothing is counted as the application counts")
    return case.ours()


@pytest.mark.parametrize("case", _params(LORE, LORE.keys() - LISTED))
def test_lore_case_gives_the_same_entries_as_sillytavern(case: Case) -> None:
    assert ours(case) == case.theirs


@pytest.mark.parametrize("case", _params(PROMPTS, PROMPTS.keys() - LISTED))
def test_prompt_equals_the_one_that_sillytavern_assembled(case: Case) -> None:
    assert ours(case) == case.theirs


@pytest.mark.parametrize("case", _params(MACROS, MACROS.keys() - LISTED))
def test_macro_case_gives_the_text_and_variables_of_sillytavern(case: Case) -> None:
    assert ours(case) == case.theirs


def test_every_regex_script_makes_the_text_of_sillytavern() -> None:
    cases = [case for name, case in SCRIPTS.items() if name not in LISTED]
    assert len(cases) > 500
    assert [case.name for case in cases if case.ours() != case.theirs] == []


@pytest.mark.parametrize("case", _params(ALL, LISTED))
def test_listed_difference_to_sillytavern_still_exists(case: Case) -> None:
    assert ours(case) != case.theirs


@pytest.mark.parametrize("name", NOBODY_SPEAKS.cases)
def test_example_text_without_speaker_is_the_only_difference_to_sillytavern(name: str) -> None:
    [made], [told] = PROMPTS[name].ours(), PROMPTS[name].theirs
    heading = PROMPTS[name].given.get("openai", {}).get("new_example_chat_prompt", "[Example Chat]")
    kept = Counter(map(str, made)) - Counter(map(str, told))
    assert kept
    assert all("'role': 'system', 'name': None" in message for message in kept)
    with_speakers = [
        message
        for message, after in pairwise([*told, {"name": None}])
        if message["content"] != heading or after["name"]
    ]
    assert [message for message in made if str(message) not in kept] == with_speakers


def test_text_deeper_than_a_cut_history_is_placed_at_the_history_s_top() -> None:
    """SillyTavern loses this text (S3-06)."""
    [made], [told] = ours(PROMPTS["trim-inject-700"]), PROMPTS["trim-inject-700"].theirs
    at = [message["content"] for message in made].index("TWENTY")
    assert made[at - 1]["content"] == "[Start a new Chat]"
    assert made[at + 1 :] == told[at + 1 :]


@pytest.mark.parametrize(
    ("cases", "least", "count"),
    [(LORE, 99, 300), (PROMPTS, 99, 180), (MACROS, 99, 200), (SCRIPTS, 99, 500)],
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
