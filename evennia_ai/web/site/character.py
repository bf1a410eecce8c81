"""Pages on which a builder writes a card: a new character on one page, and the fields of a card.

A card that a builder writes needs no approval. It applies from the next turn on. If a text cannot
be saved, the form is shown again with what was typed and says why.
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse

from evennia_ai.engine.errors import EditConflictError, EvenniaAIError, FormatError
from evennia_ai.engine.foreign.documents import read_document
from evennia_ai.formats.cards.card import Card
from evennia_ai.formats.cards.components import CARD_KEYS
from evennia_ai.formats.cards.writing import (
    CardField,
    fields_of,
    keeps_greetings,
    new_card,
    text_of,
    with_text,
)
from evennia_ai.npc.mind.room_list import list_rooms, refuse_missing_room
from evennia_ai.npc.mind.spawning import namesakes, npc_name
from evennia_ai.npc.mind.viewers import seer_for
from evennia_ai.npc.views.edits import ProposedEdit
from evennia_ai.npc.views.looking import past_inputs_for, trial_report
from evennia_ai.npc.views.parse_cache import parsed_card
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.authored import card_files, cards
from evennia_ai.store.history import turns
from evennia_ai.web.site import running_game
from evennia_ai.web.site.card_fields import NEW_GREETING, count_tokens, form_fields, sum_tokens
from evennia_ai.web.site.kept import make_or_foresee
from evennia_ai.web.site.mind import Workbench
from evennia_ai.web.site.page import Page, read_seen_revision

STARTERS: Final = Path(__file__).parent / "starters.yaml"
MOST_ROOMS: Final = 200
_WRITTEN: Final = ("name", "description", "personality", "first_mes")


@cache
def starters() -> Mapping[str, Mapping[str, str]]:
    """Return the characters to start from, by key: title and texts."""
    found: Mapping[str, Mapping[str, str]] = read_document(STARTERS, kind="starters")
    return found


class NewCardPage(Page):
    """`/ai/cards/new/`: a new character on one page, which can be brought to life at once.

    The parameter `like` names a character to start from, `room` the room to live in.
    """

    template = "evennia_ai/new_card.html"
    section = "cards"

    def page_values(self) -> dict[str, Any]:
        like = self.request.GET.get("like", "")
        texts = starters().get(like, {})
        typed = {name: texts.get(name, "") for name in _WRITTEN}
        return self._form({**typed, "room": self.request.GET.get("room", "")}, like=like)

    def post(self, request: HttpRequest) -> HttpResponseBase:
        """Create the card. With `do=live` also create an NPC that plays it, and open its page."""
        typed = {name: _plain(request.POST.get(name, "")) for name in (*_WRITTEN, "room")}
        lives = request.POST.get("do") == "live"
        try:
            name = cards.CARDS.known_name(cards.CARDS.typeable_name(typed["name"].strip()))
            if lives:
                refuse_namesake(typed["name"], agreed="twin" in request.POST)
                refuse_missing_room(typed["room"])
            made = replace(
                new_card(name, description=typed["description"], creator=self.actor.name),
                personality=typed["personality"],
                first_mes=typed["first_mes"],
            )
            file = card_files.new_card_file(
                made, modified_at=int(time.time()), limits=conf().card_limits
            )
            card = cards.create_card(name, file, by=self.actor)
        except EvenniaAIError as error:
            told = {**self._form(typed), "problem": str(error), "asks_twin": _is_twin(error)}
            return self.render_values(told, status=400)
        return bring_to_life(self, card, name, typed["room"]) if lives else _to_form(name)

    def _form(self, typed: Mapping[str, str], *, like: str = "") -> dict[str, Any]:
        return {
            **typed,
            "like": like,
            "starters": [{"key": key, "title": one["title"]} for key, one in starters().items()],
            **room_choice(typed["room"], account=self.request.user),
            "problem": "",
            "asks_twin": False,
        }


class NamesakeError(EvenniaAIError):
    """An NPC has the wanted name already."""


def refuse_namesake(name: str, *, agreed: bool) -> None:
    """Refuse a name that an NPC has already, unless the builder agreed.

    Raises:
        NamesakeError: An NPC has the name.
    """
    name = " ".join(name.split())
    taken = namesakes(name)
    if taken and not agreed:
        which = ", ".join(f"#{ref}" for ref in taken[:8])
        raise NamesakeError(
            f"An NPC called {name} exists already ({which}). You could tell the two apart only by"
            " number. Choose another name, or tick the box below."
        )


def _is_twin(error: EvenniaAIError) -> bool:
    return isinstance(error, NamesakeError)


def bring_to_life(page: Page, card: cards.StoredCard, name: str, room: str) -> HttpResponseBase:
    """Create an NPC that plays the card in this room, and open its page.

    Raises:
        SpawnError, NotPermittedError: It cannot be created.
    """
    ref = running_game.spawn(card, name, room, account=page.request.user, by=page.actor)
    return HttpResponseRedirect(reverse("evennia_ai:mind", kwargs={"ref": ref}))


def room_choice(wanted: str, *, account: Any) -> dict[str, Any]:
    """Return the rooms to choose from. The wanted one, or else the account's own, is chosen."""
    known = list_rooms(MOST_ROOMS)
    here = wanted or running_game.room_of_account(account)
    return {
        "rooms": [{"ref": one.ref, "name": one.name, "is_on": one.ref == here} for one in known]
    }


