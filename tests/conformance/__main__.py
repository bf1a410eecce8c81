"""Print the shares of SillyTavern's cases that agree, and write the tables of two pages."""

import re
from pathlib import Path

from tests.conformance.differences import VERSION, render_differences
from tests.conformance.scores import render_scores
from tests.conformance.script_cases import SCRIPTS
from tests.conformance.sillytavern_cases import LORE, MACROS, PROMPTS, share_of

PAGE = Path("docs/reference/scenarios.md")
SCORES = Path("docs/extend/conformance-kit.md")

print(f"SillyTavern {VERSION}, without the cases that differ on purpose:")
parts = {"lore": LORE, "whole prompts": PROMPTS, "macros": MACROS, "regex scripts": SCRIPTS}
for name, cases in parts.items():
    share = share_of(cases)
    print(f"{name}: {share.agree} of {share.counted}, {share.percent:.1f} %")
for page, head, table in (
    (PAGE, r"SillyTavern [0-9.]+ \| evennia_ai", render_differences()),
    (SCORES, r"program \| date", render_scores()),
):
    place = re.compile(rf"^\| {head} \|.*?(?=\n\n)", re.DOTALL | re.MULTILINE)
    page.write_text(place.sub(lambda _, new=table: new, page.read_text("utf-8")), "utf-8")
