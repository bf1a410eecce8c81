"""The main page of one NPC: its turns, the parts of its prompt, its use today, and the pause."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse

from evennia_ai.engine.errors import FormatError, NotStoredError, ReplayError
from evennia_ai.npc.mind import npc_list
from evennia_ai.npc.mind.status import npc_log
from evennia_ai.npc.mind.viewers import seer_for
from evennia_ai.npc.views.looking import past_reader, sent_report, visible_revisions
from evennia_ai.npc.views.visibility import Seer
from evennia_ai.store.authored import notes
from evennia_ai.store.history import turns
from evennia_ai.store.history.branches import builder_of, npc_of
from evennia_ai.store.history.turns import StoredTurn
from evennia_ai.web.site import running_game
from evennia_ai.web.site.page import Page, name_of

PAGE_TURNS: Final = 25


class MindPage(Page):
    """`/ai/npc/<ref>/`: one NPC, or a builder's branch of it with turns of its own."""

    template = "evennia_ai/mind.html"

    def page_values(self, ref: str) -> dict[str, Any]:
        refuse_unknown(ref)
        newest, npc_ref = turns.last_turn(ref), npc_of(ref)
        made_of = list(_made_of(seer_for(self.request.user, ref), newest)) if newest else []
        return {
            "ref": ref,
            "branch_of": name_of(npc_ref) if ref != npc_ref else "",
            "status": running_game.npc_status(ref),
            "notes": notes.notes_for(npc_ref),
            "made_of": made_of,
            "log": npc_log(ref, self.requested_number(), size=PAGE_TURNS),
        }


def refuse_unknown(ref: str) -> None:
    """Refuse a reference that names no known NPC or branch.

    Raises:
        NotStoredError: The NPC does not exist and never had a turn, or the branch never had one.
    """
    if turns.last_turn(ref) is None and (builder_of(ref) or ref not in npc_list.npc_names([ref])):
        raise NotStoredError("NPC with the number", ref)


class PauseView(Page):
    """`/ai/npc/<ref>/pause/`: pause or resume one NPC. Only POST is allowed."""

    http_method_names = ["post"]
    template = ""

    def post(self, request: HttpRequest, ref: str) -> HttpResponseBase:
        """Pause or resume the NPC, as the field `do` says."""
        acts = {"pause": running_game.pause, "resume": running_game.resume}
        act = acts.get(request.POST.get("do", ""))
        if act is None:
            raise FormatError("form", f"do must be one of {', '.join(acts)}; nothing was changed")
        act(ref, by=self.actor)
        return HttpResponseRedirect(reverse("evennia_ai:mind", kwargs={"ref": ref}))


def _made_of(seer: Seer, newest: StoredTurn) -> Iterator[dict[str, Any]]:
    """Yield the revisions of cards, books and components that took part in the newest turn."""
    report = None
    # its words were erased, or it is unknown which of them must stay hidden
    with suppress(ReplayError):
        report = sent_report(seer, newest, past_reader())
    for what, revision in visible_revisions(seer, newest, report).items():
        kind, _, name = what.partition(":")
        yield {"kind": kind, "name": name, "revision": revision}
