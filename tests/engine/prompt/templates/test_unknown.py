"""The list of unknown macros, which imports and lints report."""

import pytest

from evennia_ai.engine.prompt.templates.unknown import MOST_UNKNOWN, unknown_macros


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("{{char}} {{USER}} {{description}} {{lastMessage}} {{trim}} {{outlet::x}}", ()),
        ("{{setvar::a::{{random::b::c}}}}{{getvar::a}}{{roll 1d6}}{{// x}}", ()),
        ("{{summary}} and {{ summary }} and {{summary}}", ("{{summary}}", "{{ summary }}")),
        ("{{time}} {{Date}} {{weekday}} {{isotime}} {{isodate}} {{time_UTC+2}}", ()),
        ("{{datetimeformat YYYY}} {{time::UTC-3}} {{time::Mars}}", ()),
        ("{{time_UTC+99}}", ("{{time_UTC+99}}",)),
        ("{{#if x}}a{{/if}}{{if user}}b", ("{{if user}}",)),
        ("{{/if}} {{weather}} {{#each x}}", ("{{/if}}", "{{weather}}", "{{#each x}}")),
        ("{{setvar::a::{{summary}}}}", ("{{summary}}",)),
        ("{{reverse:{{user}}}}", ()),
        ("{{reverse:{{user}}", ("{{reverse:",)),
        ("{{weather::{{user}}}}", ("{{weather::{{user}}}}",)),
        ("{{outlet::{{char}}}}", ("{{outlet::{{char}}}}",)),
        ("{{//}} {{weather}} {{///}}", ()),
        ("{{if {{getvar::x}}}}yes{{else}}no{{/if}}", ()),
        ("{{setvar::a}}", ("{{setvar::a}}",)),
        ("no macro", ()),
    ],
)
def test_unknown_macros_are_listed_in_the_order_of_the_text(
    text: str, unknown: tuple[str, ...]
) -> None:
    assert unknown_macros(text) == unknown


def test_list_of_unknown_macros_is_limited_and_long_macros_are_cut() -> None:
    assert len(unknown_macros("".join(f"{{{{x{n}}}}}" for n in range(500)))) == MOST_UNKNOWN
    [told] = unknown_macros("{{" + "x" * 5_000 + "}}")
    assert len(told) == 60
