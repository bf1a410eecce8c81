"""The page of one NPC: its conversation next to what it is made of, and the pause."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from copy import copy
from hashlib import sha256
from typing import Any, ClassVar, Final

from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse

from evennia_ai.engine.errors import EvenniaAIError, FormatError, NotStoredError, ReplayError
from evennia_ai.engine.prompt.names import wearer_of
from evennia_ai.npc.mind import npc_list
from evennia_ai.npc.mind.chat import Chat, read_chat
from evennia_ai.npc.mind.status import npc_log
from evennia_ai.npc.mind.viewers import seer_for
from evennia_ai.npc.views.looking import past_reader, sent_report, visible_revisions
from evennia_ai.npc.views.visibility import Seer
from evennia_ai.store.authored import cards
from evennia_ai.store.history import branches, turns
from evennia_ai.store.history.branches import builder_of, npc_of
from evennia_ai.store.history.conversations import conversations_of, newest_rooms
from evennia_ai.store.history.record_rows import ConversationRef
from evennia_ai.store.history.turns import StoredTurn
from evennia_ai.web.site import running_game
from evennia_ai.web.site.page import Page, name_of
from evennia_ai.web.site.trying import WITH
from evennia_ai.web.site.turn import TurnPage

PAGE_TURNS: Final = 25
MOST_LINES: Final = 30
"""The most lines of a conversation that the page shows, the newest."""
MOST_TYPED: Final = 1000
PART: Final = "part"
"""The parameter with which the page's script asks for the conversation only."""


class Workbench(Page):
    """A page of an NPC: the conversation on one side, and a panel that each subclass fills."""

    panel: ClassVar[str]
    """The key of the panel, which the tabs show as chosen."""

    def page_values(self, ref: str) -> dict[str, Any]:
        return {**self.frame_values(ref), **self.panel_values(ref)}

    def frame_values(self, ref: str) -> dict[str, Any]:
        """Return the values of everything around the panel."""
        values, card = self.chat_values(ref), cards.card_of(npc_of(ref))
        return {
            **values,
            "panel": self.panel,
            "status": running_game.npc_status(ref),
            "has_picture": card is not None and card.has_picture,
        }

    def panel_values(self, ref: str) -> dict[str, Any]:
        """Return the values of the panel."""
        raise NotImplementedError

    def chat_values(self, ref: str) -> dict[str, Any]:
        """Return the values of the conversation."""
        refuse_unknown(ref)
        npc_ref = npc_of(ref)
        card, name = cards.card_of(npc_ref), name_of(npc_ref)
        around = _around(ref, self.request.user)
        branch = branches.newest_branch(npc_ref, builder_of(ref)) if ref != npc_ref else None
        known = conversations_of(ref)
        where = self._chosen(ref, known)
        seer = seer_for(self.request.user, ref)
        chat = where and read_chat(
            where,
            seer,
            own_names=(name, *([card.name] if card else [])),
            most=MOST_LINES,
            since=branch.begins.segment if branch else 1,
            display=running_game.display_of(ref),
        )
        is_own = ref != npc_ref and _is_own_branch(ref, self.request.user)
        return {
            "ref": ref,
            "character": name,
            "branch_of": name if ref != npc_ref else "",
            "is_own_branch": is_own,
            "may_change": ref == npc_ref or is_own,
            "around": around,
            "talk": where.id if where else None,
            "is_private": where is not None and where.kind == "private",
            "talks": list(_talks(known)) if ref == npc_ref else [],
            "chat": chat or Chat(lines=(), newest_turn=None, has_older=False),
            "no_answer": running_game.why_no_answer(ref),
            "problem": "",
            "typed": {},
        }

    def _chosen(self, ref: str, known: tuple[ConversationRef, ...]) -> ConversationRef | None:
        """Return the conversation that the address names, or else the newest one in a room."""
        asked = self.request.GET.get("talk", "") or self.request.POST.get("talk", "")
        found = next((one for one in known if str(one.id) == asked), None)
        newest = newest_rooms(ref, most=1)
        return found or next(iter((*newest, *reversed(known))), None)


