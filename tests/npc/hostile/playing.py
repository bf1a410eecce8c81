"""Play whole turns with a hostile text, and return everything that came of them.

The text enters the game, is answered, and is in the history of the next turn. Then the model obeys
the text in every way, and one more turn has the model's acts in its history. Evennia must be
started before this module is imported.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from evennia_ai.commands.screens import COLOURS
from evennia_ai.engine.history.turn.replay import Replay
from evennia_ai.npc.npc_settings import settings_of
from evennia_ai.npc.tools.registry import toolbox_of
from evennia_ai.services.llm.chat import ChatMessage, ChatRequest
from evennia_ai.services.llm.roles import OPEN, STRICT, RoleProfile, adapt_messages, chat_messages
from evennia_ai.store.authored import components
from evennia_ai.store.history import past_turns, turns
from tests.npc.conftest import Screen
from tests.npc.hostile.scene import FITTED, NATIVE, Scene, furnish
from tests.npc.hostile.ways import FROM_OUTSIDE, QUESTION, WAYS

ROLES: Mapping[str, RoleProfile] = {"native": NATIVE, "fitted": FITTED}
"""The kinds of servers that get the requests."""

OTHERS: Mapping[str, RoleProfile] = {
    "open, told": replace(OPEN, tools="schema"),
    "open, none": replace(OPEN, tools="none"),
    "strict": STRICT,
    "names": replace(OPEN, speakers="name"),
    "merged names": replace(STRICT, speakers="name", tools="none"),
    "nameless": replace(OPEN, speakers="none"),
}
"""Other kinds of servers, for which the same prompts are adapted but not sent."""

LOOKED_AT = (
    "ai oren",
    "ai/context oren",
    "ai/context oren = full",
    "ai/context oren = changes",
    "ai/history oren = full",
    "ai/history oren/2 = full",
    "ai/log oren",
    "ai/memory oren",
    "ai/why oren/1",
    "ai/why oren = 1",
    "ai/why oren = mood",
    "ai/replay oren = 1 full",
    "ai/replay oren = 2 full",
    "component/preview/full oren = hello",
    "lore/why oren = 1",
)
"""What a builder types after the turns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """The results of a play.

    The model was not yet hostile in the first `steady` requests. `adapted` has the prompts of
    all turns for every kind of server. `faults` are turns without a replay, `changes` the
    changed parts of the world, `logged` the lines of the log.
    """

    requests: tuple[ChatRequest, ...]
    steady: int
    adapted: Mapping[str, tuple[tuple[ChatMessage, ...], ...]]
    clients: Mapping[str, Screen]
    builder: Screen
    faults: tuple[str, ...]
    changes: tuple[str, ...]
    logged: tuple[str, ...]
    seconds: float


def play(
    stage: Any, text: str, *, way: str, roles: str, logged: list[str], looks: Sequence[str] = ()
) -> Played:
    """Play the turns.

    If a builder then types `looks`, the model obeys the text before that.
    """
    scene = Scene(stage, ROLES[roles])
    before, began = world(scene), time.process_time()
    logged.clear()
    WAYS[way](scene, text)
    steady = 0
    if way in FROM_OUTSIDE:
        scene.says(scene.ben, QUESTION)
        steady = len(scene.requests)
    if way in FROM_OUTSIDE and looks:
        scene.obeys(text)
        scene.says(scene.ben, QUESTION)
    if way not in FROM_OUTSIDE or looks:
        scene.replies("Aye.")
        scene.says(scene.ben, QUESTION)
    seconds = time.process_time() - began
    clients = dict(zip(("Anna", "Ben", "Mara"), map(_copied, scene.people), strict=True))
    lines = tuple(logged)
    builder = _looked_at(scene, looks)
    replayed = _replayed(scene)
    played = Played(
        requests=tuple(scene.requests),
        steady=steady,
        adapted=_adapted(scene, replayed),
        clients=clients,
        builder=builder,
        faults=_faults(replayed),
        changes=tuple(sorted(f"{one}" for one in before.items() ^ world(scene).items())),
        logged=lines,
        seconds=seconds,
    )
    for end in scene.ends:
        end()
    return played


def prepared(stage: Any) -> Any:
    """Return the stage with the game's own components."""
    furnish()
    return stage


def world(scene: Scene) -> dict[str, str]:
    """Return what no text may change: locks, permissions, settings, components, commands."""
    found = {"components": repr(components.registry().components)}
    found["settings"] = repr(settings_of(scene.npc))
    for one in (scene.room, scene.npc, *scene.people):
        found[f"#{one.id} locks"] = str(one.locks)
        found[f"#{one.id} permissions"] = repr(one.permissions.all())
        found[f"#{one.id} aliases"] = repr(one.aliases.all())
        found[f"#{one.id} commands"] = repr(one.cmdset.all())
    return found


def _copied(person: Any) -> Screen:
    screen = Screen()
    screen.sent = list(person.screen.sent)
    return screen


def _looked_at(scene: Scene, lines: Sequence[str]) -> Screen:
    screen = Screen()
    for line in lines:
        with patch.dict(COLOURS, clear=True):  # what has a colour still, others gave it
            screen.sent += scene.shown_to_builder(line)
    return screen


def _replayed(scene: Scene) -> dict[int, Replay]:
    """Replay the prompt of each turn from its records, by the number of the turn."""
    newest = turns.last_turn(scene.npc.ai.ref)
    numbers = range(1, newest.number + 1) if newest else ()
    stored = (turns.get_turn(scene.npc.ai.ref, number) for number in numbers)
    return {turn.number: past_turns.replay_stored_turn(turn) for turn in stored}


def _faults(replayed: Mapping[int, Replay]) -> tuple[str, ...]:
    return tuple(
        f"turn {number}: {one.problem}" for number, one in replayed.items() if not one.is_same
    )


def _adapted(
    scene: Scene, replayed: Mapping[int, Replay]
) -> dict[str, tuple[tuple[ChatMessage, ...], ...]]:
    """The prompts of all turns as each kind of server takes them."""
    settings = settings_of(scene.npc)
    specs = toolbox_of(scene.npc, settings.tools, event=None).specs  # type: ignore[arg-type]
    prompts = [chat_messages(one.messages) for one in replayed.values()]
    return {
        name: tuple(adapt_messages(prompt, profile=profile, tools=specs) for prompt in prompts)
        for name, profile in OTHERS.items()
    }
