"""Print the shares of SillyTavern's cases that agree, and write the table of differences."""

import re
from pathlib import Path

from tests.conformance.differences import VERSION, render_differences
from tests.conformance.sillytavern_cases import LORE, MACROS, PROMPTS, SCRIPTS, share_of

PAGE = Path("docs/reference/scenarios.md")

print(f"SillyTavern {VERSION}, without the cases that differ on purpose:")
parts = {"lore": LORE, "whole prompts": PROMPTS, "macros": MACROS, "regex scripts": SCRIPTS}
for name, cases in parts.items():
    share = share_of(cases)
    print(f"{name}: {share.agree} of {share.counted}, {share.percent:.1f} %")
table = re.compile(r"^\| SillyTavern [0-9.]+ \| evennia_ai \|.*?(?=\n\n)", re.DOTALL | re.MULTILINE)
text = PAGE.read_text("utf-8")
PAGE.write_text(table.sub(lambda _: render_differences(), text), "utf-8")
