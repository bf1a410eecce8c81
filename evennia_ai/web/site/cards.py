"""Pages about cards: the list, uploads, and the report of each revision with its decision.

An uploaded file waits until a builder approves it. Its report says what happens to every text in
it. The card can do nothing that was not granted with the approval. These are the same steps as
`card/import`, `/report`, `/approve` and `/assign` in the game.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.prompt.components import ALLOWS, NO_GRANTS, Grants, in_order, of_npc
from evennia_ai.formats.cards.comparing import card_differences
from evennia_ai.formats.cards.loading import load_card
from evennia_ai.formats.cards.report.import_report import report_lines, report_object
from evennia_ai.formats.cards.report.making import import_report
from evennia_ai.npc.mind.imported_state import see_imported, see_players
from evennia_ai.npc.views.parse_cache import parsed_card, read_ahead
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.authored import cards
from evennia_ai.store.authored.card_files import card_file
from evennia_ai.store.authored.files import AuthoredFile
from evennia_ai.store.core.authoring import Change
from evennia_ai.store.core.snapshots import value_of
from evennia_ai.web.site.card_fields import list_greetings
from evennia_ai.web.site.differing import difference_values
from evennia_ai.web.site.page import Page, find_npc_ref, read_seen_revision

MOST_REVISIONS: Final = 20


class CardsPage(Page):
    """`/ai/cards/`: the approved cards, the imports that wait for approval, and the upload form."""

    template = "evennia_ai/cards.html"
    section = "cards"

    def page_values(self) -> dict[str, Any]:
        names = cards.CARDS.list_keys()
        return {
            "cards": [_row(name) for name in names],
            "waiting": [
                {"name": name, "change": value_of(Change, change)}
                for name in cards.CARDS.waiting_names()
                for change in cards.CARDS.waiting(name)
            ],
        }

    def post(self, request: HttpRequest) -> HttpResponseBase:
        """Store the uploaded file as a waiting import, under the typed name or the card's own."""
        sent = request.FILES.get("file")
        given = conf()
        if sent is None:
            raise FormatError(
                "form", "no file was chosen; choose a card's JSON, PNG, APNG or CHARX file"
            )
        if sent.size > given.card_limits.file_bytes:
            raise FormatError(
                "size",
                f"the file has {sent.size} bytes, but the limit is {given.card_limits.file_bytes}",
            )
        content = sent.read()
        found = load_card(content, limits=given.card_limits)
        name = cards.CARDS.known_name(
            cards.CARDS.typeable_name(request.POST.get("name", "").strip() or found.card.name)
        )
        number = cards.import_card(name, card_file(content, found), by=self.actor)
        if number is None:
            raise FormatError(
                "card", f"card '{name}' already has exactly this file; nothing was changed"
            )
        return _to(name, number)


