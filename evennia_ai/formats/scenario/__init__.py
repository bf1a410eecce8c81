"""Scenarios: a prompt described in one file or one mapping, composed without the game.

The command line, the tests and the golden cases use them. Reading is strict (`reading`), running
is the pipeline itself (`running`), and the result is plain values (`result`).
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
    """The result of the scenario `data`; with `turns`, `{"turns": [...]}`.

    `folder` is where its paths count from, the current one by default. EvenniaAIError: the
    scenario, its card or a book cannot be read, or what it requires does not fit.
    """
    scenario = read_scenario(data, folder=folder)
    results = [result_of(turn) for turn in composed_turns(scenario)]
    return {"turns": results} if scenario.several else results[0]
