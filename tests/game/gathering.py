"""What a turn would be composed from, gathered as turns do it."""

from typing import Any

from evennia_ai.game.inputs.gather import gathered
from evennia_ai.inputs import Inputs


def inputs_for(npc: Any, heard: Any) -> Inputs:
    """The inputs of the turn of `npc` that answers `heard`."""
    return gathered(npc.ai, heard, settings=npc.ai.settings, tools=()).request.inputs
