"""A preview of a card: an NPC's newest turn, composed again with this card and chosen grants."""

from collections.abc import Mapping
from typing import Any

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.prompt.components import ALLOWS, in_order
from evennia_ai.formats.cards.loading import load_card
from evennia_ai.npc.mind.viewers import seer_for
from evennia_ai.npc.views.edits import ProposedEdit
from evennia_ai.npc.views.looking import past_inputs_for, trial_report
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.authored import cards
from evennia_ai.store.history import turns
from evennia_ai.web.site.column import column_of, column_rows
from evennia_ai.web.site.page import Page, find_npc_ref, name_of


class PreviewPage(Page):
    """`/ai/cards/<name>/<number>/preview/`: an NPC's newest turn as it would be with this card.

    The parameter `npc` names the NPC; without it, the page takes an NPC that plays the card. Each
    parameter `grant` names a grant that the card would have. Nothing is stored and no model is
    asked.
    """

    template = "evennia_ai/preview.html"
    section = "cards"

    def page_values(self, name: str, number: int) -> dict[str, Any]:
        asked = self.request.GET.get("npc", "").strip()
        ref = find_npc_ref(asked) if asked else next(iter(cards.players_of(name)), "")
        newest = turns.last_turn(ref) if ref else None
        if newest is None:
            why = f"{name_of(ref)} has had no turn" if ref else "no NPC plays this card"
            raise FormatError("npc", f"{why}; name an NPC that has had a turn")
        granted = frozenset(g for g in ALLOWS if g in self.request.GET.getlist("grant"))
        file = cards.CARDS.revision_file(name, number)
        found = load_card(file.content, limits=conf().card_limits)
        edit = ProposedEdit(card=found.card, grants=granted)
        report = trial_report(past_inputs_for(seer_for(self.request.user, ref), newest), edit)
        return {
            "name": name,
            "number": number,
            "ref": ref,
            "npc": name_of(ref),
            "turn": newest.number,
            "granted": list(in_order(granted)),
            **column_of(report),
        }

    def html_values(self, told: Mapping[str, Any]) -> dict[str, Any]:
        everything = "all" in self.request.GET
        switches = [{"grant": one, "on": one in told["granted"]} for one in ALLOWS]
        return {
            "rows": list(column_rows(told["messages"], everything=everything)),
            "movable": {},
            "switches": switches,
        }
