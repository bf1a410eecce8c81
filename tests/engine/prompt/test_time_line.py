"""The time line at the end of a message, which only the model reads."""

import pytest

from evennia_ai.engine.memory.scenes import words_of_message
from evennia_ai.engine.prompt.messages import Message, with_time_line, without_time_line
from evennia_ai.formats.scenario import run_scenario
from tests.formats.scenario.builders import a_book, an_entry

SAID = with_time_line("Oren, when?", "1325-05-03 14:01")


@pytest.mark.parametrize(
    "text",
    ["", "Oren?", "Oren? [Now: 1325-05-03 14:01]", "[Now: x]", "a\nb]", "a\n[Now: b", "]" * 200],
)
def test_without_time_line_removes_only_the_time_line(text: str) -> None:
    assert without_time_line(text) == text
    assert without_time_line(with_time_line(text, "2026-11-22 08:01 UTC")) == text
    assert with_time_line(text, "") == text


def test_lore_keys_are_not_found_in_the_time_line() -> None:
    entries = [an_entry("A", "now"), an_entry("B", "1325"), an_entry("C", "oren")]
    scenario = {"lorebooks": [{"book": a_book(*entries)}], "event": {"content": SAID}}
    assert [one["content"] for one in run_scenario(scenario)["activated"]] == ["C"]


def test_memories_are_not_compared_with_the_time_line() -> None:
    message = Message(role="user", content=SAID)
    assert words_of_message(message) == words_of_message(
        Message(role="user", content="Oren, when?")
    )


def test_last_message_has_no_time_line() -> None:
    part = {"key": "said", "content": "Said: {{lastMessage}}", "injection_depth": 1}
    result = run_scenario({"components": [part], "event": {"content": SAID}})
    assert 'Said: "Oren, when?"' in [one["content"] for one in result["messages"]]
