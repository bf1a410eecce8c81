"""Forms in which a builder creates a card and edits its fields, like `card/create` and `card/edit`.

A card that a builder writes needs no approval. It applies from the next turn on. If a text cannot
be saved, the form is shown again with what was typed and says why.
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse

from evennia_ai.engine.errors import EditConflictError, EvenniaAIError
from evennia_ai.formats.cards.card import Card
from evennia_ai.formats.cards.writing import (
    CardField,
    fields_of,
    keeps_greetings,
    new_card,
    text_of,
    with_text,
)
from evennia_ai.npc.views.parse_cache import parsed_card
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.authored import card_files, cards
from evennia_ai.web.site.page import Page, read_seen_revision

NEW_GREETING: Final = "greeting/new"
"""The name of the form's field that adds a greeting after the others."""
_SHORT: Final = ("name", "nickname", "creator", "version", "tags")


class NewCardPage(Page):
    """`/ai/cards/new/`: the name and description of a new card. `CharacterPage` has its other
    fields.
    """

    template = "evennia_ai/new_card.html"
    section = "cards"

    def page_values(self) -> dict[str, Any]:
        return {"name": "", "description": "", "problem": ""}

    def post(self, request: HttpRequest) -> HttpResponseBase:
        """Create the card, which needs no approval, and open its form."""
        typed = {name: _plain(request.POST.get(name, "")) for name in ("name", "description")}
        try:
            name = cards.CARDS.known_name(cards.CARDS.typeable_name(typed["name"].strip()))
            made = new_card(name, description=typed["description"], creator=self.actor.name)
            file = card_files.new_card_file(
                made, modified_at=int(time.time()), limits=conf().card_limits
            )
            cards.create_card(name, file, by=self.actor)
        except EvenniaAIError as error:
            return self.render_values({**typed, "problem": str(error)}, status=400)
        return _to_form(name)


class CharacterPage(Page):
    """`/ai/cards/<name>/edit/`: a form with every field of an approved card."""

    template = "evennia_ai/character.html"
    section = "cards"

    def page_values(self, name: str) -> dict[str, Any]:
        stored = cards.get_card(name)
        card = parsed_card(stored)
        texts = {str(field): text_of(card, field) for field in fields_of(card)}
        return self._form(name, revision=stored.revision, sha256=stored.sha256, texts=texts)

    def post(self, request: HttpRequest, name: str) -> HttpResponseBase:
        """Save all fields of the form as one revision of the card."""
        stored = cards.get_card(name)
        typed = {key: _plain(text) for key, text in request.POST.items()}
        seen = typed.get("seen", "")
        try:
            revision = read_seen_revision(typed.get("revision", ""))
            shown_then = replace(stored, sha256=seen, revision=revision)
            if stored.sha256 == seen:
                self._save(shown_then, typed)
            else:
                self._refuse(name, revision)
        except EvenniaAIError as error:
            known = {str(field): "" for field in fields_of(parsed_card(stored))}
            texts = {field: typed.get(field, text) for field, text in known.items()}
            told = self._form(name, revision=stored.revision, sha256=seen, texts=texts)
            status = 409 if isinstance(error, EditConflictError) else 400
            return self.render_values({**told, "problem": str(error)}, status=status)
        return _to_form(name, saved=True)

    def _refuse(self, name: str, seen: int) -> None:
        """Report that the card was changed since the form was shown.

        Raises:
            EditConflictError: Always.
        """
        newest = cards.CARDS.newest_number(name)
        by = cards.CARDS.last_changed_by(name)
        raise EditConflictError(f"card '{name}'", seen, newest, by)

    def _save(self, stored: cards.StoredCard, typed: Mapping[str, str]) -> None:
        file = cards.CARDS.revision_file(stored.name, stored.revision)
        before, after, made = card_files.edited_card_file(
            file,
            lambda card: _written(card, typed),
            modified_at=int(time.time()),
            limits=conf().card_limits,
        )
        if made is not None:
            kept = keeps_greetings(before, after)
            cards.edit_card(stored, made, keeps_greetings=kept, by=self.actor)

    def _form(
        self, name: str, *, revision: int, sha256: str, texts: Mapping[str, str]
    ) -> dict[str, Any]:
        return {
            "name": name,
            "revision": revision,
            "seen": sha256,
            "fields": [
                {"field": field, "text": text, "is_short": field in _SHORT}
                for field, text in texts.items()
            ],
            "problem": "",
            "saved": "saved" in self.request.GET,
        }


def _written(card: Card, typed: Mapping[str, str]) -> Card:
    """Return the card with the form's texts.

    Greetings are written from the last to the first, because removing one renumbers those after it.
    """
    for field in reversed(list(fields_of(card))):
        text = typed.get(str(field))
        if text is not None and text != text_of(card, field):
            card = with_text(card, field, text)
    if added := typed.get(NEW_GREETING, "").strip():
        number = len(card.alternate_greetings) + 1
        card = with_text(card, CardField("greeting", str(number)), added)
    return card


def _plain(text: str) -> str:
    """Return a browser's text with line feeds in place of its CR LF line ends."""
    return text.replace("\r\n", "\n")


def _to_form(name: str, *, saved: bool = False) -> HttpResponseBase:
    where = reverse("evennia_ai:character", kwargs={"name": name})
    return HttpResponseRedirect(f"{where}?saved=1" if saved else where)
