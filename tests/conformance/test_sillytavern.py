"""Test that the rules `sillytavern` give the answers of SillyTavern 1.19.

`test_kit.py` runs the conformance kit against this package; these tests compare the results with
`differences.py`, which lists the cases in which the package differs.
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
from tests.conformance.kit_run import results_of_this_package
from tests.conformance.script_cases import SCRIPTS
from tests.conformance.sillytavern_cases import LORE, MACROS, PROMPTS, Case, share_of

DIFFERENT = {name: one for one in ON_PURPOSE for name in one.cases}
LISTED = {*DIFFERENT, *NOT_ASKED, *OPEN}
ALL = {**PROMPTS, **MACROS}
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "scenarios.md"
COUNTED_EXACTLY = {
    name for name, case in PROMPTS.items() if "openai_max_context" in case.case["input"]["preset"]
}


@pytest.fixture(scope="module")
def differing(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the cases that do not agree, by id, with the reason."""
    return results_of_this_package(tmp_path_factory.mktemp("kit"))["cases"]


def wrong(cases: dict[str, Case], differing: dict[str, Any]) -> dict[str, str]:
    """Return the reasons of cases that differ without being listed."""
    asked = cases.keys() - LISTED - COUNTED_EXACTLY
    return {
        name: differing[id_]["why"]
        for name in asked
        if (id_ := cases[name].case["id"]) in differing
    }


def test_each_fortieth_case_gives_the_answer_of_sillytavern() -> None:
    asked = {**LORE, **ALL}
    names = sorted(asked.keys() - LISTED - COUNTED_EXACTLY)[::40]
    assert {name: found for name in names if (found := asked[name].wrong())} == {}


@pytest.mark.long
def test_lore_case_gives_the_same_entries_as_sillytavern(differing: dict[str, Any]) -> None:
    assert wrong(LORE, differing) == {}


@pytest.mark.long
def test_prompt_equals_the_one_that_sillytavern_assembled(differing: dict[str, Any]) -> None:
    assert wrong(PROMPTS, differing) == {}


@pytest.mark.long
def test_macro_case_gives_the_text_and_variables_of_sillytavern(differing: dict[str, Any]) -> None:
    assert wrong(MACROS, differing) == {}


def test_regex_script_makes_the_text_of_sillytavern_unless_it_is_listed() -> None:
    different = {name for name, case in SCRIPTS.items() if case.wrong()}
    assert different == SCRIPTS.keys() & LISTED


@pytest.mark.long
def test_listed_difference_to_sillytavern_still_exists(differing: dict[str, Any]) -> None:
    listed = LISTED - COUNTED_EXACTLY - SCRIPTS.keys()
    assert {name for name in listed if ALL[name].case["id"] not in differing} == set()


@pytest.mark.long
def test_files_and_safety_agree_in_every_case_of_the_kit(differing: dict[str, Any]) -> None:
    """Only cases of SillyTavern may differ."""
    own = {name for name in differing if name.startswith(("card/", "safety/"))}
    assert own == set()


@pytest.mark.extra
def test_prompt_of_a_small_context_equals_the_one_that_sillytavern_assembled() -> None:
    need("bpe_openai", undone="nothing is counted as the application counts")
    found = {name: PROMPTS[name].wrong() for name in sorted(COUNTED_EXACTLY)}
    assert {name: one for name, one in found.items() if one and name not in LISTED} == {}
    assert {name for name, one in found.items() if not one and name in LISTED} == set()


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


@pytest.mark.extra
def test_text_deeper_than_the_history_in_the_prompt_is_placed_at_its_top() -> None:
    """SillyTavern loses this text (S3-06)."""
    need("bpe_openai", undone="nothing is counted as the application counts")
    made, told = PROMPTS["trim-inject-700"].messages()
    at = [message["content"] for message in made].index("TWENTY")
    assert made[at - 1]["content"] == "[Start a new Chat]"
    assert made[at + 1 :] == told[at + 1 :]


@pytest.mark.parametrize(
    ("cases", "least", "count"),
    [(LORE, 99, 300), (PROMPTS, 99, 180), (MACROS, 99, 200), (SCRIPTS, 100, 500)],
)
def test_share_of_cases_that_agree_with_sillytavern_is_high(
    cases: dict[str, Any], least: int, count: int
) -> None:
    share = share_of(cases)
    assert share.percent >= least
    assert share.counted >= count


def test_listed_differences_name_existing_cases_once() -> None:
    names = [*NOT_ASKED, *OPEN, *(name for one in ON_PURPOSE for name in one.cases)]
    assert len(names) == len(set(names))
    assert set(names) <= ALL.keys() | SCRIPTS.keys()


def test_documentation_has_the_table_of_differences_on_purpose() -> None:
    """`python -m tests.conformance` writes the table."""
    assert render_differences() in PAGE.read_text("utf-8")
