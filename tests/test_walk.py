"""Test limits on how many files a reader must open to follow one action.

The limits are today's values. If you shorten a walk, lower its limit.
"""

import json
from typing import Any

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.compose import compose
from evennia_ai.engine.prompt.components import GAME
from evennia_ai.store.authored import lorebooks
from tests.commands.stage import Stage as Harbour
from tests.engine.lorebook.builders import a_book, an_entry
from tests.engine.prompt.builders import a_history, the_inputs
from tests.npc import conftest as of_the_game
from tests.walks import Walk, walked

_cast, stage = of_the_game._cast, of_the_game.stage  # Fixtures

LINE = "Oren, and where to?"
FIVE_KEYS = ("ferry", "where", "bell", "tide", "lamp")


def bounded(name: str, walk: Walk, *, files: int, moves: int) -> None:
    """Print the figures of a walk, and fail if it is longer than its limit."""
    print(f"walk {name}: {walk}")
    assert len(walk.files) <= files, f"{name}: {walk}; in order: {', '.join(walk.files)}"
    assert walk.moves <= moves, f"{name}: {walk}"


def said_twice(stage: Any) -> Walk:
    """Return the walk from a player's line to the reply, measured at the second line."""
    model = stage.talks_with(lambda _: "Over the river, and back.")
    stage.says(stage.anna, LINE)
    with walked() as walk:
        stage.says(stage.anna, LINE)
    assert len(model.requests) == 2
    assert stage.screen_of(stage.anna).count('Oren says, "Over the river, and back."') == 2
    return walk


def test_walk_follows_a_line_to_its_reply(stage: Any) -> None:
    bounded("say", said_twice(stage), files=108, moves=822)


def test_walk_follows_a_line_to_its_reply_with_a_lorebook(stage: Any) -> None:
    entries = [an_entry(f"Of the {key}.", keys=[key]) for key in FIVE_KEYS]
    lorebooks.save_book("harbour", json.dumps({"entries": entries}), by=trusted("Mara"))
    lorebooks.LOREBOOKS.assign("harbour", GAME, by=trusted("Mara"))
    bounded("say_lore", said_twice(stage), files=122, moves=918)


def test_walk_follows_a_prompt_with_one_lore_entry() -> None:
    book = a_book(an_entry("The ferry sails with the tide.", keys=["ferry"]))
    inputs = the_inputs(books=(book,), history=a_history(4), event="Oren, the ferry?")
    compose(inputs)
    with walked() as walk:
        prompt = compose(inputs)
    assert any("sails with the tide" in message.content for message in prompt.messages)
    bounded("compose", walk, files=29, moves=104)


def test_walk_follows_a_change_of_a_components_depth(db: None) -> None:
    harbour = Harbour()
    harbour.builds("component/create mood = 1200: The air is heavy.", "component/depth mood = 3")
    with walked() as walk:
        told = harbour.builds("component/depth mood = 2")
    assert "depth" in told
    bounded("depth", walk, files=26, moves=157)  # One of these may be the flush of `builds`.
