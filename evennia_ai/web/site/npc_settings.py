"""The panel of an NPC's settings, its tools and its model."""

from collections.abc import Mapping
from typing import Any, Final

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse

from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.services.settings.npc import MODE_MEANINGS, read_typed, typed_value
from evennia_ai.web.site import running_game
from evennia_ai.web.site.mind import Workbench

HELP: Final[Mapping[str, tuple[str, str]]] = {
    "model": (
        "Another model",
        "The name of another model at the address of the profile. Empty: the profile's.",
    ),
    "temperature": ("Temperature", "From 0, the likeliest words, to 2, wild. Empty: the model's."),
    "top_p": ("Top p", "Above 0, at most 1: only the likeliest words. Empty: the model's."),
    "reply_tokens": (
        "Longest answer in tokens",
        "Three words have about four tokens. Empty: the length of the model's profile.",
    ),
    "talkativeness": (
        "Talkativeness",
        "From 0 to 1: how likely it speaks among several who could. Empty: 0.5.",
    ),
    "cooldown_seconds": (
        "Pause between answers in seconds",
        "It answers later what it hears meanwhile. Empty: the game's setting.",
    ),
    "engagement_seconds": (
        "How long a conversation goes on, in seconds",
        "So long it also answers lines that do not name it. Empty: the game's setting.",
    ),
    "hop_limit": (
        "Answers in a row among NPCs",
        "After so many answers of NPCs to each other it falls silent. Empty: the game's setting.",
    ),
    "tick_seconds": (
        "Acts on its own after so many seconds",
        "It may then speak without being spoken to. Empty or 0: never.",
    ),
    "speaks": (
        "Language",
        "The code or English name of the language that it speaks. Empty: the game's.",
    ),
    "thinking": (
        "What it does while it thinks",
        "A pose that people see if the answer takes long. Empty: the game's line.",
    ),
    "odd_replies": (
        "If a reply looks odd",
        "watch: say and count it; retry: ask the model once more. Empty: the game's setting.",
    ),
    "languages": (
        "Languages that it understands",
        "Their names with commas. none: no language. Empty: all.",
    ),
    "react_to": (
        "Events that it answers by itself",
        "Kinds of events with commas, such as arrive, give. Empty: only what is addressed to it.",
    ),
    "limits": (
        "Lower limits",
        "Such as calls_per_minute=5, dollars_per_day=0.5. Empty: those of the game.",
    ),
}
"""The label and the help of the settings that the form changes, by their name."""


class SettingsPanel(Workbench):
    """`/ai/npc/<ref>/settings/`: how an NPC listens, its model, its tools, and other settings."""

    template = "evennia_ai/settings.html"
    panel = "settings"

    def panel_values(self, ref: str) -> dict[str, Any]:
        known = running_game.settings(ref)
        return {
            "settings": [
                {"name": one.name, "value": one.value, "is_own": one.is_own} for one in known
            ],
            "choices": running_game.choices(ref),
            "form_problem": "",
            "saved": "saved" in self.request.GET,
        }

    def html_values(self, told: Mapping[str, Any]) -> dict[str, Any]:
        now, typed = told["choices"], self.request.POST
        shown = {name: typed.get(name, typed_value(now.own.get(name))) for name in HELP}
        return {
            "modes": [
                {"key": mode, "meaning": meaning, "is_on": mode == typed.get("mode", now.mode)}
                for mode, meaning in MODE_MEANINGS.items()
            ],
            "fields": [
                {"name": name, "label": label, "help": words, "value": shown[name]}
                for name, (label, words) in HELP.items()
            ],
        }

    def post(self, request: HttpRequest, ref: str) -> HttpResponseBase:
        """Save the form's settings and tools."""
        try:
            running_game.choose(
                ref,
                values={
                    "mode": request.POST.get("mode", ""),
                    "profile": request.POST.get("profile") or None,
                    **{
                        name: read_typed(name, text) if text else None
                        for name in HELP
                        for text in [request.POST.get(name, "").strip()]
                    },
                },
                tools=request.POST.getlist("tool"),
                by=self.actor,
            )
        except EvenniaAIError as error:
            told = {**self.page_values(ref), "form_problem": str(error)}
            return self.render_values(told, status=400)
        where = reverse("evennia_ai:settings", kwargs={"ref": ref})
        return HttpResponseRedirect(f"{where}?saved=1#panel")
