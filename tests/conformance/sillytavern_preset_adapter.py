"""Convert SillyTavern's cases of whole prompts into scenarios with a preset.

A case's `prompt_manager` and `openai` become the members of the preset. Its card becomes a card,
and its persona a persona. The adapter itself computes no order and no format.
"""

from collections.abc import Mapping
from typing import Any

from evennia_ai.formats.presets.preset import OWN
from tests.conformance import sillytavern_assembly_adapter as assembly

Case = Mapping[str, Any]


def scenario_of(case: Case, *, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scenario of a case."""
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
    """Return the preset file of a case."""
    manager = case.get("prompt_manager", {})
    changed = {one["identifier"]: one for one in manager.get("prompts", ())}
    own = [changed.pop(name) for name in OWN if name in changed]
    file = {"prompts": [*own, *changed.values()], **case.get("openai", {})}
    if order := manager.get("order"):
        file["prompt_order"] = [{"character_id": 100001, "order": order}]
    return file


def _card(card: Mapping[str, Any], case: Case) -> dict[str, Any]:
    """Return the card with the texts of the case. Its note at a depth is separate."""
    fields = {name: text for name, text in case.get("card", {}).items() if name != "depth_prompt"}
    return {**card, "data": {**card["data"], **fields}}


def _persona(case: Case) -> str:
    persona = case.get("persona", {})
    return str(persona.get("description", "")) if persona.get("position", 0) == 0 else ""
