"""Generated data folders of SillyTavern: cards, lorebooks, chats, presets, personas.

The files are like those in docs/build/moving-in.md, with some unknown fields. Equal calls create
equal files.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evennia_ai.formats.cards.exporting import dump_card
from evennia_ai.formats.cards.loading import load_card
from evennia_ai.formats.lorebooks.conversion import as_v3
from tests.formats.chats.builders import a_file, a_line, a_user_line

FIRST = ("Oren", "Mira")


def character(number: int) -> str:
    """Return the name of the character with this number."""
    return FIRST[number] if number < len(FIRST) else f"Villager {number:04}"


def made_folder(
    path: Path, *, cards: int = 6, chats_each: int = 1, personas: Sequence[str] = ("Pim",)
) -> Path:
    """Create the folder. Each tenth character and the first two have a lorebook and a chat."""
    path.mkdir(parents=True)
    for number in range(cards):
        name = character(number)
        has_world = number % 10 == 0 or number < len(FIRST)
        _write(path / "characters" / f"{name}.png", a_picture(name, number, linked=has_world))
        if has_world:
            _json(path / "worlds" / f"Lore of {name}.json", a_world(name))
            for at in range(chats_each):
                _write(path / "chats" / name / f"{name} - {at}.jsonl", a_chat_of(name, at))
    _write(path / "group chats" / "1720180000.jsonl", a_group_chat())
    _json(path / "groups" / "1720170000.json", a_group("1720170000", "1720180000"))
    _json(path / "OpenAI Settings" / "Default.json", a_preset())
    _json(
        path / "OpenAI Settings" / "Quiet nights.json", a_preset(temperature=0.7, of_tomorrow=[1])
    )
    _json(path / "settings.json", settings_with(personas))
    _write(path / "User Avatars" / "pim.png", b"\x89PNG")
    _write(path / "secrets.json", b"{")
    _write(path / "characters" / "notes.txt", b"-")
    return path


def a_picture(name: str, number: int, *, linked: bool = False) -> bytes:
    """Return a card in a PNG file, with unknown fields.

    A card that is linked with a lorebook contains a copy of it, as SillyTavern writes it.
    """
    raw: dict[str, Any] = {
        "spec": "chara_card_v2",
        "spec_version": "2.0",
        "data": {
            "name": name,
            "description": f"{name} is the villager of number {number}.",
            "personality": "dry",
            "scenario": "",
            "first_mes": "Evening.",
            "mes_example": "<START>\n{{char}}: Hm.",
            "extensions": {"talkativeness": "0.5", "fav": False, "of_tomorrow": [number]},
        },
    }
    if linked:
        raw["data"]["character_book"] = as_v3(a_world(name), name=f"Lore of {name}")["data"]
        raw["data"]["extensions"]["world"] = f"Lore of {name}"
    card = load_card(json.dumps(raw).encode())
    return dump_card(card, "png", with_v2=True, modified_at=1_720_180_000)


def a_world(name: str) -> dict[str, Any]:
    entry = {
        "uid": 0,
        "key": [name],
        "keysecondary": [],
        "comment": "who they are",
        "content": f"{name} lives on the quay.",
        "constant": False,
        "order": 100,
        "position": 4,
        "depth": 4,
        "disable": False,
        "vectorized": False,
        "a field of tomorrow": {"x": [1]},
    }
    return {"entries": {"0": entry}, "originalData": {"kept": True}}


def a_preset(**fields: Any) -> dict[str, Any]:
    """Return a preset with a prompt inside the chat, and an unknown field."""
    prompts = [
        {"identifier": "main", "name": "Main", "role": "system", "content": "Be {{char}}."},
        {"identifier": "chatHistory", "name": "Chat History", "marker": True},
        {
            "identifier": "6f1c",
            "name": "Brevity",
            "role": "user",
            "content": "Two sentences.",
            "injection_position": 1,
            "injection_depth": 2,
            "injection_order": 100,
            "of_tomorrow": {"kept": True},
        },
    ]
    order = [{"identifier": one["identifier"], "enabled": True} for one in prompts]
    lists = [{"character_id": 100001, "order": order}]
    return {"prompts": prompts, "prompt_order": lists, **fields}


def a_group(group: str, chat: str) -> dict[str, Any]:
    """Return a group of two characters and one whose card is missing, with its own scenario."""
    return {
        "id": group,
        "name": "Quay",
        "members": ["Oren.png", "Mira.png", "Nobody.png"],
        "disabled_members": ["Mira.png"],
        "activation_strategy": 1,
        "generation_mode": 1,
        "generation_mode_join_prefix": "<{{char}}>",
        "generation_mode_join_suffix": "</{{char}}>",
        "allow_self_responses": False,
        "chat_metadata": {"scenario": "They wait for\nthe ferry."},
        "chat_id": chat,
        "chats": [chat],
        "of_tomorrow": {"kept": [True]},
    }


def a_chat_of(name: str, at: int) -> bytes:
    """Return a chat with a note, a lorebook, variables and swipes, and two damaged lines."""
    header = {
        "user_name": "unused",
        "character_name": "unused",
        "create_date": "2024-7-5@14h03m22s",
        "chat_metadata": {
            "integrity": f"{name}-{at}",
            "note_prompt": "It rains.",
            "note_depth": 4,
            "note_interval": 1,
            "note_role": 0,
            "world_info": f"Lore of {name}",
            "variables": {"mood": "calm", "coins": 3},
            "timedWorldInfo": {"sticky": {"x": {"start": 1}}},
        },
    }
    reply = f"Evening, for the {at}th time."
    swipes = {"swipes": [reply, "Hm?"], "swipe_id": 0, "swipe_info": [{"extra": {}}, {}]}
    damaged = b'{"name": "Anna", "mes": "cut o'
    last = a_line(name, "Soon.", variables=[{"mood": "calm"}], extra={"reasoning": "Hm."})
    return b"\n".join(
        (
            a_file(header, a_line(name, reply, **swipes)),
            damaged,
            a_file(a_user_line("When does\nshe leave?")),
            b"\xff\x00",
            a_file(last),
        )
    )


def a_group_chat() -> bytes:
    """Return a group chat, which has no header line."""
    return a_file(
        a_user_line("Good evening, all."),
        a_line("Oren", "Evening.", original_avatar="Oren.png", is_group=True),
        a_line("Mira", "Fish!", original_avatar="Mira.png"),
        a_line("System", "Night falls.", extra={"type": "narrator"}),
    )


def settings_with(names: Sequence[str]) -> dict[str, Any]:
    """Return SillyTavern's settings with these personas, each at another place."""
    told = {
        f"{name.lower()}.png": {
            "description": f"{name} is tall.\nAnd late.",
            "position": (0, 2, 3, 4, 9)[at % 5],
            "depth": at + 1,
            "role": 1,
            "lorebook": "Lore of Oren",
            "title": "the traveller",
            "connections": [{"type": "character", "id": "Oren.png"}],
        }
        for at, name in enumerate(names)
    }
    named = {f"{name.lower()}.png": name for name in names}
    return {
        "username": "User",
        "power_user": {"personas": named, "persona_descriptions": told, "fast_ui_mode": True},
    }


def values_in(folder: Path) -> dict[str, Any]:
    """Return the contents of a folder's files by path. An export must keep them."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        where = path.relative_to(folder).as_posix()
        if path.suffix == ".png" and where.startswith("characters/"):
            found[where] = path.read_bytes()
        elif path.suffix == ".jsonl":
            found[where] = [_value(line) for line in path.read_bytes().split(b"\n")]
        elif where.startswith(("worlds/", "OpenAI Settings/", "groups/")):
            found[where] = json.loads(path.read_text())
        elif where == "settings.json":
            found[where] = personas_in(json.loads(path.read_text()))
    return found


def _value(line: bytes) -> Any:
    """Return the JSON value of a line, or the line itself if it is damaged."""
    try:
        return json.loads(line)
    except ValueError:
        return line


def personas_in(settings: dict[str, Any]) -> dict[str, Any]:
    """Return the personas of the settings, by their pictures."""
    user = settings["power_user"]
    return {
        file: (name, user["persona_descriptions"][file]) for file, name in user["personas"].items()
    }


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _json(path: Path, value: Any) -> None:
    _write(path, json.dumps(value, ensure_ascii=False, indent=4).encode())
