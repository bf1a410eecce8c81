"""Convert SillyTavern's cases of whole prompts into scenarios, and our messages into its form."""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.conformance import sillytavern_adapter as world

Case = Mapping[str, Any]

MAIN = "Write {{char}}'s next reply in a fictional chat between {{char}} and {{user}}."
NEW_CHAT = "[Start a new Chat]"
NAMES = {-1: "none", 0: "none", 1: "field", 2: "content"}
ORDER = (
    *("main", "worldInfoBefore", "personaDescription", "charDescription", "charPersonality"),
    *("scenario", "nsfw", "worldInfoAfter", "dialogueExamples", "chatHistory", "jailbreak"),
)
# SillyTavern's own prompts, with our components and the card fields that have their texts.
OWN = {
    "main": "card_system_prompt",
    "jailbreak": "post_history_instructions",
    "worldInfoBefore": "world_info_before",
    "worldInfoAfter": "world_info_after",
    "personaDescription": "persona_description",
    "charDescription": "char_description",
    "charPersonality": "char_personality",
    "scenario": "scenario",
    "dialogueExamples": "dialogue_examples",
}
FIELDS = {
    "charDescription": "description",
    "charPersonality": "personality",
    "scenario": "scenario",
    "dialogueExamples": "mes_example",
}
REPLACED_BY = {"main": "system_prompt", "jailbreak": "post_history_instructions"}


