"""Pages about kept answers: keep a turn, list the cases with their states, show and accept one.

They do the same as `ai/keep`, `ai/kept` and `ai/kept/accept` in the game.
"""

from collections.abc import Callable
from typing import Any, Final

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse

from evennia_ai.engine.errors import EvenniaAIError, NotStoredError
from evennia_ai.formats.kept import change_lines
from evennia_ai.npc.mind.kept import (
    accept_case,
    check_cases,
    check_named,
    foresee_edit,
    keep_turn,
    refuse_hidden,
)
from evennia_ai.npc.views.kept import CheckedCase, KeptCaseError
from evennia_ai.store.history import turns
from evennia_ai.web.site.differing import difference_values
from evennia_ai.web.site.page import Page

MOST_ABOUT: Final = 200
"""The most characters of the words about a case."""


class KeepView(Page):
    """`/ai/npc/<ref>/turn/<n>/keep/`: keep a turn as a case. Only POST is allowed."""

    http_method_names = ["post"]
    template = ""

    def post(self, request: HttpRequest, ref: str, number: int) -> HttpResponseBase:
        """Write the turn into a new file, with the typed words about it."""
        about = request.POST.get("about", "").strip()[:MOST_ABOUT]
        path, _ = keep_turn(request.user, turns.get_turn(ref, number), about=about)
        return _to_case(path.stem, "kept")


class KeptPage(Page):
    """`/ai/kept/`: the kept answers with their states."""

    template = "evennia_ai/kept.html"
    section = "kept"

    def page_values(self) -> dict[str, Any]:
        found, total = check_cases()
        return {"cases": [_row(one) for one in found], "checked": len(found), "total": total}


class KeptCasePage(Page):
    """`/ai/kept/<name>/`: one kept answer, and what differs in its prompt."""

    template = "evennia_ai/kept_case.html"
    section = "kept"

    def page_values(self, name: str) -> dict[str, Any]:
        found = _case(name)
        told = {
            **_row(found),
            "kept_now": "kept" in self.request.GET,
            "accepted": "accepted" in self.request.GET,
            "reply": "",
            "said": "",
            "may_see": True,
            "difference": [],
        }
        try:
            refuse_hidden(self.request.user, found)
        except KeptCaseError as error:
            return {**told, "problem": told["problem"] or str(error), "may_see": False}
        assert found.case is not None
        event = found.case.inputs.event
        return {
            **told,
            "reply": found.case.reply,
            "said": "" if event is None else event.content,
            "difference": _difference(found),
        }

    def post(self, request: HttpRequest, name: str) -> HttpResponseBase:
        """Accept the prompt that the case gets now."""
        accept_case(request.user, _case(name))
        return _to_case(name, "accepted")


CHECK: Final = "check"
"""The field of a form that only asks which kept answers its edit would change."""


def make_or_foresee(page: Page, edit: Callable[[], object]) -> dict[str, Any] | None:
    """Make an edit, and return None.

    If the form only asks which kept answers the edit would give another prompt, make no edit, and
    return them as values of the page. If the edit would be refused, the values say why.

    Raises:
        EvenniaAIError: The edit was refused.
    """
    if CHECK not in page.request.POST:
        edit()
        return None
    looker = page.request.user
    try:
        found = foresee_edit(edit)
    except EvenniaAIError as error:
        return {"problem": str(error), "checked": 0, "total": 0, "cases": []}
    return {
        "problem": "",
        "checked": found.checked,
        "total": found.total,
        "cases": [{**_row(one), "difference": _visible(looker, one)} for one in found.cases],
    }


def _case(name: str) -> CheckedCase:
    found = check_named(name)
    if found is None:
        raise NotStoredError("kept answer called", name)
    return found


def _row(found: CheckedCase) -> dict[str, Any]:
    case = found.case
    return {
        "name": found.name,
        "state": found.state,
        "about": case.about if case else "",
        "npc": case.npc.name if case else "",
        "speaker": case.speaker.name if case and case.speaker else "",
        "tokens": found.prompt.tokens if found.prompt else None,
        "problem": found.problem.removeprefix(f"{found.path}: "),
    }


def _difference(found: CheckedCase) -> list[dict[str, Any]]:
    if found.change is None:
        return []
    return difference_values(line.removeprefix("  ") for line in change_lines(found.change))


def _visible(looker: Any, found: CheckedCase) -> list[dict[str, Any]]:
    """Return what differs in a case, or one line about why it is hidden."""
    try:
        refuse_hidden(looker, found)
    except KeptCaseError as error:
        return [{"how": "head", "text": str(error)}]
    return _difference(found) or [{"how": "head", "text": "the same prompt again as it was kept"}]


def _to_case(name: str, done: str) -> HttpResponseBase:
    where = reverse("evennia_ai:kept_case", kwargs={"name": name})
    return HttpResponseRedirect(f"{where}?{done}=1")
