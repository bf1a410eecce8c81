"""Tool results: recorded completely, shown in part, and kept with their call."""

import pytest

from evennia_ai.engine.history.projection import project_records, tool_result_record
from evennia_ai.engine.history.records import RecordKind
from tests.engine.history.builders import a_new_record, stored

CALL = {"id": "c1", "name": "look", "arguments": "{}"}


def a_pair(body, **fields):
    """Return the stored records of a tool call and its result."""
    asked = a_new_record("", kind=RecordKind.TOOL_CALL, meta={"tool_calls": [CALL]})
    return stored([asked, tool_result_record(body, call_id="c1", **fields)])


@pytest.mark.req("S2-05")
def test_long_tool_result_is_recorded_whole_and_shown_in_part():
    records = a_pair("0123456789", most_shown=4)
    _, shown = project_records(records)

    assert records[1].body == "0123456789"
    assert shown.content == "0123\n[6 more characters are in record 1.2]"


@pytest.mark.req("S2-05")
def test_prompt_shows_4000_characters_of_a_long_tool_result():
    _, shown = project_records(a_pair("x" * 4_001))

    assert shown.content == "x" * 4_000 + "\n[1 more characters are in record 1.2]"
    assert project_records(a_pair("x" * 4_000))[1].content == "x" * 4_000


@pytest.mark.req("S2-05")
def test_tool_result_stays_after_its_call_when_shortened():
    asked, shown = project_records(a_pair("0123456789", most_shown=4))

    assert asked.tool_calls[0].id == shown.tool_call_id == "c1"


@pytest.mark.req("S2-05")
def test_long_tool_result_is_shortened_in_the_same_way_in_every_prompt():
    one, other = (project_records(a_pair("0123456789", most_shown=4)) for _ in range(2))

    assert [m.wire() for m in one] == [m.wire() for m in other]


@pytest.mark.parametrize("body", ["", "0123", "水の音だ"])
def test_short_tool_result_is_shown_unchanged(body):
    records = a_pair(body, most_shown=4)

    assert [m.content for m in project_records(records)][1] == body
    assert "shown" not in records[1].meta


def test_long_tool_result_is_not_cut_inside_a_character():
    _, shown = project_records(a_pair("水の音だよ、聞いて", most_shown=3))

    assert shown.content.startswith("水の音\n[6 more")
