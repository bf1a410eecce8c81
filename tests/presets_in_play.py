"""A preset for tests: a main prompt, switches, variables and a trigger."""

import json
from typing import Any

MARKERS = (
    *("worldInfoBefore", "personaDescription", "charDescription", "charPersonality"),
    *("scenario", "worldInfoAfter", "dialogueExamples", "chatHistory"),
)


def a_prompt(identifier: str, content: str, **fields: Any) -> dict[str, Any]:
    """Return one prompt of a preset file."""
    return {
        "identifier": identifier,
        "name": identifier.title(),
        "content": content,
        "role": "system",
        "system_prompt": False,
        "marker": False,
        **fields,
    }


LOOM: dict[str, Any] = {
    "temperature": 1.0,
    "openai_max_context": 8000,
    "reverse_proxy": "https://proxy.example/secret",
    "proxy_password": "hush-hush",
    "names_behavior": 0,
    "prompts": [
        a_prompt("main", "LOOM-MAIN Play {{char}}. {{setvar::tone::salty}}", system_prompt=True),
        a_prompt("tone", "LOOM-TONE Be {{getvar::tone}}."),
        a_prompt("brief", "LOOM-BRIEF One line."),
        a_prompt("ticks", "LOOM-QUIET Nobody asked.", injection_trigger=["quiet"]),
        a_prompt("deep", "LOOM-DEEP Stay here.", injection_position=1, injection_depth=1),
        a_prompt("jailbreak", "LOOM-AFTER Stay in character.", system_prompt=True),
        *({"identifier": one, "marker": True, "system_prompt": True} for one in MARKERS),
    ],
    "prompt_order": [
        {
            "character_id": 100001,
            "order": [
                {"identifier": "main", "enabled": True},
                {"identifier": "tone", "enabled": True},
                {"identifier": "brief", "enabled": False},
                {"identifier": "ticks", "enabled": True},
                *({"identifier": one, "enabled": True} for one in MARKERS[:-1]),
                {"identifier": "deep", "enabled": True},
                {"identifier": "chatHistory", "enabled": True},
                {"identifier": "jailbreak", "enabled": True},
            ],
        }
    ],
    "a_key_of_tomorrow": {"kept": [1, 2.5, None]},
}


def loom(**members: Any) -> dict[str, Any]:
    """Return the preset with other members."""
    return {**LOOM, **members}


def without_secrets(preset: dict[str, Any]) -> str:
    """Return the text of a preset as the store gets it."""
    secrets = ("reverse_proxy", "proxy_password")
    return json.dumps({name: value for name, value in preset.items() if name not in secrets})