class CharacterPage(Page):
    """`/ai/cards/<name>/edit/`: a form with every field of an approved card."""

    template = "evennia_ai/character.html"
    section = "cards"

    def page_values(self, name: str) -> dict[str, Any]:
        return card_form(self, name)

    def post(self, request: HttpRequest, name: str) -> HttpResponseBase:
        """Save or preview all fields, save a picture, copy the card, or bring it to life."""
        do = request.POST.get("do", "")
        if do == "live":
            return self._live(name)
        if do == "duplicate":
            return _to_form(duplicate_card(name, by=self))
        told = save_card_form(self, name)
        if told is None:
            return _to_form(name, saved=True)
        return self.render_values(told, status=told.pop("status"))

    def _live(self, name: str) -> HttpResponseBase:
        card = cards.get_card(name)
        typed = _plain(self.request.POST.get("npc_name", "")).strip()
        try:
            wanted = npc_name(card, typed)
            refuse_namesake(wanted, agreed="twin" in self.request.POST)
            return bring_to_life(self, card, wanted, self.request.POST.get("room", ""))
        except EvenniaAIError as error:
            told = {**card_form(self, name), "problem": str(error), "npc_name": typed}
            return self.render_values({**told, "asks_twin": _is_twin(error)}, status=400)


def card_form(page: Page, name: str) -> dict[str, Any]:
    """Return the values of a card's form."""
    stored = cards.get_card(name)
    card = parsed_card(stored)
    texts = {field: text_of(card, field) for field in fields_of(card)}
    form = _form(page, stored, seen=stored.sha256, texts=texts)
    return {**form, "saved": "saved" in page.request.GET}


def save_card_form(page: Page, name: str) -> dict[str, Any] | None:
    """Save all fields of a posted form, or its picture, as one revision of the card.

    Return None if it was saved. Else return the values of the form to show again, with a `status`,
    because something is wrong, or because only a preview or the changed kept answers were wanted.
    """
    stored = cards.get_card(name)
    typed = {key: _plain(text) for key, text in page.request.POST.items()}
    seen = typed.get("seen", "")
    card = parsed_card(stored)
    texts = {one: typed.get(str(one), text_of(card, one)) for one in fields_of(card)}
    try:
        revision = read_seen_revision(typed.get("revision", ""))
        if page.request.POST.get("do") == "preview":
            form = _form(page, stored, seen=seen, texts=texts, added=typed.get(NEW_GREETING, ""))
            return {
                **form,
                "revision": revision,
                "preview": preview_lines(page, stored, _written(card, typed)),
                "status": 200,
            }
        if page.request.POST.get("do") == "picture":
            save_picture(page, replace(stored, sha256=seen, revision=revision))
            return None

        def save() -> None:
            if stored.sha256 != seen:
                newest = cards.CARDS.newest_number(name)
                by = cards.CARDS.last_changed_by(name)
                raise EditConflictError(f"card '{name}'", revision, newest, by)
            _save(replace(stored, sha256=seen, revision=revision), typed, page)

        if foreseen := make_or_foresee(page, save):
            form = _form(page, stored, seen=seen, texts=texts, added=typed.get(NEW_GREETING, ""))
            return {**form, "revision": revision, "foreseen": foreseen, "status": 200}
    except EvenniaAIError as error:
        form = _form(page, stored, seen=seen, texts=texts, added=typed.get(NEW_GREETING, ""))
        status = 409 if isinstance(error, EditConflictError) else 400
        return {**form, "problem": str(error), "status": status}
    return None


def _save(stored: cards.StoredCard, typed: Mapping[str, str], page: Page) -> None:
    file = cards.CARDS.revision_file(stored.name, stored.revision)
    before, after, made = card_files.edited_card_file(
        file,
        lambda card: _written(card, typed),
        modified_at=int(time.time()),
        limits=conf().card_limits,
    )
    if made is not None:
        kept = keeps_greetings(before, after)
        cards.edit_card(stored, made, keeps_greetings=kept, by=page.actor)


