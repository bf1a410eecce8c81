"""Which macros stay as they are written: one answer for imports and lints."""

import pytest

from evennia_ai.prompt.templates.unknown import MOST_UNKNOWN, unknown_macros


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("{{char}} {{USER}} {{description}} {{lastMessage}} {{trim}} {{outlet::x}}", ()),
        ("{{setvar::a::{{random::b::c}}}}{{getvar::a}}{{roll 1d6}}{{// x}}", ()),
        ("{{weekday}} and {{ weekday }} and {{weekday}}", ("{{weekday}}", "{{ weekday }}")),
        ("{{time_UTC+2}}", ("{{time_UTC+2}}",)),
        ("{{#if x}}a{{/if}}", ("{{#if x}}", "{{/if}}")),
        ("{{setvar::a::{{weekday}}}}", ("{{weekday}}",)),
        ("{{reverse:{{user}}}}", ("{{reverse:",)),
        ("{{setvar::a}}", ("{{setvar::a}}",)),
        ("no macro", ()),
    ],
)
def test_what_nothing_knows_is_told_in_its_order(text: str, unknown: tuple[str, ...]) -> None:
    assert unknown_macros(text) == unknown


def test_of_very_many_the_first_are_told_and_a_long_one_is_cut() -> None:
    assert len(unknown_macros("".join(f"{{{{x{n}}}}}" for n in range(500)))) == MOST_UNKNOWN
    [told] = unknown_macros("{{" + "x" * 5_000 + "}}")
    assert len(told) == 60
