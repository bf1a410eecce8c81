"""Scenarios: descriptions of a prompt in one file or mapping, composed without a game.

The command line, the tests and the golden cases use scenarios. `reading` parses a scenario
strictly, `running` composes it with the engine's own pipeline, and `result` returns plain values.
"""

from pathlib import Path
from typing import Any

from evennia_ai.formats.scenario.reading import Scenario, read_scenario, read_scenario_file
from evennia_ai.formats.scenario.result import result_of
from evennia_ai.formats.scenario.running import ComposedTurn, composed_turns

__all__ = [
    "ComposedTurn",
    "Scenario",
    "composed_turns",
    "read_scenario",
    "read_scenario_file",
    "result_of",
    "run_scenario",
]


def run_scenario(data: object, *, folder: Path | None = None) -> dict[str, Any]:
    """Compose a scenario and return its result as plain values.

    Args:
        data: the scenario, as parsed from YAML or JSON.
        folder: the folder that relative paths start from; by default the current folder.

    Returns:
        The result of the turn. A scenario with several turns has a list of results in `turns`.

    Raises:
        EvenniaAIError: the scenario, its card or a book cannot be read, or required texts do not
            fit.
    """
    scenario = read_scenario(data, folder=folder)
    results = [result_of(turn) for turn in composed_turns(scenario)]
    return {"turns": results} if scenario.several else results[0]
