"""What an NPC would be told next if the builder said a line to it now.

It is the preview of the game itself, `component/preview`: nothing is stored and no model is asked.
"""

from collections.abc import Mapping
from typing import Any, Final

from evennia_ai.prompt.report import Report
from evennia_ai.web.site import running_game
from evennia_ai.web.site.column import column_of, rows
from evennia_ai.web.site.page import Page, name_of

MOST_TYPED: Final = 1000


def preview_seen(account: Any, ref: str, line: str) -> Report:
    """Return the prompt that an NPC would be given for a line, as an account may see it."""
    return running_game.preview(ref, line, account=account)


class NextPage(Page):
    """`/ai/npc/<ref>/next/`: the prompt that a line would make, and the lore that it activates."""

    template = "evennia_ai/next.html"

    def told(self, ref: str) -> dict[str, Any]:
        line = self.request.GET.get("say", "")[:MOST_TYPED].strip()
        column = column_of(preview_seen(self.request.user, ref, line))
        return {
            "ref": ref,
            "name": name_of(ref),
            "say": line,
            "lore": [one for one in column["kept"] if one["item"].startswith("lore:")],
            **column,
        }

    def beside(self, told: Mapping[str, Any]) -> dict[str, Any]:
        everything = "all" in self.request.GET
        return {"rows": list(rows(told["messages"], everything=everything)), "movable": {}}
