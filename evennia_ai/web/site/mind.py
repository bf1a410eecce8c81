"""The mind of one NPC: its turns, what it is made of, what it used; pausing it."""

import time
from collections.abc import Iterator
from typing import Any, Final

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse

from evennia_ai.errors import FormatError, NotStoredError
from evennia_ai.history.turn.manifest import TurnManifest
from evennia_ai.prompt.components import Scope
from evennia_ai.store import model_calls
from evennia_ai.store.authored import notes
from evennia_ai.store.authored.cards import card_of
from evennia_ai.store.history import past_turns, turns
from evennia_ai.store.model_calls import DAY_SECONDS, halts
from evennia_ai.web.site.door import door
from evennia_ai.web.site.page import Page, name_of

PAGE_TURNS: Final = 25


class MindPage(Page):
    """`/ai/npc/<ref>/`: one NPC."""

    template = "evennia_ai/mind.html"

    def told(self, ref: str) -> dict[str, Any]:
        text = self.request.GET.get("page", "")
        page = int(text) if text.isdecimal() and 0 < len(text) < 7 and int(text) else 1
        refuse_unknown(ref)
        newest = turns.last_turn(ref)
        found = past_turns.turn_page(ref, page, size=PAGE_TURNS)
        card = card_of(ref)
        now = time.time()
        used = model_calls.used(now - now % DAY_SECONDS, Scope(kind="npc", ref=ref))
        halt = halts().get(ref)
        return {
            "ref": ref,
            "name": name_of(ref),
            "paused": str(halt) if halt else "",
            "card": None if card is None else {"name": card.name, "revision": card.revision},
            "notes": [
                {
                    "key": note.key,
                    "depth": note.depth,
                    "order": note.order,
                    "mode": note.mode,
                    "on": note.enabled,
                    "text": note.content,
                    "revision": note.revision,
                }
                for note in notes.notes_for(ref)
            ],
            "made_of": list(_made_of(newest.manifest)) if newest else [],
            "today": {"calls": used.calls, "tokens": used.tokens},
            "page": page,
            "has_older": found.has_older,
            "turns": [
                {
                    "number": line.number,
                    "state": line.state,
                    "outcome": line.outcome,
                    "tokens": line.tokens,
                    "model": line.model,
                    "at": line.created_at,
                    "event": line.event,
                    "speaker": line.speaker,
                }
                for line in found.turns
            ],
        }


def refuse_unknown(ref: str) -> None:
    """NotStoredError where there is no such NPC, and never was one that had a turn."""
    if turns.last_turn(ref) is None and ref not in door().named([ref]):
        raise NotStoredError("NPC with the number", ref)


class PauseView(Page):
    """`/ai/npc/<ref>/pause/`: stop one NPC, or let it go on; POST alone."""

    http_method_names = ["post"]
    template = ""

    def post(self, request: HttpRequest, ref: str) -> HttpResponseBase:
        """Do what `do` says: `pause` or `resume`."""
        acts = {"pause": door().pause, "resume": door().resume}
        act = acts.get(request.POST.get("do", ""))
        if act is None:
            raise FormatError("form", f"do must be one of {', '.join(acts)}; nothing was changed")
        act(ref, by=self.actor)
        return HttpResponseRedirect(reverse("evennia_ai:mind", kwargs={"ref": ref}))


def _made_of(manifest: TurnManifest) -> Iterator[dict[str, Any]]:
    """Which revision of each card, book and component took part in the newest turn."""
    for what, revision in manifest.revisions.items():
        kind, _, name = what.partition(":")
        yield {"kind": kind, "name": name, "revision": revision}
