"""The style sheets: few conditions, so that few screens need to be checked, and their colours."""

import re
from pathlib import Path

import pytest

import evennia_ai

FOLDER = Path(evennia_ai.__file__).parent / "static" / "evennia_ai"
TOKENS = (FOLDER / "tokens.css").read_text(encoding="utf-8")
SHEETS = {
    path.name: path.read_text(encoding="utf-8")
    for path in FOLDER.glob("*.css")
    if path.name != "tokens.css"
}
WHEN_NARROW = re.compile(r"@media \(max-width: 720px\) \{((?:[^{}]*\{[^{}]*\})*)\s*\}")
COLOURS = {
    name: both
    for name, *both in re.findall(
        r"--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);", TOKENS
    )
}
SURFACES = ("paper", "card", "raised")
ORIGINS = ("components", "lore", "notes", "history", "facts", "said", "tools", "framing")
TEXTS = ("ink", "soft", "accent", "ok", "warn", "bad", *ORIGINS)


def contrast(one, other):
    """Return the contrast of two colours as WCAG 2 computes it, from 1 to 21."""

    def luminance(colour):
        parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
        red, green, blue = (
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    dark, bright = sorted((luminance(one), luminance(other)))
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("name", SHEETS)
def test_style_depends_only_on_width_contrast_and_reduced_motion(name):
    asked = set(re.findall(r"@media ([^{]*?) *\{", SHEETS[name]))
    assert asked <= {
        "(max-width: 720px)",
        "(forced-colors: active)",
        "(prefers-reduced-motion: reduce)",
    }


@pytest.mark.parametrize("name", SHEETS)
def test_style_has_no_colour_of_its_own_except_tokens(name):
    sheet = re.sub(r"/\*.*?\*/", "", SHEETS[name], flags=re.DOTALL)
    assert re.findall(r"#[0-9a-fA-F]{3,8}\b(?![^{};]*\{)|rgba?\(|hsla?\(", sheet) == []
    used = set(re.findall(r"var\(--([a-z0-9-]+)", sheet))
    defined = set(re.findall(r"--([a-z0-9-]+):", sheet + TOKENS))
    assert used - defined == set()


def test_narrow_style_changes_no_colour():
    (told,) = WHEN_NARROW.findall(SHEETS["pages.css"])
    assert "grid-template-columns" in told
    assert re.findall(r"--\w+:|color|background|#[0-9a-fA-F]{3}", told) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("surface", SURFACES)
def test_text_colours_have_enough_contrast_on_every_surface(surface, theme):
    at = ["light", "dark"].index(theme)
    found = {text: contrast(COLOURS[text][at], COLOURS[surface][at]) for text in TEXTS}
    assert {text: ratio for text, ratio in found.items() if ratio < 4.5} == {}
    assert contrast(COLOURS["edge"][at], COLOURS[surface][at]) >= 3  # what can be pressed
    assert contrast(COLOURS["accent"][at], COLOURS["accent-ink"][at]) >= 4.5
