"""A scripted game that uses everything that a prompt can contain."""

import json
from typing import Any
from unittest.mock import patch

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.prompt.components import GAME, PromptComponent, Scope, of_npc
from evennia_ai.store.authored import cards, components, notes
from evennia_ai.store.authored.cards import save_card
from evennia_ai.store.authored.lorebooks import LOREBOOKS, save_book

CARD = {
    "name": "Oren Vale",
    "nickname": "Oren",
    "description": "{{char}} rows {{user}} over. Lucky number {{roll:d20}}.",
    "personality": "Dry.",
    "scenario": "A landing in the fog.",
    "mes_example": "<START>\n{{user}}: Hello?\n{{char}}: Mind the planks.",
    "first_mes": "Mind the wet planks, {{user}}.",
    "alternate_greetings": ["Back so soon? {{random:Well,Hm}}."],
    "creator_notes": "He fears the lighthouse.",
    "tags": ["ferryman"],
    "extensions": {"depth_prompt": {"prompt": "{{char}} is cold.", "depth": 2, "role": "system"}},
    "character_book": {
        "name": "Oren's own",
        "entries": [
            {
                "keys": ["lamp"],
                "content": "He keeps a lamp for her.",
                "enabled": True,
                "insertion_order": 5,
                "extensions": {},
                "use_regex": False,
            }
        ],
    },
}


def an_entry(key: str, content: str, **fields: Any) -> dict[str, Any]:
    base = {"keys": [key], "content": content, "extensions": {}, "enabled": True}
    return {**base, "insertion_order": 1, "use_regex": False, **fields}


HARBOUR = (
    an_entry("ferry", "The ferry sails with the tide.", extensions={"sticky": 2, "cooldown": 2}),
    an_entry("bell", "The bell is cracked. {{random:Rust,Salt}}.", extensions={"probability": 60}),
    an_entry("tide", "@@depth 2\nThe tide turns at {{roll:d12}}."),
    an_entry("fog", "@@dont_activate_after_match\nThe fog took three boats."),
    an_entry("boats", "The boats were new.", insertion_order=0),
    an_entry("", "Always damp.", keys=[], constant=True),
)
SECRETS = (an_entry("lamp", "Anna knows of the lamp."),)

LINES = (
    "Oren, when does the ferry sail?",
    "Oren, what of the bell?",
    "Fog again, and the tide is out, Oren.",
    "Oren, is the lamp lit?",
    "Thanks, Oren. The boats?",
    "Oren, the ferry, the bell, the tide?",
)


def furnish(stage: Any, *, card: dict[str, Any] = CARD) -> None:
    """Create a card with a greeting, two books, notes and components in three scopes, with dice."""
    data = {"spec": "chara_card_v3", "spec_version": "3.0", "data": card}
    save_card("oren", json.dumps(data), by=trusted("builder"))
    cards.CARDS.assign("oren", of_npc(stage.npc.ai.ref), by=trusted("builder"))
    cards.set_greeting(stage.npc.ai.ref, 1, by=trusted("builder"))
    a_book("harbour", HARBOUR, GAME)
    a_book("secrets", SECRETS, Scope(kind="player", ref=str(stage.anna.id)))
    a_book("landing", (an_entry("damp", "So damp."),), Scope(kind="room", ref=str(stage.room.id)))
    rule("mood", "{{char}} is {{random:tired,merry}}, {{roll:d6}}.", id=1201, injection_depth=1)
    rule("mood", "{{char}} waits.", id=1201, scope=Scope(kind="room", ref=str(stage.room.id)))
    with patch(
        "evennia_ai.store.authored.components.check_before_history"
    ):  # a game may already have such a component
        rule("spare", "Speak as to {{speaker}}.", id=1203)
    rule("asleep", "Never said.", id=1204, enabled=False)
    notes.set_note(stage.npc.ai.ref, by=trusted("builder"), content="Be brief.", every=2, depth=1)
    notes.set_note(stage.npc.ai.ref, "gulls", by=trusted("builder"), content="{{roll:d8}} gulls.")


def a_book(name: str, entries: Any, scope: Scope) -> None:
    save_book(name, json.dumps({"entries": list(entries)}), by=trusted("builder"))
    LOREBOOKS.assign(name, scope, by=trusted("builder"))


def rule(key: str, content: str, **fields: Any) -> None:
    components.create(PromptComponent(key=key, content=content, **fields), by=trusted("builder"))


def edit_everything(stage: Any) -> None:
    """Change every source of a prompt, and the name of the NPC."""
    other = {**CARD, "nickname": "Ned", "description": "Somebody else.", "character_book": None}
    data = {"spec": "chara_card_v3", "spec_version": "3.0", "data": other}
    save_card("oren", json.dumps(data), by=trusted("editor"))
    for name in ("harbour", "secrets", "landing"):
        save_book(
            name, json.dumps({"entries": [an_entry("oren", "New words.")]}), by=trusted("editor")
        )
    components.update("mood", content="Merry.", by=trusted("editor"))
    components.COMPONENTS.remove("spare", by=trusted("editor"))
    components.update("asleep", enabled=True, by=trusted("editor"))
    notes.clear_notes(stage.npc.ai.ref, by=trusted("editor"))
    notes.set_note(stage.npc.ai.ref, by=trusted("editor"), content="Ramble on.")
    stage.npc.key = "Ned"
    stage.room.key = "Quay"
    stage.room.db.desc = "Another place."


def play(stage: Any, *, rounds: int = 2) -> None:
    """Let Anna and Ben speak with Oren in turn, sometimes in whispers."""
    for number in range(rounds):
        for index, line in enumerate(LINES):
            speaker = (stage.anna, stage.ben)[(index + number) % 2]
            stage.says(speaker, line)
            if index % 3 == 2:
                stage.whispers(speaker, f"{line} Between us.")
            stage.passes(1)
