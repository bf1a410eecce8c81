"""Builders of cards, books and scenarios for the tests of scenarios."""

from typing import Any


def a_card(*entries: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return the V3 card of a lamplighter, with a book of these entries."""
    data: dict[str, Any] = {
        "name": "Tilda",
        "description": "Tilda lights the lamps.",
        "personality": "",
        "scenario": "",
        "first_mes": "Mind the ladder, {{user}}.",
        "mes_example": "",
        "creator_notes": "",
        "system_prompt": "",
        "post_history_instructions": "",
        "alternate_greetings": ["The third lamp is out."],
        "tags": [],
        "creator": "",
        "character_version": "",
        "extensions": {},
        "group_only_greetings": ["Good evening, all."],
        **fields,
    }
    if entries:
        data["character_book"] = a_book(*entries)
    return {"spec": "chara_card_v3", "spec_version": "3.0", "data": data}


def a_book(*entries: dict[str, Any], name: str = "lamps") -> dict[str, Any]:
    return {"name": name, "extensions": {}, "entries": list(entries)}


def an_entry(content: str, *keys: str, **fields: Any) -> dict[str, Any]:
    """Return a lore entry, which is constant if it has no keys."""
    return {
        "keys": list(keys),
        "content": content,
        "constant": not keys,
        "enabled": True,
        "insertion_order": 100,
        "use_regex": False,
        "extensions": {},
        **fields,
    }


def said(count: int) -> list[dict[str, Any]]:
    """Return messages `m1` to `m<count>`, by the user and the assistant in turn."""
    return [{"role": ("user", "assistant")[i % 2], "content": f"m{i + 1}"} for i in range(count)]


def a_rich_scenario() -> dict[str, Any]:
    """Return a scenario that uses every key."""
    return {
        "card": a_card(an_entry("@@depth 2\nOil is dear.", "oil"), an_entry("Lamps are lit.")),
        "lorebooks": [
            {
                "name": "town",
                "attach": "chat",
                "mode": "frozen",
                "book": a_book(an_entry("A town.")),
            }
        ],
        "components": [
            {"id": 1203, "key": "mood", "content": "Tired, {{user}}.", "role": "system"},
            {"content": "By depth.", "injection_depth": 1, "injection_order": 5},
            {"key": "goals", "content": "Finish before dark.", "enabled": True},
        ],
        "notes": [
            {
                "content": "A note.",
                "depth": 1,
                "role": "user",
                "every": 1,
                "mode": "anchored",
                "scanned": True,
            }
        ],
        "dynamic_context": ["It rains."],
        "persona": {"name": "Anna", "description": "Anna is new here."},
        "history": [
            {"role": "user", "name": "Anna", "content": "What burns in them?"},
            {"role": "assistant", "content": "Oil."},
        ],
        "event": {"name": "Anna", "content": "Whose oil?"},
        "settings": {
            "user": "Anna",
            "layout": "classic",
            "blocks": "on_change",
            "context_tokens": 4000,
            "reply_tokens": 100,
            "tokenizer": "bytes/3.35",
            "seed": 7,
            "greeting": True,
            "greeting_index": 1,
            "group": False,
            "language": "en",
            "system_prompt": "Play fair.",
            "post_history_instructions": "Stay in character.",
            "card_system_prompt": "",
            "card_trust": "author",
            "user_icon": "anna.png",
            "facts": {"weather": "rain", "hour": 23, "room.zones": ["quay"]},
            "lore": {"scan_depth": 3, "budget_percent": 50, "case_sensitive": False},
        },
    }
