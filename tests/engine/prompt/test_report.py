"""The report of a prompt as text: it is complete, fits its width, and is safe for a terminal."""

from dataclasses import replace

import pytest

from evennia_ai.engine.prompt.messages import Message, ToolCall, said
from evennia_ai.engine.prompt.notes import AuthorsNote
from evennia_ai.engine.prompt.report import (
    Report,
    explain_lines,
    final_verdicts,
    make_report,
    token_shares,
    trace_lines,
)
from evennia_ai.engine.prompt.trace import Verdict
from evennia_ai.engine.text.columns import (
    clip_text,
    count_columns,
    escape_controls,
    wrap_items,
    wrap_text,
)
from tests.effort import little_work
from tests.engine.prompt.builders import a_component, a_history, injected, the_prompt

HOSTILE = "\x1b[2J\x1b]0;owned\x07 \u202etfel \u2028 |r red"


def a_report(**options: object) -> Report:
    components = [
        a_component("You are Oren.", id=1000, key="character_context"),
        injected("You are in a hurry.", 2, key="mood"),
        a_component("never", id=1202, key="off", enabled=False),
    ]
    options.setdefault("history", a_history(4))
    prompt = the_prompt(
        components, event="Hello?", notes=[AuthorsNote(content="A note.")], **options
    )
    return make_report(prompt)


def test_trace_shows_messages_in_order_with_injected_ones_marked() -> None:
    lines = trace_lines(a_report())
    marked = [line for line in lines if "|>" in line]
    assert [line.split()[-1] for line in marked if "system" in line] == ["note:0", "component:mood"]
    at = {line.strip(): i for i, line in enumerate(lines)}
    history = [i for line, i in at.items() if line.startswith("-- history: 4 messages, 2 injected")]
    event = [i for line, i in at.items() if line.startswith("-- event")]
    assert history < [i for line, i in at.items() if "component:mood" in line][:1] < event


def test_trace_shows_which_tools_were_called() -> None:
    call = ToolCall(id="t1", name="give", arguments='{"to": "Anna"}')
    asked = Message(role="assistant", content="", tool_calls=(call,), block="history")
    report = a_report(history=[*a_history(2), asked])
    assert any(line.endswith('calls give {"to": "Anna"}') for line in trace_lines(report))


def test_trace_separates_kept_items_from_those_left_out_with_reasons() -> None:
    kept, left = final_verdicts(a_report())
    assert "component:mood" in [verdict.item for verdict in kept]
    assert ("component:off", "disabled") in [(v.item, v.reason) for v in left]
    text = "\n".join(trace_lines(a_report()))
    assert "component:off: expansion: disabled" in text
    assert "depth 2 from the newest: 2 messages follow" in " ".join(text.split())


def test_first_stage_that_left_a_text_out_is_reported() -> None:
    stages = [
        Verdict(stage="activate", item="lore:b#1", kept=True, reason="constant", cause="constant"),
        Verdict(stage="expand", item="lore:b#1", kept=False, reason="no place"),
        Verdict(stage="budget", item="lore:b#1", kept=True, reason="fits"),
    ]
    kept, (left,) = final_verdicts(replace(a_report(), verdicts=tuple(stages)))
    assert kept == []
    assert (left.stage, left.reason, left.cause) == ("expand", "no place", "constant")


def test_token_bar_of_a_report_never_exceeds_its_cells() -> None:
    made = token_shares(a_report(), cells=2)
    assert len(made) > 2
    assert [share.cells for share in made] == [1, 1, *[0] * (len(made) - 2)]


def test_trace_shows_the_cache_account() -> None:
    report = a_report()
    text = "\n".join(trace_lines(report))
    spots = ", ".join(map(str, report.breakpoints))
    assert f"breakpoints after message {spots}; {report.stable_tokens} tokens" in text
    assert f"sha256 {report.sha256}" in text


def test_trace_names_the_text_that_broke_the_cached_prefix() -> None:
    older = the_prompt([a_component("Calm.", key="mood")], history=a_history(2))
    newer = the_prompt([a_component("Angry.", key="mood")], history=a_history(2))
    text = " ".join(trace_lines(make_report(newer, older=older.messages)))
    assert "0 tokens shared with the prompt before; broken first by component:mood" in text


@pytest.mark.parametrize("width", [40, 60, 78, 120])
def test_trace_line_is_never_wider_than_the_given_width(width: int) -> None:
    history = [said("user", "渡し船" * 40, name="アンナ" * 20), *a_history(3, words=60)]
    report = a_report(history=history)
    for lines in (trace_lines(report, width=width), explain_lines(report, "mood", width=width)):
        assert max(count_columns(line) for line in lines) <= width


def test_control_characters_of_players_are_escaped_in_a_trace() -> None:
    report = a_report(history=[said("user", HOSTILE, name=HOSTILE)])
    for lines in (
        trace_lines(report),
        explain_lines(report, "1"),
        explain_lines(report, HOSTILE),
    ):
        text = "".join(lines)
        assert not set(text) & {"\x1b", "\x07", "\u202e", "\u2028", "\n"}
    assert "\\x1b[2J" in "".join(trace_lines(report))


def test_every_kind_of_text_gets_at_least_one_cell_of_the_token_bar() -> None:
    report = a_report()
    parts = token_shares(report, cells=40)
    assert all(part.cells >= 1 for part in parts)
    assert sum(part.cells for part in parts) <= 40
    assert sum(part.tokens for part in parts) == report.tokens
    assert [part.kind for part in parts] == ["component", "note", "history", "event", "framing"]


@pytest.mark.parametrize(
    ("text", "limit", "shown"),
    [("short", 9, "short"), ("too long", 6, "too..."), ("渡し船", 5, "渡..."), ("abc", 0, "")],
)
def test_text_is_clipped_by_columns(text: str, limit: int, shown: str) -> None:
    assert clip_text(text, limit) == shown


def test_text_is_wrapped_at_words_and_long_words_are_broken() -> None:
    assert wrap_text("one two three", 8) == ["one two", "three"]
    assert wrap_text("abcdefgh", 3) == ["abc", "def", "gh"]
    assert wrap_text("", 8) == [""]
    assert wrap_text("one\ntwo", 8) == ["one", "two"]


@pytest.mark.parametrize("unit", ["漢", "é", "\u200d", "漢 ", "a", "\x00"])
def test_very_long_line_is_wrapped_in_linear_time(unit: str) -> None:
    with little_work():
        lines = wrap_text(unit * 100_000, 74)
        assert max(map(count_columns, lines)) <= 74


def test_escaped_text_has_no_control_characters() -> None:
    assert escape_controls("a\tb\x00c\ud800") == "a\\x09b\\x00c\\ud800"
    assert escape_controls("Straße 渡し船 🙂") == "Straße 渡し船 🙂"


def test_list_of_items_is_wrapped_only_between_items() -> None:
    assert wrap_items(["one 1", "two 2", "three 3"], 14) == ["one 1, two 2,", "three 3"]
    assert wrap_items(["much too long"], 8) == ["much ..."]
    assert wrap_items([], 8) == [""]