class MindPage(Workbench):
    """`/ai/npc/<ref>/`: one NPC, or a builder's branch of it with turns of its own.

    The panel is the prompt of a turn: the newest one, or the one that the parameter `turn` names.
    """

    template = "evennia_ai/mind.html"
    panel = "prompt"
    _turn_page: TurnPage | None = None

    def get(self, request: HttpRequest, **named: Any) -> HttpResponseBase:
        """Return the page, or for `?part=chat` only the conversation."""
        if request.GET.get(PART) != "chat" or request.GET.get("format") == "json":
            return super().get(request, **named)
        answer = render(request, "evennia_ai/parts/chat.html", self.chat_values(named["ref"]))
        tag = f'"{sha256(_without_token(answer.content)).hexdigest()[:20]}"'
        if request.headers.get("If-None-Match") == tag:
            return HttpResponse(status=304, headers={"ETag": tag})
        answer["ETag"] = tag
        return answer

    def panel_values(self, ref: str) -> dict[str, Any]:
        asked, newest = self.request.GET.get("turn", ""), turns.last_turn(ref)
        if newest is None:
            return {"prompt": None}
        is_past = asked.isdecimal() and len(asked) < 10
        number = int(asked) if is_past else newest.number
        made = TurnPage()
        # A trial of the newest turn returns to this page, one of an older turn to that turn's page.
        request = copy(self.request)
        if number != newest.number:
            request.path = reverse("evennia_ai:turn", kwargs={"ref": ref, "number": number})
        made.setup(request)
        self._turn_page = made
        return {"prompt": made.page_values(ref, number)}

    def html_values(self, told: Mapping[str, Any]) -> dict[str, Any]:
        if told["prompt"] is None or self._turn_page is None:
            return {}
        prompt = {**told["prompt"], **self._turn_page.html_values(told["prompt"])}
        return {**prompt, "trial_status": prompt.get("status", ""), "status": told["status"]}

    def post(self, request: HttpRequest, ref: str) -> HttpResponseBase:
        """Do what the field `do` says in the conversation, or with a trial of the prompt."""
        if WITH in request.POST:
            return self._post_trial(ref)
        acts: dict[str, Callable[[str], str]] = {
            "say": self._say,
            "visit": self._visit,
            "undo": self._undo,
            "retry": self._retry,
            "correct": self._correct,
            "branch": self._branch,
            "retire": self._retire,
        }
        act = self.act_in_form(acts)
        try:
            if ref != npc_of(ref) and not _is_own_branch(ref, request.user):
                raise FormatError(
                    "branch", "only who opened a branch may change it; nothing was changed"
                )
            where = act(ref)
        except EvenniaAIError as error:
            typed = {name: request.POST.get(name, "") for name in ("say", "text", "hint", "record")}
            told = {**self.page_values(ref), "problem": str(error), "typed": typed}
            return self.render_values(told, status=400)
        return HttpResponseRedirect(where)

    def _say(self, ref: str) -> str:
        """Say the typed line aloud, or in the account's own branch."""
        say = running_game.say_aloud if ref == npc_of(ref) else running_game.say_in_branch
        say(ref, self._line(), account=self.request.user, by=self.actor)
        return _address(ref)

    def _visit(self, ref: str) -> str:
        """Say the typed line as a visitor in a new branch."""
        line = self._line()
        return _address(running_game.visit(ref, line, account=self.request.user, by=self.actor))

    def _branch(self, ref: str) -> str:
        number = read_number(self.request.POST.get("turn", ""), what="turn")
        made = running_game.open_branch(ref, number, account=self.request.user, by=self.actor)
        return _address(made)

    def _undo(self, ref: str) -> str:
        count = read_number(self.request.POST.get("count", ""), what="count")
        where = self._conversation(ref)
        running_game.undo(where, count, by=self.actor)
        return _address(ref, where)

    def _retry(self, ref: str) -> str:
        where, hint = self._conversation(ref), self.request.POST.get("hint", "").strip()
        running_game.retry(where, hint, account=self.request.user, by=self.actor)
        return _address(ref, where)

    def _correct(self, ref: str) -> str:
        text = self.request.POST.get("text", "").strip()
        record = read_number(self.request.POST.get("record", ""), what="record")
        if not text:
            raise FormatError("form", "there are no new words; nothing was changed")
        running_game.correct(ref, str(record), text, account=self.request.user, by=self.actor)
        return _address(ref, self._conversation(ref))

    def _retire(self, ref: str) -> str:
        if "sure" not in self.request.POST:
            raise FormatError("form", "the box was not ticked; nothing was changed")
        running_game.retire(ref, account=self.request.user, by=self.actor)
        return reverse("evennia_ai:village")

    def _line(self) -> str:
        line = " ".join(self.request.POST.get("say", "").split())
        if not 0 < len(line) <= MOST_TYPED:
            raise FormatError("form", f"a line has 1 to {MOST_TYPED} characters; nothing was said")
        return line

    def _conversation(self, ref: str) -> ConversationRef:
        asked = self.request.POST.get("talk", "")
        for one in conversations_of(ref):
            if str(one.id) == asked:
                return one
        raise NotStoredError("conversation with number", asked[:20])

    def _post_trial(self, ref: str) -> HttpResponseBase:
        """Let the page of the newest turn save or check a trial. Return here after it is saved."""
        newest = turns.last_turn(ref)
        if newest is None:
            raise FormatError("form", "there is no turn to edit; nothing was changed")
        page = TurnPage()
        page.setup(self.request)
        answer = page.post(self.request, ref, newest.number)
        if answer.status_code != 302:
            return answer
        query = answer["Location"].partition("?")[2]
        return HttpResponseRedirect(f"{_address(ref)}?{query}")


