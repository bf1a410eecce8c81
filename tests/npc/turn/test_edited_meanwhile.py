"""Edits made while a model thinks: the turn keeps its sources, and its manifest names them.

What the pages show of a turn is what was sent, because composing it again gives the same bytes.
"""

from typing import Any

import pytest

from evennia_ai.engine.actors import THE_GAME
from evennia_ai.npc.npc_settings import change_settings
from evennia_ai.npc.views.recomposing import PastReader, compose_again
from evennia_ai.store.history.past_turns import turns_in_order
from tests.npc.scripted_games import edit_everything, furnish
from tests.npc.turn.test_turn_acts import calls


@pytest.mark.req("S2-03", "S2-30")
def test_edits_made_while_a_model_thinks_apply_from_the_next_turn(stage: Any) -> None:
    furnish(stage)
    change_settings(stage.npc, tools=("look",), by=THE_GAME)

    def thinks(request: Any) -> Any:
        if len(model.requests) > 1:
            return "Water."
        edit_everything(stage)
        return calls(("look", {}))

    model = stage.talks_with(thinks)
    stage.says(stage.anna, "Oren, the ferry, the lamp?")
    stage.says(stage.anna, "Ned, the ferry, the lamp?")

    first, second, after = model.requests
    assert second.messages[: len(first.messages)] == first.messages
    assert "Somebody else." in "\n".join(message.content for message in after.messages)
    assert (second.speaker, after.speaker) == ("Oren", "Ned")
    one, two, three = turns_in_order(stage.npc.ai.ref)
    assert one.manifest.revisions == two.manifest.revisions != three.manifest.revisions
    again = [compose_again(turn, PastReader()).sha256 for turn in (one, two, three)]
    assert again == [turn.manifest.sha256 for turn in (one, two, three)]
