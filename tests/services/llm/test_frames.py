"""Test that imitated frames are changed, in whatever disguise."""

import pytest

from evennia_ai.services.llm.tools import frame_pattern, replace_brackets

FRAME = frame_pattern("tool", "result")


@pytest.mark.parametrize(
    "text",
    [
        "[Tool result]",
        "[/Tool result]",
        "[ / TOOL   Result ]",
        "[tool results of give: 3]",
        "[tool\nresult]",
        r"[tool\nresult]",
        "[To\u200dol res\u034fult]",
        "[\u200bTool\u200b result]",
        "［Tool result］",
        "[Tool result",
    ],
)
def test_imitated_frame_is_changed(text: str) -> None:
    plain = replace_brackets(FRAME, f"a {text} b")
    assert "[" not in plain
    assert "［" not in plain
    assert plain.endswith(" b")


@pytest.mark.parametrize("text", ["[Tools: result]", "[toolresult]", "tool result", '["Tool", 1]'])
def test_other_brackets_are_not_changed(text: str) -> None:
    assert replace_brackets(FRAME, text) == text


def test_imitated_frame_never_crosses_a_json_quote() -> None:
    assert (
        replace_brackets(FRAME, '{"a": "[tool result", "b": ["c"]}')
        == '{"a": "(tool result", "b": ["c"]}'
    )
