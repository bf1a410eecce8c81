"""The golden cases of scenarios: their messages, verdicts and errors.

A case in `cases/*.yaml` has a title, a scenario (`given`) and the expected result (`expect`). The
result has the form that `golden.shown` gives it, so that a changed one can be read line by line.
"""

from pathlib import Path
from typing import Any

import pytest

from evennia_ai.engine.foreign.documents import read_document
from tests.formats.scenario.golden import shown

FOLDER = Path(__file__).parent / "cases"
CASES: dict[str, dict[str, Any]] = {
    case["name"]: case
    for path in sorted(FOLDER.glob("*.yaml"))
    for case in read_document(path, kind="case")
}
# The golden cases that test a requirement in docs/extend/requirements.md.
REQUIRED = [
    pytest.param("the_picture_of_depth_4", marks=pytest.mark.req("S3-04", "S3-14")),
    pytest.param("every_id_in_its_order", marks=pytest.mark.req("S3-12")),
    pytest.param("too_deep_is_the_top_of_the_history", marks=pytest.mark.req("S3-05", "S3-06")),
    pytest.param("clamped_and_equal_depths", marks=pytest.mark.req("S3-16", "S3-17")),
    pytest.param("order_breaks_ties_of_one_depth", marks=pytest.mark.req("S3-02", "S3-18")),
    pytest.param("an_empty_history_has_one_slot", marks=pytest.mark.req("S3-07")),
    pytest.param("depth_0_in_two_ways", marks=pytest.mark.req("S3-03", "S3-32")),
    pytest.param("a_tool_keeps_its_result", marks=pytest.mark.req("S3-30")),
    pytest.param("disabled_and_empty_components", marks=pytest.mark.req("S3-33")),
    pytest.param("a_note_at_its_default_depth", marks=pytest.mark.req("S3-09")),
    pytest.param("post_history_instructions_of_a_card", marks=pytest.mark.req("S3-10")),
    pytest.param(
        "post_history_instructions_of_an_unapproved_card",
        marks=pytest.mark.req("S3-08", "S3-10"),
    ),
    pytest.param("lore_wakes_by_its_key", marks=pytest.mark.req("S3-11")),
    pytest.param("lore_sleeps_without_its_key", marks=pytest.mark.req("S3-11")),
    pytest.param("card_depth_counts_from_the_newest", marks=pytest.mark.req("S3-25")),
    pytest.param("card_depth_0_is_after_the_newest", marks=pytest.mark.req("S3-25", "S3-32")),
    pytest.param("card_reverse_depth_counts_from_the_oldest", marks=pytest.mark.req("S3-26")),
    pytest.param("card_positions", marks=pytest.mark.req("S3-27")),
    pytest.param("card_depths_that_are_no_depths", marks=pytest.mark.req("S3-08", "S3-28")),
    pytest.param("an_unapproved_card_is_contained", marks=pytest.mark.req("S3-08", "S3-28")),
    pytest.param("a_depth_counts_on_the_kept_history", marks=pytest.mark.req("S3-05", "S3-16")),
    pytest.param("at_the_third_message_from_the_newest", marks=pytest.mark.req("S3-34")),
    pytest.param("at_the_fifth_message_from_the_newest", marks=pytest.mark.req("S3-34")),
    pytest.param("after_the_oldest_of_several_messages", marks=pytest.mark.req("S3-34")),
    pytest.param("a_message_that_was_cut_away", marks=pytest.mark.req("S3-05", "S3-34")),
    pytest.param("two_entries_at_one_message", marks=pytest.mark.req("S3-17", "S3-34")),
    pytest.param("a_key_in_the_event", marks=pytest.mark.req("S3-34")),
    pytest.param("no_message_has_its_key", marks=pytest.mark.req("S3-34")),
    pytest.param("a_mention_in_a_tool_result", marks=pytest.mark.req("S3-30", "S3-34")),
    pytest.param("err_depth_negative", marks=pytest.mark.req("S3-08")),
    pytest.param("err_depth_boolean", marks=pytest.mark.req("S3-08")),
    pytest.param("err_depth_float", marks=pytest.mark.req("S3-08")),
    pytest.param("err_depth_text", marks=pytest.mark.req("S3-08")),
]
OTHERS = sorted(set(CASES) - {str(param.values[0]) for param in REQUIRED})


@pytest.mark.parametrize("name", [*REQUIRED, *OTHERS])
def test_scenario_gives_the_golden_result(name: str) -> None:
    case = CASES[name]
    assert shown(case["given"]) == case["expect"]


def test_names_of_golden_cases_are_unique() -> None:
    listed = [case for path in FOLDER.glob("*.yaml") for case in read_document(path, kind="case")]
    assert len(listed) == len(CASES) > 60


def test_golden_errors_are_short_lines() -> None:
    for case in CASES.values():
        error = case["expect"].get("error", "")
        assert len(error) < 500
        assert "\n" not in error
