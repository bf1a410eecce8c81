"""The page with the regex scripts of the game, of cards and of presets."""

from typing import Any, Final

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse

from evennia_ai.engine.errors import EditConflictError, EvenniaAIError, FormatError
from evennia_ai.formats.regex_scripts import PLACEMENTS, ReadScript, describe_script, lint_script
from evennia_ai.npc.mind.regex_scripts import (
    ScriptList,
    all_scripts,
    edit_script,
    revision_of,
    scripts_of,
)
from evennia_ai.web.site.page import Page, read_seen_revision

_TEXTS: Final = ("find", "replace", "min_depth", "max_depth")
_FLAGS: Final = ("prompt_only", "display_only")


class ScriptsPage(Page):
    """`/ai/scripts/`: all regex scripts, each in a form."""

    template = "evennia_ai/scripts.html"
    section = "cards"

    def page_values(self) -> dict[str, Any]:
        return {
            "lists": [_list_values(one) for one in all_scripts()],
            "problem": "",
            "saved": "saved" in self.request.GET,
        }

    def post(self, request: HttpRequest) -> HttpResponseBase:
        """Save the fields of one script, or switch it on or off, as the field `do` says."""
        act = self.act_in_form({"save": _typed_fields, "on": _switch_on, "off": _switch_off})
        typed = request.POST
        try:
            kind, name = typed.get("kind", ""), typed.get("holder", "")
            if kind not in ("game", "card", "preset"):
                raise FormatError("form", "the form does not say whose script it is; open it again")
            where = scripts_of(kind, name)
            script = where.scripts[where.index(typed.get("script", ""))]
            seen = read_seen_revision(typed.get("seen", ""))
            edit_script(where, script, act(request), seen=seen, by=self.actor)
        except EvenniaAIError as error:
            status = 409 if isinstance(error, EditConflictError) else 400
            told = {**self.page_values(), "problem": str(error)}
            return self.render_values(told, status=status)
        return HttpResponseRedirect(f"{reverse('evennia_ai:scripts')}?saved=1")


def _typed_fields(request: HttpRequest) -> dict[str, str]:
    typed = request.POST
    fields = {name: typed.get(name, "").replace("\r\n", "\n") for name in _TEXTS}
    fields |= {name: "on" if name in typed else "off" for name in _FLAGS}
    if "placement" in typed:
        fields["placement"] = ", ".join(typed.getlist("placement"))
    return fields


def _switch_on(request: HttpRequest) -> dict[str, str]:
    return {"disabled": "off"}


def _switch_off(request: HttpRequest) -> dict[str, str]:
    return {"disabled": "on"}


def _list_values(where: ScriptList) -> dict[str, Any]:
    return {
        "title": str(where),
        "kind": where.kind,
        "holder": where.name,
        "notice": where.notice,
        "scripts": [_script_values(where, one) for one in where.scripts],
    }


def _script_values(where: ScriptList, script: ReadScript) -> dict[str, Any]:
    file = script.file
    return {
        "script": script.name,
        "seen": revision_of(where, script),
        "does": describe_script(script),
        "is_on": not file.disabled,
        "find": file.find,
        "replace": file.replacement,
        "prompt_only": file.prompt_only,
        "display_only": file.display_only,
        "min_depth": "" if file.min_depth is None else str(file.min_depth),
        "max_depth": "" if file.max_depth is None else str(file.max_depth),
        "placements": [
            {"word": word, "is_chosen": word in script.placements} for word in PLACEMENTS.values()
        ],
        "findings": [finding.text for finding in lint_script(script)],
    }
