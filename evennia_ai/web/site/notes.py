"""The panel of an NPC's notes and greeting. Notes are texts for one NPC inside its conversation."""

from functools import partial
from typing import Any, Final

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse

from evennia_ai.engine.errors import EditConflictError, EvenniaAIError, FormatError
from evennia_ai.engine.prompt.conditions import parse_conditions
from evennia_ai.npc.views.parse_cache import parsed_card
from evennia_ai.store.authored import cards, notes
from evennia_ai.store.authored.notes import StoredNote
from evennia_ai.web.site import running_game
from evennia_ai.web.site.card_fields import list_greetings
from evennia_ai.web.site.kept import make_or_foresee
from evennia_ai.web.site.mind import MOST_TYPED, Workbench
from evennia_ai.web.site.page import read_seen_revision

LAST_HOUR: Final = 23
_NUMBERS: Final = ("depth", "order", "every")


class NotesPanel(Workbench):
    """`/ai/npc/<ref>/notes/`: the notes of an NPC, and the greeting that it says first."""

    template = "evennia_ai/mind_notes.html"
    panel = "notes"

    def panel_values(self, ref: str) -> dict[str, Any]:
        played = cards.assignment_of(ref)
        card = cards.card_of(ref)
        return {
            "notes": [_values(note) for note in notes.notes_for(ref)],
            "new": _values(StoredNote(key=_free_key(ref))),
            "greetings": list(list_greetings(parsed_card(card))) if card else [],
            "greeting": played.greeting if played else None,
            "card_revision": card.revision if card else 0,
            "tried": self._tried(ref),
            "form_problem": "",
            "saved": "saved" in self.request.GET,
        }

    def _tried(self, ref: str) -> dict[str, Any] | None:
        """Return what would be in the prompt at the hour in the address, None without an hour."""
        text = self.request.GET.get("hour", "")
        if not text.isdecimal() or len(text) > 2 or int(text) > LAST_HOUR:
            return None
        line = self.request.GET.get("line", "")[:MOST_TYPED].strip()
        made = running_game.preview(ref, line, account=self.request.user, hour=int(text))
        verdicts = made.report.verdicts
        timed = [one for one in verdicts if not one.kept and "time." in one.reason]
        left_out = {one.item: one.reason for one in verdicts if not one.kept}
        return {
            "hour": int(text),
            "line": line,
            "active": [
                {"title": made.titles.get(one.item, one.item), "because": one.sentence}
                for one in made.reasons
            ],
            "asleep": [
                {"title": made.titles.get(one.item, one.item), "reason": one.reason}
                for one in timed
                if one.item not in made.conditional
            ],
            "conditional": [
                {"origin": origin, "when": when, "left_out": left_out.get(origin, "")}
                for origin, when in made.conditional.items()
            ],
        }

    def post(self, request: HttpRequest, ref: str) -> HttpResponseBase:
        """Save or remove a note, or choose the greeting, as the field `do` says."""
        acts = {"save": self._save, "remove": self._remove, "greet": self._greet}
        act = self.act_in_form(acts)
        try:
            foreseen = make_or_foresee(self, partial(act, ref))
        except EvenniaAIError as error:
            status = 409 if isinstance(error, EditConflictError) else 400
            told = self._with_typed(self.page_values(ref))
            return self.render_values({**told, "form_problem": str(error)}, status=status)
        if foreseen is not None:
            told = self._with_typed(self.page_values(ref))
            key = request.POST.get("key", "")
            return self.render_values({**told, "foreseen": foreseen, "foreseen_of": key})
        where = reverse("evennia_ai:mind_notes", kwargs={"ref": ref})
        return HttpResponseRedirect(f"{where}?saved=1#panel")

    def _save(self, ref: str) -> None:
        typed = self.request.POST
        fields: dict[str, Any] = {name: _number(typed.get(name, ""), name) for name in _NUMBERS}
        fields["content"] = typed.get("content", "").replace("\r\n", "\n")
        fields["enabled"] = "enabled" in typed
        fields["when"] = typed.get("when", "").strip()
        parse_conditions(fields["when"])  # its error names the wrong part
        seen = read_seen_revision(typed.get("seen", ""))
        notes.set_note(ref, typed.get("key", ""), by=self.actor, seen_revision=seen, **fields)

    def _remove(self, ref: str) -> None:
        notes.clear_notes(ref, self.request.POST.get("key", ""), by=self.actor)

    def _greet(self, ref: str) -> None:
        """Set the greeting with which the NPC opens a conversation."""
        text, card = self.request.POST.get("greeting", ""), cards.card_of(ref)
        known = {str(one["index"]) for one in list_greetings(parsed_card(card))} if card else set()
        if text and text not in known:
            raise FormatError("card", f"the card has no greeting {text[:40]}")
        seen = read_seen_revision(self.request.POST.get("seen", ""))
        cards.set_greeting(ref, int(text) if text else None, by=self.actor, seen_revision=seen)

    def _with_typed(self, told: dict[str, Any]) -> dict[str, Any]:
        """Return the values with the note as it was typed."""
        names = ("key", "content", "when", *_NUMBERS)
        typed: dict[str, Any] = {name: self.request.POST.get(name, "") for name in names}
        typed |= {"enabled": "enabled" in self.request.POST}
        known = [
            {**note, **typed} if note["key"] == typed["key"] else note for note in told["notes"]
        ]
        is_new = (
            all(note["key"] != typed["key"] for note in known) and "content" in self.request.POST
        )
        return {**told, "notes": known, "new": {**told["new"], **typed} if is_new else told["new"]}


def _values(note: StoredNote) -> dict[str, Any]:
    names = ("key", "content", "when", "enabled", "revision", *_NUMBERS)
    return {name: getattr(note, name) for name in names}


def _free_key(ref: str) -> str:
    """Return a key that no note of the NPC has."""
    taken = {note.key for note in notes.notes_for(ref)}
    wanted = (notes.NOTE, *(f"{notes.NOTE}{number}" for number in range(2, 200)))
    return next(key for key in wanted if key not in taken)


def _number(text: str, name: str) -> int:
    if not text.lstrip("-").isdecimal() or len(text) > 10:
        raise FormatError("note", f"{name} is a whole number, not '{text[:20]}'; nothing was saved")
    return int(text)
