"""Convert SillyTavern's cases of whole prompts into scenarios, and our messages into its form.

A case's `prompt_manager` and `openai` become the members of a preset file, its card a card and its
persona a persona. The adapter itself computes no order and no format.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from evennia_ai.formats.presets.preset import OWN
from tests.conformance import sillytavern_adapter as world

Case = Mapping[str, Any]


def scenario_of(case: Case, *, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scenario of a case."""
    openai = case.get("openai", {})
    context, reply = openai.get("openai_max_context", 32000), openai.get("openai_max_tokens", 300)
    asked = world.scenario_of({**case, "max_context": context - reply}, defaults=defaults)
    settings = asked["settings"] | {
        "context_tokens": context,
        "reply_tokens": reply,
        "tokenizer": "gpt-4-turbo" if "openai_max_context" in openai else "estimate",
        "assembly": {"pin_examples": case.get("pin_examples", False)},
    }
    return {
        **asked,
        "card": _card(case),
        "preset": preset_of(case),
        "persona": {"description": _persona_in_prompt(case)},
        "settings": settings,
        "notes": list(_notes(case)),
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


def _card(case: Case) -> dict[str, Any]:
    """Return the card of a case, without its depth prompt if that is searched for keys."""
    card = dict(case.get("card", {}))
    if _scans_note(case):
        card.pop("depth_prompt", None)
    return world.card_of({**case, "card": card})


def _scans_note(case: Case) -> bool:
    return bool(case.get("author_note", {}).get("allow_wi_scan"))


def answer(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of our result of one turn."""
    return [_message(one) for one in result["messages"]]


def wanted(expected: Mapping[str, Any], _: Case) -> list[dict[str, Any]]:
    """Return the messages of SillyTavern's answer."""
    return [_message(one) for one in expected["messages"]]


def _message(one: Mapping[str, Any]) -> dict[str, Any]:
    return {"role": one["role"], "name": one.get("name"), "content": one["content"]}


def _persona_in_prompt(case: Case) -> str:
    persona = case.get("persona", {})
    return str(persona.get("description", "")) if persona.get("position", 0) == 0 else ""


def _notes(case: Case) -> Iterator[dict[str, Any]]:
    """Return the author's note, which is first even if empty, then other injections by depth."""
    note = case.get("author_note", {})
    place = _spot(note.get("position", 1), note.get("depth", 4), note.get("role", 0))
    shared = {**place, "every": note.get("interval", 1)}
    above, below = _around_note(case)
    if "place" in place or not _has_lore_around_note(case):
        text = "\n".join(filter(None, (above, note.get("prompt", ""), below)))
        above = below = ""
    else:
        text = note.get("prompt", "")
    yield {**shared, "content": text, "scanned": _scans_note(case)}
    # The summary's place among the texts of one depth is above the note, the persona's below it.
    for key, beside in (("summary", above), ("persona", below)):
        if beside:
            yield {**shared, "key": key, "content": beside}
    yield from _texts_at_a_depth(case)
    for other in sorted(case.get("extension_prompts", ()), key=_by_key_in_the_history):
        yield {
            **({"key": "summary"} if other["key"] == "1_memory" and not above else {}),
            "content": other["value"],
            **_spot(other["position"], other["depth"], other.get("role", 0)),
            "scanned": other.get("scan", False),
        }


def _by_key_in_the_history(other: Mapping[str, Any]) -> str:
    return str(other["key"]) if other["position"] == 1 else ""


def _spot(position: int, depth: int, role: int) -> dict[str, Any]:
    """Return where an injection is placed: below or above the main prompt, or at a depth."""
    sides = {0: {"place": "after card_system_prompt"}, 2: {"place": "before card_system_prompt"}}
    return {"role": world.ROLES[role], "depth": depth, **sides.get(position, {})}


def _around_note(case: Case) -> tuple[str, str]:
    """Return the persona's text above and below the note, "" where it is not."""
    persona = case.get("persona", {})
    text, position = persona.get("description", ""), persona.get("position", 0)
    return (text if position == 2 else "", text if position == 3 else "")


def _has_lore_around_note(case: Case) -> bool:
    entries = (one for book in case["books"].values() for one in book["entries"].values())
    return any(entry.get("position") in (2, 3) for entry in entries)


def _texts_at_a_depth(case: Case) -> Iterator[dict[str, Any]]:
    """Return the persona at a depth, and a depth prompt that is searched for keys."""
    persona, depth_prompt = case.get("persona", {}), case.get("card", {}).get("depth_prompt")
    if persona.get("position") == 4 and persona.get("description"):
        yield {
            "key": "persona",
            "content": persona["description"],
            **_spot(1, persona["depth"], persona.get("role", 0)),
        }
    if depth_prompt and _scans_note(case):
        text = {"content": depth_prompt["prompt"], "scanned": True}
        place = {"depth": depth_prompt["depth"], "role": depth_prompt["role"]}
        yield {"key": "depth_prompt", **text, **place}
