"""A preview of the prompt that an NPC would get if the builder now said a line to it.

It is the same preview as `component/preview` in the game. Nothing is stored and no model is asked.
"""

from collections.abc import Mapping
from typing import Any, Final

from evennia_ai.web.site import running_game
from evennia_ai.web.site.column import column_of, column_rows, sentences, why_values
from evennia_ai.web.site.page import Page, name_of

MOST_TYPED: Final = 1000


class NextPage(Page):
    """`/ai/npc/<ref>/next/`: the prompt for a line, and the lore that the line activates."""

    template = "evennia_ai/next.html"
    _preview: running_game.Preview

    def page_values(self, ref: str) -> dict[str, Any]:
        line = self.request.GET.get("say", "")[:MOST_TYPED].strip()
        self._preview = running_game.preview(ref, line, account=self.request.user)
        column = column_of(self._preview.report)
        return {
            "ref": ref,
            "name": name_of(ref),
            "say": line,
            "why": sentences(self._preview.reasons),
            "lore": [one for one in column["kept"] if one["item"].startswith("lore:")],
            **column,
        }

    def html_values(self, told: Mapping[str, Any]) -> dict[str, Any]:
        everything = "all" in self.request.GET
        found = self._preview
        return {
            "rows": list(column_rows(told["messages"], everything=everything)),
            "movable": {},
            **why_values(told["messages"], found.reasons, found.titles),
        }
