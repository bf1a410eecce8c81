"""The golden scenarios on the page, in its JSON, on the game's screen and on the command line."""

import html
import json
import re
from pathlib import Path

import pytest

from evennia_ai.engine.prompt.report import final_verdicts, make_report, trace_lines
from evennia_ai.formats.scenario import composed_turns, read_scenario, result_of
from evennia_ai.web.site.column import column_of, column_rows
from tests.formats.scenario.test_golden_cases import CASES

GOLDEN = sorted(name for name, case in CASES.items() if "error" not in case["expect"])
FOLDER = Path("scenarios")


def faces_of(name):
    """Return the report of a scenario's last turn, what a page shows of it, and what the CLI
    prints.
    """
    from django.template.loader import render_to_string

    turns = list(composed_turns(read_scenario(CASES[name]["given"], folder=FOLDER)))
    report = make_report(turns[-1].made.prompt)
    told = json.loads(json.dumps(column_of(report)))
    shown = {**told, "rows": list(column_rows(told["messages"], everything=True)), "movable": {}}
    page = "".join(
        render_to_string(f"evennia_ai/parts/{part}.html", shown)
        for part in ("bar", "column", "why")
    )
    return report, told, page, result_of(turns[-1])


def test_there_are_forty_golden_scenarios():
    assert len(GOLDEN) >= 40


@pytest.mark.parametrize("name", GOLDEN)
def test_page_json_screen_and_cli_show_the_same_origins_and_numbers(db, name):
    report, told, page, printed = faces_of(name)
    kept, left = final_verdicts(report)
    # The contents of the prompt, message by message.
    origins = [part["origin"] for one in told["messages"] for part in one["parts"]]
    assert origins == [
        origin
        for message in report.messages
        for origin in [part.origin for part in message.parts] or [message.block]
    ]
    folded = {
        part["origin"]
        for one in told["messages"]
        if not (one["said"] or one["block"] in ("event", "tool"))
        for part in one["parts"]
    }
    assert set(map(html.unescape, re.findall(r'data-origin="([^"]+)"', page))) == folded
    # What was kept and what was left out.
    on_page = [html.unescape(one) for one in re.findall(r'<li data-item="([^"]+)">', page)]
    assert on_page[: len(kept)] == [one["item"] for one in told["kept"]]
    assert [one["item"] for one in told["kept"]] == [verdict.item for verdict in kept]
    counts = [int(one["count"]) for one in told["left_out_by_reason"]]
    assert (sum(counts), told["left_out"]) == (len(left), len(left))
    # The screen of the game and the command line.
    screen = "\n".join(trace_lines(report))
    assert [one for one in (*folded, *(v.item for v in kept)) if one not in screen] == []
    assert f"{report.tokens} of {report.limit_tokens} tokens" in page
    assert [m["content"] for m in printed["messages"]] == [
        message.content for message in report.messages
    ]
    decided = {(v["item"], v["kept"]) for v in printed["verdicts"]}
    assert {(verdict.item, True) for verdict in kept} <= decided
    assert {verdict.item for verdict in left} <= {item for item, _ in decided}
