"""The ways in which a hostile text enters the game, each up to the NPC's answer.

`HARMLESS` enters in the same ways, so the difference shows the effect of the hostile text.
"""

import json
from collections.abc import Callable
from typing import Any

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import ModelUnavailable
from evennia_ai.engine.prompt.components import NO_GRANTS, Scope, of_npc
from evennia_ai.npc.recording.heard import ConversationKey, open_conversation
from evennia_ai.npc.senses.happenings import happened
from evennia_ai.npc.upkeep.remembering import remember
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.authored import cards
from evennia_ai.store.authored.cards import save_card
from evennia_ai.store.authored.lorebooks import LOREBOOKS, save_book
from tests.npc.hostile.corpus import MARK
from tests.npc.hostile.scene import ROOM, Scene, calls_with

HARMLESS = MARK
QUESTION = "Well, Oren, what do you say?"

Way = Callable[[Scene, str], None]


# What players say and do


def say(scene: Scene, text: str) -> None:
    scene.says(scene.anna, text)


def talk(scene: Scene, text: str) -> None:
    scene.types(scene.anna, f"talk oren = {text}")


def whisper(scene: Scene, text: str) -> None:
    scene.says(scene.anna, text, receivers=[scene.npc], whisper=True)


def pose(scene: Scene, text: str) -> None:
    scene.types(scene.anna, f"pose nods at Oren: {text}", is_ours=False)


def player_name(scene: Scene, text: str) -> None:
    scene.anna.key = text
    scene.says(scene.anna, QUESTION)
    scene.types(scene.anna, f"talk oren = {QUESTION}")
    scene.says(scene.anna, QUESTION, receivers=[scene.npc], whisper=True)


def language(scene: Scene, text: str) -> None:
    scene.says(scene.anna, QUESTION, language=text, volume=text)


# What players show


def thing_name(scene: Scene, text: str) -> None:
    thing = scene.thing(text, place=scene.anna)
    thing.aliases.add("thing")
    scene.types(scene.anna, "show thing to oren")
    scene.acts(lambda: thing.move_to(scene.npc, quiet=True, move_type="give"))


def description(scene: Scene, text: str) -> None:
    scene.thing("map", place=scene.anna, desc=text)
    scene.types(scene.anna, "show map to oren")


def look(scene: Scene, text: str) -> None:
    """The NPC looks around, and the tool's result contains the text."""
    scene.room.db.desc = text
    turn = iter(range(1000))
    scene.says_at_once = lambda request: (
        scene.calling((("look", "{}"),)) if next(turn) == 0 else "Aye."
    )
    scene.says(scene.anna, QUESTION)


def scene(scene: Scene, text: str) -> None:
    """The NPC enters a room with this description."""
    _comes_to(scene, "Vault", text)


def room_name(scene: Scene, text: str) -> None:
    _comes_to(scene, text, "It is dark.")


def happening(scene: Scene, text: str) -> None:
    happened(scene.room, "weather", text, wants_answer=True)
    scene.stage.passes(1)


def _comes_to(scene: Scene, name: str, desc: str) -> None:
    there = scene.stage.make(name, ROOM, place=None)
    there.db.desc = desc
    for one in (scene.npc, *scene.people):
        one.move_to(there, quiet=True)
        scene.stage.passes(1)
    scene.says(scene.anna, QUESTION)


# What authors write


def card(scene: Scene, text: str) -> None:
    """A card from another program, without grants."""
    entry = {**_entry(text), "extensions": {"depth": 0, "role": 0, "position": 4}}
    data = {
        "name": "Oren",
        "description": text,
        "personality": text,
        "scenario": text,
        "system_prompt": text,
        "post_history_instructions": text,
        "mes_example": text,
        "extensions": {"depth_prompt": {"prompt": text, "depth": 0, "role": "system"}},
        "character_book": {"entries": [_entry(text), entry], "extensions": {}},
    }
    whole = {"spec": "chara_card_v3", "spec_version": "3.0", "data": data}
    save_card("hostile", json.dumps(whole), grants=NO_GRANTS, by=trusted("builder"))
    cards.CARDS.assign("hostile", of_npc(scene.npc.ai.ref), by=trusted("builder"))
    scene.says(scene.anna, QUESTION)


def lore(scene: Scene, text: str) -> None:
    """A lorebook that is attached to one player."""
    pattern = _entry("Asleep.", keys=["/(a+)+Q/"], constant=False, use_regex=True)
    keyed = _entry("Asleep.", keys=[f"never {text[:200]}"], constant=False)
    book = {"entries": [_entry(text), pattern, keyed]}
    save_book("hostile", json.dumps(book), by=trusted("builder"))
    place = Scope(kind="player", ref=str(scene.anna.id))
    LOREBOOKS.assign("hostile", place, by=trusted("builder"))
    scene.says(scene.anna, QUESTION)
    scene.ends.append(lambda: LOREBOOKS.unassign(place, "hostile", by=trusted("builder")))


def _entry(content: str, **fields: Any) -> dict[str, Any]:
    usual = {"keys": [], "constant": True, "enabled": True, "insertion_order": 1, "extensions": {}}
    return {**usual, "use_regex": False, "content": content, **fields}


def memory(scene: Scene, text: str) -> None:
    """A text that the NPC remembers."""
    where = open_conversation(
        scene.npc.ai.ref, ConversationKey(kind="room", place_ref=str(scene.room.id))
    )
    remember(scene.npc.ai.ref, text, where=where, importance=10, rules=conf().memory)
    scene.says(scene.anna, f"{QUESTION} {MARK}")


# What models and servers do


def reply(scene: Scene, text: str) -> None:
    scene.replies(text)
    scene.says(scene.anna, QUESTION)


def act(scene: Scene, text: str) -> None:
    scene.obeys(text)
    scene.says(scene.anna, QUESTION)


def answer(scene: Scene, text: str) -> None:
    """The whole reply of a server that writes its tool calls as JSON."""
    scene.replies(text)
    scene.says(scene.anna, QUESTION)


def arguments(scene: Scene, text: str) -> None:
    _calls(scene, tuple((name, text) for name, _ in calls_with(text)))


def tool(scene: Scene, text: str) -> None:
    _calls(scene, ((text, "{}"), (text, json.dumps({text: text}))))


def error(scene: Scene, text: str) -> None:
    scene.says_at_once = lambda request: ModelUnavailable("scripted", text)
    scene.says(scene.anna, QUESTION)


def crash(scene: Scene, text: str) -> None:
    """A model client of the game raises an unexpected exception."""
    scene.says_at_once = lambda request: RuntimeError(text)
    scene.says(scene.anna, QUESTION)


def _calls(scene: Scene, calls: tuple[tuple[str, str], ...]) -> None:
    turn = iter(range(1000))
    scene.says_at_once = lambda request: scene.calling(calls) if next(turn) == 0 else "Aye."
    scene.says(scene.anna, QUESTION)


FROM_OUTSIDE: dict[str, Way] = {
    way.__name__: way
    for way in (
        *(say, talk, whisper, pose, player_name, language),
        *(thing_name, description, look, scene, room_name, happening),
        *(card, lore, memory),
    )
}
"""Ways in from players and authors, while the model itself is not hostile."""

FROM_MODEL: dict[str, Way] = {
    way.__name__: way for way in (reply, act, answer, arguments, tool, error, crash)
}
WAYS = FROM_OUTSIDE | FROM_MODEL
NAMES = frozenset({"player_name", "thing_name", "room_name"})
