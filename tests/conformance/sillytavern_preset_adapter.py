"""SillyTavern's whole prompts as scenarios with a preset: what a case says of prompts is its file.

A case's `prompt_manager` and `openai` are a preset's members; the card is a card, the persona a
persona. Nothing of the order or the formats is worked out here.
"""

from collections.abc import Mapping
from typing import Any

from evennia_ai.formats.presets.preset import OWN
from tests.conformance import sillytavern_assembly_adapter as assembly

Case = Mapping[str, Any]


def scenario_of(case: Case, *, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The scenario that asks what the case asked."""
    asked = assembly.scenario_of(case, defaults=defaults)
    settings = asked["settings"] | {"assembly": {"pin_examples": case.get("pin_examples", False)}}
    depth_texts = [one for one in asked["components"] if one["key"] == "card_depth_prompt"]
    return {
        **asked,
        "preset": preset_of(case),
        "card": _card(asked["card"], case),
        "persona": {"description": _persona(case)},
        "components": depth_texts,
        "settings": settings,
    }


def preset_of(case: Case) -> dict[str, Any]:
    """The preset file that the case had."""
    manager = case.get("prompt_manager", {})
    changed = {one["identifier"]: one for one in manager.get("prompts", ())}
    own = [changed.pop(name) for name in OWN if name in changed]
    file = {"prompts": [*own, *changed.values()], **case.get("openai", {})}
    if order := manager.get("order"):
        file["prompt_order"] = [{"character_id": 100001, "order": order}]
    return file


def _card(card: Mapping[str, Any], case: Case) -> dict[str, Any]:
    """The card with the texts of the case; its note by depth is said apart."""
    fields = {name: text for name, text in case.get("card", {}).items() if name != "depth_prompt"}
    return {**card, "data": {**card["data"], **fields}}


def _persona(case: Case) -> str:
    persona = case.get("persona", {})
    return str(persona.get("description", "")) if persona.get("position", 0) == 0 else ""