def _form(
    page: Page,
    stored: cards.StoredCard,
    *,
    seen: str,
    texts: Mapping[CardField, str],
    added: str = "",
) -> dict[str, Any]:
    return {
        "name": stored.name,
        "revision": stored.revision,
        "seen": seen,
        "fields": form_fields(texts),
        "tokens": sum_tokens(texts.items()),
        "added": added,
        "preview": None,
        "problem": "",
        "saved": False,
        "npc_name": "",
        "asks_twin": False,
        "has_picture": stored.has_picture,
        **room_choice(page.request.POST.get("room", ""), account=page.request.user),
    }


def save_picture(page: Page, seen: cards.StoredCard) -> None:
    """Save an uploaded PNG picture as a revision of the card that the form showed.

    Raises:
        FormatError: It is not a PNG picture, or it is too large. Nothing was changed.
        EditConflictError: Somebody changed the card since the form was shown.
    """
    sent, limits = page.request.FILES.get("picture"), conf().card_limits
    if sent is None:
        raise FormatError("form", "no picture was chosen; choose a PNG file")
    if sent.size > limits.file_bytes:
        raise FormatError(
            "size", f"the picture has {sent.size} bytes, but the limit is {limits.file_bytes}"
        )
    file = cards.CARDS.revision_file(seen.name, seen.revision)
    made = card_files.pictured_card_file(
        file, sent.read(), modified_at=int(time.time()), limits=limits
    )
    cards.edit_card(seen, made, keeps_greetings=True, by=page.actor)


def preview_lines(page: Page, stored: cards.StoredCard, card: Card) -> dict[str, Any]:
    """Return what a model would read of this card in the newest turn of an NPC that plays it.

    Nothing is stored and no model is asked.
    """
    played = [turn for ref in cards.players_of(stored.name) if (turn := turns.last_turn(ref))]
    counted = {str(field): count_tokens(field, text_of(card, field)) for field in fields_of(card)}
    told: dict[str, Any] = {"tokens": counted, "total": sum(filter(None, counted.values()))}
    if not played:
        return {**told, "of": "", "texts": []}
    newest = max(played, key=lambda one: one.created_at)
    edit = ProposedEdit(card=card, grants=stored.grants)
    past = past_inputs_for(seer_for(page.request.user, newest.npc_ref), newest)
    report = trial_report(past, edit)
    texts = [
        {"key": part.origin.partition(":")[2], "text": message.content[part.start : part.end]}
        for message in report.messages
        for part in message.parts
        if part.origin.partition(":")[2] in CARD_KEYS
    ]
    return {**told, "of": newest.npc_ref, "turn": newest.number, "texts": texts}


def duplicate_card(name: str, *, by: Page) -> str:
    """Store a copy of a card with the same grants under a free name. Return that name."""
    stored = cards.get_card(name)
    file = cards.CARDS.revision_file(name, stored.revision)
    taken = set(cards.CARDS.list_keys())
    for number in range(2, 1000):
        wanted = cards.CARDS.known_name(f"{name} {number}")
        if wanted not in taken:
            cards.save_card(wanted, file, grants=stored.grants, by=by.actor)
            return wanted
    raise FormatError("card", f"card '{name}' has 998 copies already; nothing was copied")


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


class CharacterPanel(Workbench):
    """`/ai/npc/<ref>/character/`: the fields of the card that an NPC plays."""

    template = "evennia_ai/mind_character.html"
    panel = "character"

    def panel_values(self, ref: str) -> dict[str, Any]:
        played = cards.card_of(ref)
        return self._values(ref, card_form(self, played.name) if played else {"fields": []})

    def post(self, request: HttpRequest, ref: str) -> HttpResponseBase:
        """Save or preview all fields of the card, or save a picture."""
        played = cards.card_of(ref)
        if played is None:
            raise FormatError("form", "the NPC plays no card any longer; nothing was changed")
        form = save_card_form(self, played.name)
        if form is None:
            where = reverse("evennia_ai:mind_character", kwargs={"ref": ref})
            return HttpResponseRedirect(f"{where}?saved=1#panel")
        status = form.pop("status")
        values = {**self.frame_values(ref), **self._values(ref, form)}
        return self.render_values(values, status=status)

    def _values(self, ref: str, form: dict[str, Any]) -> dict[str, Any]:
        # The head of the page shows problems of the conversation under the name "problem".
        problem = form.pop("problem", "")
        name = form.get("name", "")
        return {
            **form,
            "form_problem": problem,
            "players": len(cards.players_of(name)) if name else 0,
        }