class TurnsPanel(Workbench):
    """`/ai/npc/<ref>/turns/`: the turns of an NPC, its problems, and the sources of its prompt."""

    template = "evennia_ai/mind_turns.html"
    panel = "turns"

    def panel_values(self, ref: str) -> dict[str, Any]:
        newest = turns.last_turn(ref)
        made_of = list(_made_of(seer_for(self.request.user, ref), newest)) if newest else []
        return {
            "made_of": made_of,
            "log": npc_log(ref, self.requested_number(), size=PAGE_TURNS),
        }


def refuse_unknown(ref: str) -> None:
    """Refuse a reference that names no known NPC or branch.

    Raises:
        NotStoredError: The NPC does not exist and never had a turn, or nobody opened the branch.
    """
    if turns.last_turn(ref) is not None:
        return
    if builder := builder_of(ref):
        is_known = branches.newest_branch(npc_of(ref), builder) is not None
    else:
        is_known = ref in npc_list.npc_names([ref])
    if not is_known:
        raise NotStoredError("NPC with number", ref)


def read_number(text: str, *, what: str) -> int:
    """Return the number in a field of a form.

    Raises:
        FormatError: The field has none.
    """
    if not text.isdecimal() or len(text) > 18 or not int(text):
        raise FormatError("form", f"the field {what} is not a number; nothing was changed")
    return int(text)


class PauseView(Page):
    """`/ai/npc/<ref>/pause/`: pause or resume one NPC. Only POST is allowed."""

    http_method_names = ["post"]
    template = ""

    def post(self, request: HttpRequest, ref: str) -> HttpResponseBase:
        """Pause or resume the NPC, as the field `do` says."""
        acts = {"pause": running_game.pause, "resume": running_game.resume}
        act = self.act_in_form(acts)
        act(ref, by=self.actor)
        return HttpResponseRedirect(reverse("evennia_ai:mind", kwargs={"ref": ref}))


def _is_own_branch(ref: str, account: Any) -> bool:
    return builder_of(ref) in running_game.character_refs(account)


def _around(ref: str, account: Any) -> running_game.Around | None:
    """Return where the NPC is, None if it was deleted."""
    with suppress(NotStoredError):
        return running_game.around(ref, account=account)
    return None


def _talks(known: tuple[ConversationRef, ...]) -> Iterator[dict[str, Any]]:
    """Yield the conversations of an NPC in words, the newest first."""
    names = npc_list.object_names([wearer_of(one.partner_ref) or one.place_ref for one in known])
    for one in reversed(known):
        ref = wearer_of(one.partner_ref) or one.place_ref
        name = names.get(ref, "a place that is gone" if one.kind == "room" else "an imported chat")
        words = f"Aloud in {name}" if one.kind == "room" else f"Whispers with {name}"
        yield {"id": one.id, "words": words}


def _address(ref: str, where: ConversationRef | None = None) -> str:
    address = reverse("evennia_ai:mind", kwargs={"ref": ref})
    return f"{address}?talk={where.id}" if where else address


def _without_token(content: bytes) -> bytes:
    """Return a page without its CSRF tokens, which differ each time."""
    return b"".join(line for line in content.splitlines() if b"csrfmiddlewaretoken" not in line)


def _made_of(seer: Seer, newest: StoredTurn) -> Iterator[dict[str, Any]]:
    """Yield the revisions of cards, books and components that took part in the newest turn."""
    report = None
    # its words were erased, or it is unknown which of them must stay hidden
    with suppress(ReplayError):
        report = sent_report(seer, newest, past_reader())
    for what, revision in visible_revisions(seer, newest, report).items():
        kind, _, name = what.partition(":")
        yield {"kind": kind, "name": name, "revision": revision}
