"""Builders of SillyTavern preset files for tests."""

from collections.abc import Sequence
from typing import Any

from evennia_ai.formats.presets.preset import OWN, Preset
from evennia_ai.formats.presets.reading import read_preset


def a_prompt(identifier: str, content: str = "", **fields: Any) -> dict[str, Any]:
    """Return an item of `prompts` as SillyTavern writes it."""
    return {
        "identifier": identifier,
        "name": identifier,
        "role": "system",
        "content": content,
        "system_prompt": False,
        "marker": False,
        **fields,
    }


def own_prompts() -> list[dict[str, Any]]:
    """Return SillyTavern's own prompts, which every preset file has."""
    return [
        {
            "identifier": name,
            "name": own.name,
            "system_prompt": True,
            "marker": own.is_marker,
            **({} if own.is_marker else {"role": "system", "content": own.content}),
        }
        for name, own in OWN.items()
    ]


def an_order(*names: str, off: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return the member `prompt_order` with one order, which SillyTavern uses."""
    items = [{"identifier": name, "enabled": name not in off} for name in names]
    return [{"character_id": 100001, "order": items}]


def a_file(
    *prompts: dict[str, Any],
    before: Sequence[str] = ("main",),
    after: Sequence[str] = ("jailbreak",),
    off: Sequence[str] = (),
    **fields: Any,
) -> dict[str, Any]:
    """Return the JSON of a preset file.

    `before` and `after` are the identifiers around the history.
    """
    given = {one["identifier"] for one in prompts}
    return {
        "prompts": [*(one for one in own_prompts() if one["identifier"] not in given), *prompts],
        "prompt_order": an_order(*before, "chatHistory", *after, off=off),
        **fields,
    }


def a_preset(*prompts: dict[str, Any], **fields: Any) -> Preset:
    """Return the preset that is read from such a file."""
    return read_preset(a_file(*prompts, **fields), name="Test")
