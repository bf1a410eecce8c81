"""Gather the inputs of a turn in the same way as turns do."""

from typing import Any

from evennia_ai.engine.inputs import Inputs
from evennia_ai.npc.inputs.gather import gather_turn


def inputs_for(npc: Any, heard: Any) -> Inputs:
    """Return the inputs of the turn of `npc` that answers `heard`."""
    return gather_turn(npc.ai, heard, settings=npc.ai.settings, tools=()).request.inputs
