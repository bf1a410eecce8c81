"""What an NPC would be told next: the newest turn's inputs with all that counts today, and a line.

The moment is the one of that turn (who was there, its history); the preview of the game itself,
`component/preview`, reads the moment anew. Nothing is stored and no model is asked.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from evennia_ai.compose import compose
from evennia_ai.errors import NotStoredError
from evennia_ai.minds.edits import AsOfToday
from evennia_ai.prompt.messages import pending
from evennia_ai.prompt.report import Report, report_of
from evennia_ai.store.history import turns
from evennia_ai.web.site.column import column_of, rows
from evennia_ai.web.site.looking import past_of, seer_for
from evennia_ai.web.site.page import Page, name_of

MOST_TYPED: Final = 1000


def told_next(account: Any, ref: str, line: str) -> tuple[int, Report]:
    """The prompt that an NPC would be given for a line, as an account may see it.

    With it the number of the turn whose moment it is; NotStoredError: it has had none. "" is what
    was said then.
    """
    newest = turns.last_turn(ref)
    if newest is None:
        raise NotStoredError("turn of the NPC with the number", ref)
    inputs = AsOfToday()(past_of(newest))
    if line and inputs.event is not None:
        inputs = replace(inputs, event=pending(line, name=inputs.event.name))
    return newest.number, seer_for(account, ref).report(report_of(compose(inputs)))


class NextPage(Page):
    """`/ai/npc/<ref>/next/`: the prompt that a line would make, and which lore it wakes."""

    template = "evennia_ai/next.html"

    def told(self, ref: str) -> dict[str, Any]:
        line = self.request.GET.get("say", "")[:MOST_TYPED].strip()
        number, report = told_next(self.request.user, ref, line)
        column = column_of(report)
        return {
            "ref": ref,
            "name": name_of(ref),
            "turn": number,
            "say": line,
            "lore": [one for one in column["kept"] if one["item"].startswith("lore:")],
            **column,
        }

    def beside(self, told: Mapping[str, Any]) -> dict[str, Any]:
        everything = "all" in self.request.GET
        return {"rows": list(rows(told["messages"], everything=everything)), "movable": {}}