class CardPage(Page):
    """`/ai/cards/<name>/<number>/`: the report of a revision or import, with its actions."""

    template = "evennia_ai/card.html"
    section = "cards"

    def page_values(self, name: str, number: int) -> dict[str, Any]:
        change = cards.CARDS.revision(name, number)
        file = cards.CARDS.revision_file(name, number)
        card, state = cards.card_or_none(name), see_imported(cards.CARDS, name)
        report = _report(file, NO_GRANTS if change.action == "imported" else change.value.grants)
        return {
            "change": value_of(Change, change),
            "state": replace(state, revisions=state.revisions[-MOST_REVISIONS:]),
            "waits": any(one.number == number for one in state.waiting),
            "players": see_players(name),
            "greetings": list(list_greetings(parsed_card(card))) if card else [],
            "has_picture": file.carrier in cards.WITH_PICTURES,
            "difference": difference_values(_differing(name, number, file)),
            "report": report_object(report),
            "report_lines": report_lines(report),
        }

    def html_values(self, told: Mapping[str, Any]) -> dict[str, Any]:
        wanted = {use["grant"] for use in told["report"]["uses"]}
        return {"switches": list(_switches(wanted, set(told["state"].grants)))}

    def post(self, request: HttpRequest, name: str, number: int) -> HttpResponseBase:
        """Approve with the ticked grants, reject, assign, or set a greeting, as the field `do`
        says.
        """
        acts = {
            "approve": self._approve,
            "reject": self._reject,
            "assign": self._assign,
            "greet": self._greet,
        }
        act = self.act_in_form(acts)
        return act(name, number)

    def _approve(self, name: str, number: int) -> HttpResponseBase:
        ticked = frozenset(self.request.POST.getlist("grant"))
        if unknown := ticked - ALLOWS.keys():
            raise FormatError(
                "form", f"there is no grant named {', '.join(sorted(unknown))}; nothing was changed"
            )
        grants: Grants = frozenset(grant for grant in ALLOWS if grant in ticked)
        card = cards.CARDS.approve(
            name, number, grants=grants, by=self.actor, newest_seen=self._seen()
        )
        with suppress(FormatError):  # the turns of an NPC report a card that cannot be read
            read_ahead(card)  # parse it in this thread, so that the game's thread does not have to
        return _to(name, card.revision)

    def _reject(self, name: str, number: int) -> HttpResponseBase:
        if not cards.CARDS.reject(name, by=self.actor, newest_seen=self._seen()):
            raise FormatError("card", f"no import of card '{name}' waits for approval any longer")
        return HttpResponseRedirect(reverse("evennia_ai:cards"))

    def _seen(self) -> int:
        """Return the number of the revision that the form was made from."""
        return read_seen_revision(self.request.POST.get("seen", ""))

    def _assign(self, name: str, number: int) -> HttpResponseBase:
        npc = find_npc_ref(self.request.POST.get("npc", ""))
        cards.CARDS.assign(name, of_npc(npc), by=self.actor)
        return _to(name, number)

    def _greet(self, name: str, number: int) -> HttpResponseBase:
        """Set the greeting with which an NPC that plays the card opens a conversation."""
        ref, text = self.request.POST.get("npc", ""), self.request.POST.get("greeting", "")
        if ref not in cards.players_of(name):
            raise FormatError("npc", f"#{ref[:40]} does not play the card '{name}'")
        known = {str(one["index"]) for one in list_greetings(parsed_card(cards.get_card(name)))}
        if text and text not in known:
            raise FormatError("card", f"card '{name}' has no greeting {text[:40]}")
        cards.set_greeting(
            ref, int(text) if text else None, by=self.actor, seen_revision=self._seen()
        )
        return _to(name, number)


def _differing(name: str, number: int, file: AuthoredFile) -> Iterator[str]:
    """Yield the differences from the card that was approved before this file."""
    before = cards.CARDS.revision_before(name, number)
    if before is None:
        return iter(())
    return card_differences(cards.CARDS.whole(before.value).source, file.source)


def _to(name: str, number: int) -> HttpResponseBase:
    where = reverse("evennia_ai:card", kwargs={"name": name, "number": number})
    return HttpResponseRedirect(where)


def _report(file: AuthoredFile, grants: Grants) -> Any:
    given = conf()
    return import_report(
        load_card(file.content, limits=given.card_limits),
        grants=grants,
        limit_tokens=given.limit_tokens,
        post_history_depth=given.post_history_depth,
        size_bytes=len(file.content),
    )


def _row(name: str) -> dict[str, Any]:
    card = cards.get_card(name)
    return {
        "name": name,
        "revision": card.revision,
        "grants": list(in_order(card.grants)),
        "players": len(cards.players_of(name)),
        "has_picture": card.has_picture,
    }


def _switches(wanted: set[str], had: set[str]) -> Iterator[dict[str, Any]]:
    """Yield each grant: what it allows, and if the file uses it and the approved card has it."""
    for grant, allows in ALLOWS.items():
        yield {"grant": grant, "allows": allows, "wants": grant in wanted, "had": grant in had}
