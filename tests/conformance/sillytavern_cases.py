"""The cases that SillyTavern answered, and what the engine answers."""

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.memo import Memo
from evennia_ai.engine.regex_scripts import ScriptRun
from evennia_ai.formats.regex_scripts import running_scripts
from evennia_ai.formats.scenario import run_scenario
from tests.conformance import sillytavern_adapter as lore
from tests.conformance import sillytavern_assembly_adapter as assembly
from tests.conformance import sillytavern_macro_adapter as macros
from tests.conformance.differences import NOT_ASKED, ON_PURPOSE, OPEN

# In a case with this feature SillyTavern removes an uninvolved entry from an inclusion group.
_SLIP: Final = "double_removal"


class Case(NamedTuple):
    """One case: our answer and SillyTavern's, each as a list with one item for each turn."""

    name: str
    given: Mapping[str, Any]
    ours: Callable[[], list[Any]]
    theirs: list[Any]


class Share(NamedTuple):
    """The number of cases that agree, of those that can be asked and do not differ on purpose."""

    agree: int
    counted: int

    @property
    def percent(self) -> float:
        """The share of the cases that agree, in percent."""
        return 100 * self.agree / self.counted


def _read(folder: str, adapter: Any) -> dict[str, Case]:
    found: dict[str, Case] = {}
    for path in sorted((Path(__file__).parent / folder).glob("*.json")):
        file = json.loads(path.read_text("utf-8"))
        for case in file["cases"]:
            if _SLIP in case["features"]:
                continue
            theirs = [adapter.wanted(turn, case) for turn in case["expected"]]
            assert len(theirs) == len(case.get("turns", "1"))
            ours = partial(_ask, adapter, case, file["entry_defaults"])
            name = f"{path.stem}/{case['id']}" if adapter is lore else case["id"]
            assert name not in found
            found[name] = Case(name, case, ours, theirs)
    return found


def _ask(adapter: Any, case: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[Any]:
    made = run_scenario(adapter.scenario_of(case, defaults=defaults))
    return [adapter.answer(turn) for turn in made["turns"]]


def _read_macros() -> dict[str, Case]:
    path = Path(__file__).parent / "sillytavern-macros" / "macros.json"
    file = json.loads(path.read_text("utf-8"))
    defaults = file["context_defaults"]
    return {
        case["id"]: Case(
            case["id"],
            case,
            lambda case=case: [macros.answer(case, defaults)],
            [macros.wanted(case, defaults)],
        )
        for case in file["cases"]
    }


def _read_scripts() -> dict[str, Case]:
    path = Path(__file__).parent / "sillytavern-scripts" / "scripts.json"
    file = json.loads(path.read_text("utf-8"))
    defaults = file["script_defaults"]
    return {
        name: Case(name, case, partial(_run_scripts, case, defaults), [case["expected"]])
        for case in file["cases"]
        if (name := f"scripts/{case['id']}")
    }


def _run_scripts(case: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[str]:
    scripts = [
        script
        for place in ("game", "preset", "card")
        for script in running_scripts([{**defaults, **one} for one in case.get(place, ())], place)
    ]
    values = {"user": "Bob", "char": "Mira", **case.get("values", {})}
    dice = Dice(turn="1", conversation="1")
    run = ScriptRun(scripts, case.get("surface", "prompt"), values=values, dice=dice)
    placement = case.get("placement", "ai_output")
    return [run.text(case["text"], placement, depth=case.get("depth"), where="", memo=Memo())]


LORE: Final = _read("sillytavern", lore)
MACROS: Final = _read_macros()
PROMPTS: Final = _read("sillytavern-assembly", assembly)
SCRIPTS: Final = _read_scripts()


def share_of(cases: Mapping[str, Case]) -> Share:
    """Return the share of cases that agree. The tests compare the lists with the answers."""
    counted = cases.keys() - NOT_ASKED.union(*(one.cases for one in ON_PURPOSE))
    return Share(len(counted - OPEN), len(counted))
