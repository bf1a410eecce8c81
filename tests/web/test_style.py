"""The conditions in the style sheet, which are few so that few screens need to be checked."""

import re
from pathlib import Path

import evennia_ai

STYLE = (Path(evennia_ai.__file__).parent / "static" / "evennia_ai" / "pages.css").read_text(
    encoding="utf-8"
)
IN_THE_DARK = re.compile(r"@media \(prefers-color-scheme: dark\) \{\s*:root \{([^{}]*)\}\s*\}")
WHEN_NARROW = re.compile(r"@media \(max-width: 720px\) \{((?:[^{}]*\{[^{}]*\})*)\s*\}")


def test_style_depends_only_on_colour_scheme_width_and_reduced_motion():
    asked = re.findall(r"@media ([^{]*?) *\{", STYLE)
    assert sorted(asked) == [
        "(max-width: 720px)",
        "(prefers-color-scheme: dark)",
        "(prefers-reduced-motion: reduce)",
    ]


def test_dark_style_changes_only_named_colours():
    (told,) = IN_THE_DARK.findall(STYLE)
    names = [one.partition(":")[0].strip() for one in told.split(";") if one.strip()]
    assert names
    assert [name for name in names if not name.startswith("--")] == []


def test_narrow_style_changes_no_colour():
    (told,) = WHEN_NARROW.findall(STYLE)
    assert "grid-template-columns" in told
    assert re.findall(r"--|color|background|#[0-9a-fA-F]{3}", told) == []
