"""Macros for the time: all show the moment of the turn, in the formats of SillyTavern."""

import pytest

from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.templates.clock import clock_values
from evennia_ai.engine.prompt.templates.template import compile_template
from evennia_ai.engine.prompt.templates.work import Meter

NOW = "2026-11-28T15:04:05+00:00"
INDIA = "2026-11-28T20:34:05+05:30"
MIDNIGHT = "2027-01-01T00:00:00+00:00"


def rendered(text: str, now: str) -> str:
    dice = Dice(turn="1", conversation="1")
    return compile_template(text, trust="imported").render(clock_values(now), dice, meter=Meter())


@pytest.mark.parametrize(
    ("text", "now", "result"),
    [
        ("{{time}}|{{Date}}|{{ weekday }}", NOW, "3:04 PM|November 28, 2026|Saturday"),
        ("{{isotime}}|{{isodate}}", NOW, "15:04|2026-11-28"),
        ("{{time}}|{{isotime}}|{{isodate}}", INDIA, "8:34 PM|20:34|2026-11-28"),
        ("{{time_UTC+2}}|{{time_utc-5}}|{{time::UTC+0}}", INDIA, "5:04 PM|10:04 AM|3:04 PM"),
        ("{{time::UTC}}|{{time_UTC}}|{{time UTC-1}}", NOW, "3:04 PM|3:04 PM|2:04 PM"),
        ("{{time_UTC-1}}", MIDNIGHT, "11:00 PM"),
        ("{{datetimeformat::YYYY-MM-DD HH:mm:ss}}", NOW, "2026-11-28 15:04:05"),
        ("{{datetimeformat LLLL}}", NOW, "Saturday, November 28, 2026 3:04 PM"),
        ("{{datetimeformat [at] h:mm a}}", NOW, "at 3:04 pm"),
        ("{{datetimeformat:YYYY}}", NOW, "2026"),
        ("{{datetimeformat YYYY-MM-DDTHH:mm Z}}", INDIA, "2026-11-28T20:34 +05:30"),
        ("{{datetimeformat ddd, MMM Do YY, DDDo}}", NOW, "Sat, Nov 28th 26, 332nd"),
        ("{{datetimeformat [week] W, Qo, S}}", NOW, "week 48, 4th, 0"),
        ("{{datetimeformat kk hh:mm A X E d ZZ}}", MIDNIGHT, "24 12:00 AM 1798761600 5 5 +0000"),
        ("{{datetimeformat l|ll|L|LTS}}", NOW, "11/28/2026|Nov 28, 2026|11/28/2026|3:04:05 PM"),
        ("{{reverse:{{isotime}}}}{{setvar::t::{{isotime}}}}{{getvar::t}}", NOW, "40:5115:04"),
        ("{{reverse:{{datetimeformat HH}}}}", NOW, "51"),
        (
            "{{time::Mars}}|{{datetimeformat {{isodate}}}}",
            NOW,
            "3:04 PM|{{datetimeformat 2026-11-28}}",
        ),
        ("{{timeDiff::2026-01-01 15:00:00::2026-01-01 12:00:00}}", "", "in 3 hours"),
        ("{{timediff::2026-01-01::2026-02-01}}|{{timediff::a::b}}", "", "a month ago|Invalid date"),
        ("{{timediff::2026-01-01 12:00:00::2026-01-01 12:00:20}}", "", "a few seconds ago"),
        (
            "{{timediff::2026-01-03::2026-01-01}}|{{timediff::2026-01-01::2028-02-01}}",
            "",
            "in 2 days|2 years ago",
        ),
        # Macros that are no valid time macro, or that have no clock, stay as written.
        ("{{time_UTC+24}}{{datetimeformat}}", NOW, None),
        ("{{datetimeformat  }}{{datetimeformatX}}", NOW, None),
        ("{{time}}{{datetimeformat HH}}{{time_UTC+1}}", "", None),
    ],
)
def test_time_macro_gives_the_moment_of_the_turn(text: str, now: str, result: str | None) -> None:
    assert rendered(text, now) == (text if result is None else result)


@pytest.mark.parametrize("now", ["0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59+00:00"])
def test_time_macro_in_a_year_that_python_cannot_express_is_a_template_error(now: str) -> None:
    text = "{{time_UTC-12}}{{time_UTC+12}}"
    template = compile_template(text, trust="imported")
    assert template.render(clock_values(now), Dice(turn="1", conversation="1")) == text