def scenario_of(case: Case, *, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scenario of a case."""
    openai = case.get("openai", {})
    asked = world.scenario_of(_with_budget(case, openai), defaults=defaults)
    settings = asked["settings"] | {
        "context_tokens": openai.get("openai_max_context", 32000),
        "reply_tokens": openai.get("openai_max_tokens", 300),
        "tokenizer": "gpt-4-turbo" if "openai_max_context" in openai else "estimate",
        "assembly": _assembly(case, openai),
    }
    components = list(_components(case, openai))
    return {**asked, "settings": settings, "components": components, "notes": list(_notes(case))}


def answer(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of our result of one turn."""
    return [_message(one) for one in result["messages"]]


def wanted(expected: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of SillyTavern's answer."""
    return [_message(one) for one in expected["messages"]]


def _message(one: Mapping[str, Any]) -> dict[str, Any]:
    return {"role": one["role"], "name": one.get("name"), "content": one["content"]}


def _with_budget(case: Case, openai: Mapping[str, Any]) -> dict[str, Any]:
    """Return the case with the context of which its lore budget is a share."""
    context = openai.get("openai_max_context", 32000) - openai.get("openai_max_tokens", 300)
    return {**case, "max_context": context}


def _assembly(case: Case, openai: Mapping[str, Any]) -> dict[str, Any]:
    given = {"rules": "sillytavern", "names": NAMES[openai.get("names_behavior", 0)]}
    for ours, theirs in (
        ("scenario_format", "scenario_format"),
        ("personality_format", "personality_format"),
        ("lore_format", "wi_format"),
        ("example_heading", "new_example_chat_prompt"),
        ("squash", "squash_system_messages"),
        ("quote_user", "wrap_in_quotes"),
        ("stand_in", "send_if_empty"),
    ):
        if theirs in openai:
            given[ours] = openai[theirs]
    return {**given, "pin_examples": case.get("pin_examples", False)}


def _components(case: Case, openai: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Return the prompts of a case as components, those before the history first."""
    manager = case.get("prompt_manager", {})
    prompts = {one["identifier"]: one for one in manager.get("prompts", ())}
    order = manager.get("order") or [{"identifier": one, "enabled": True} for one in ORDER]
    free = (one for one in range(11, 4990) if one % 10)
    yield _new_chat(openai)
    for item in order:
        name = item["identifier"]
        if name == "chatHistory":
            free = (one for one in range(5001, 5499) if one % 10)
            yield {"key": "conversation_history", "enabled": item["enabled"]}
            continue
        prompt = prompts.get(name, {})
        yield {
            "id": next(free),
            "key": OWN.get(name, f"st_{name.lower()}"),
            "content": _content(name, prompt, case),
            "role": prompt.get("role") or "system",
            "enabled": item["enabled"] and not _persona_is_elsewhere(name, case),
            "trust": "imported",
            **_place(prompt),
        }
    yield from _depth_texts(case)


def _new_chat(openai: Mapping[str, Any]) -> dict[str, Any]:
    content = openai.get("new_chat_prompt", NEW_CHAT)
    return {"id": 4999, "key": "new_chat", "content": content, "trust": "imported"}


def _place(prompt: Mapping[str, Any]) -> dict[str, Any]:
    if prompt.get("injection_position") != 1:
        return {}
    return {"placement": "history", "injection_depth": prompt["injection_depth"]}


def _content(name: str, prompt: Mapping[str, Any], case: Case) -> str:
    card = case.get("card", {})
    if name in FIELDS:
        return str(card.get(FIELDS[name], ""))
    if name == "personaDescription":
        return str(case.get("persona", {}).get("description", ""))
    text = str(prompt.get("content", MAIN if name == "main" else ""))
    own = card.get(REPLACED_BY.get(name, ""), "")
    if not own or prompt.get("forbid_overrides"):
        return text
    return str(own).replace("{{original}}", text, 1).replace("{{original}}", "")


def _persona_is_elsewhere(name: str, case: Case) -> bool:
    return name == "personaDescription" and case.get("persona", {}).get("position", 0) != 0


def _depth_texts(case: Case) -> Iterator[dict[str, Any]]:
    """Return the card's depth prompt, if lorebooks do not search it for keys."""
    depth_prompt = case.get("card", {}).get("depth_prompt")
    if depth_prompt and not case.get("author_note", {}).get("allow_wi_scan"):
        yield {
            "id": 5020,
            "key": "card_depth_prompt",
            "content": depth_prompt["prompt"],
            "role": depth_prompt["role"],
            "placement": "history",
            "injection_depth": depth_prompt["depth"],
            "trust": "imported",
        }


def _notes(case: Case) -> Iterator[dict[str, Any]]:
    """Return the author's note, which is first even if empty, then other injections by depth."""
    note = case.get("author_note", {})
    yield {
        "content": _with_persona(note.get("prompt", ""), case),
        **_spot(note.get("position", 1), note.get("depth", 4), note.get("role", 0)),
        "every": note.get("interval", 1),
        "scanned": note.get("allow_wi_scan", False),
    }
    yield from _scanned_texts(case)
    for other in sorted(case.get("extension_prompts", ()), key=_by_key_in_the_history):
        yield {
            **({"key": "summary"} if other["key"] == "1_memory" else {}),
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


def _with_persona(note: str, case: Case) -> str:
    """Return the note with the persona above or below it."""
    persona = case.get("persona", {})
    beside = {
        2: f"{persona.get('description')}\n{note}",
        3: f"{note}\n{persona.get('description')}",
    }
    return beside.get(persona.get("position", 0), note)


def _scanned_texts(case: Case) -> Iterator[dict[str, Any]]:
    """Return the texts at a depth that lorebooks search for keys: persona and depth prompt."""
    persona, card = case.get("persona", {}), case.get("card", {})
    if persona.get("position") == 4 and persona.get("description"):
        yield {
            "key": "persona",
            "content": persona["description"],
            **_spot(1, persona["depth"], persona["role"]),
            "scanned": True,
        }
    depth_prompt = card.get("depth_prompt")
    if depth_prompt and case.get("author_note", {}).get("allow_wi_scan"):
        yield {
            "key": "depth_prompt",
            "content": depth_prompt["prompt"],
            "depth": depth_prompt["depth"],
            "role": depth_prompt["role"],
            "scanned": True,
        }
