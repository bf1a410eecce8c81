"""What players reported, for the staff, and what NPCs keep of a player, for the player."""

from collections.abc import Mapping
from typing import Any, Final

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse

from evennia_ai.engine.text.phrases import Phrase
from evennia_ai.npc.mind.own_data import forget_question, forgotten_in_words
from evennia_ai.npc.senses.languages import language_of, translate
from evennia_ai.store.erasing import forgettable
from evennia_ai.store.history.reports import count_reports
from evennia_ai.web.site import running_game
from evennia_ai.web.site.page import Page

REPORTS: Final = 20
_TEXTS: Final[Mapping[str, Phrase]] = {
    "title": Phrase("What NPCs keep of you"),
    "nothing": Phrase("No NPC keeps anything of you."),
    "memories": Phrase("What it remembers"),
    "private": Phrase("What you whispered to each other"),
    "aloud": Phrase("What you said aloud"),
    "persona": Phrase("Your persona"),
    "reports": Phrase("Your reports"),
    "export": Phrase("Export everything as JSON"),
    "forget": Phrase("Erase what this NPC keeps"),
    "forget_all": Phrase("Erase everything that NPCs keep"),
    "aloud_stays": Phrase(
        "What you said aloud belongs to the room and stays. Ask the staff to erase it."
    ),
    "no_character": Phrase("You have no character yet."),
    "yes": Phrase("Yes, erase it"),
    "no": Phrase("No, keep it"),
    "site": Phrase("The game's site"),
}
"""The texts of the page for players, by the names that the template uses."""


class ReportsPage(Page):
    """`/ai/reports/`: what players reported about NPCs, each with a link to the turn."""

    template = "evennia_ai/reports.html"
    section = "watch"

    def page_values(self) -> dict[str, Any]:
        count = count_reports()
        number, pages = self.requested_page(count, REPORTS)
        found = running_game.reports(self.request.user, first=(number - 1) * REPORTS, most=REPORTS)
        return {"reports": found, "count": count, "page": number, "pages": pages}


class OwnDataPage(Page):
    """`/ai/me/`: what NPCs keep of the characters of an account, for any player.

    `?format=json` is the export. A form asks before it erases.
    """

    template = "evennia_ai/own_data.html"

    def may_open(self, request: HttpRequest) -> bool:
        return bool(request.user.is_authenticated) and not self._actor().why_not()

    def page_values(self) -> dict[str, Any]:
        return {"characters": running_game.own_data_of(self.request.user)}

    def html_values(self, told: Mapping[str, Any]) -> dict[str, Any]:
        language = language_of(self.request.user)
        words = {name: translate(text, language) for name, text in _TEXTS.items()}
        return {"language": language, "words": words}

    def post(self, request: HttpRequest) -> HttpResponseBase:
        """Ask before an erasure, or do it, as the field `do` says."""
        does = self.act_in_form({"ask": False, "forget": True})
        told = self.page_values()
        wanted, npc_ref = request.POST.get("character", ""), request.POST.get("npc") or None
        found = next((one for one in told["characters"] if one.ref == wanted), None)
        kept = {one.npc_ref: one.name for one in found.data.npcs} if found else {}
        if found is None or (npc_ref is not None and npc_ref not in kept):
            return self._shown_again()  # the character or what the NPC kept is gone meanwhile
        language, name = language_of(request.user), kept[npc_ref] if npc_ref else ""
        if does:
            done = running_game.forget(found.ref, npc_ref=npc_ref, by=self._actor())
            line = translate(forgotten_in_words(done, player=found.name, npc=name), language)
            return self.render_values({**self.page_values(), "done": line})
        question = forget_question(
            forgettable(found.ref, npc_ref=npc_ref), player=found.name, npc=name
        )
        if question is None:
            return self._shown_again()
        asked = {"character": found.ref, "npc": npc_ref or ""}
        return self.render_values(
            {**told, "question": translate(question, language), "asked": asked}
        )

    def _shown_again(self) -> HttpResponseBase:
        return HttpResponseRedirect(reverse("evennia_ai:own_data"))

    def _actor(self) -> Any:
        address = str(self.request.META.get("REMOTE_ADDR", ""))
        return running_game.player_actor(self.request.user, address=address)
