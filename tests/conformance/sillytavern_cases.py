"""The cases of the kit that SillyTavern answered, and what the engine answers."""

import sys
from collections.abc import Collection, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, Final, NamedTuple

from conformance.run import holds_for, load_cases, problems
from tests.conformance.differences import NOT_ASKED, ON_PURPOSE, OPEN, VERSION

KIT: Final = Path(__file__).resolve().parents[2] / "conformance"
sys.path.append(str(KIT / "adapters"))  # an adapter imports its neighbours as a program does
from evennia_ai_lore import lore  # noqa: E402
from evennia_ai_macros import macro  # noqa: E402
from evennia_ai_prompts import prompt  # noqa: E402

# In a case with this feature SillyTavern removes an uninvolved entry from an inclusion group.
_SLIP: Final = "double removal"
_TASKS: Final = {"lore": lore, "macro": macro, "prompt": prompt}


class Case(NamedTuple):
    """One case of the kit."""

    name: str
    case: Mapping[str, Any]

    def answer(self) -> Any:
        """Return the output of the adapter, or a text that says why there is none."""
        return _TASKS[self.case["task"]](deepcopy(self.case["input"]))

    def wrong(self) -> list[str]:
        """Return how our answer differs from SillyTavern's. Empty if they agree."""
        answer = self.answer()
        return [answer] if isinstance(answer, str) else problems(self.case, answer)

    def messages(self) -> tuple[list[Any], list[Any]]:
        """Return the messages of a prompt in one turn: ours, and those of SillyTavern."""
        [made], [told] = self.answer()["turns"], self.case["expected"]["turns"]
        return made["messages"], told["messages"]


class Share(NamedTuple):
    """The number of cases that agree, of those that can be asked and do not differ on purpose."""

    agree: int
    counted: int

    @property
    def percent(self) -> float:
        """The share of the cases that agree, in percent."""
        return 100 * self.agree / self.counted


def _read(task: str) -> dict[str, Case]:
    """Return the cases of a task by the names of `differences.py`.

    A lore case is named after its file too.
    """
    found: dict[str, Case] = {}
    for case in _ALL:
        if case["task"] != task or _SLIP in case["features"] or not case["id"].startswith(task):
            continue
        _, rest = case["id"].split("/", 1)
        name = rest if task == "lore" else rest.rpartition("/")[2]
        assert name not in found
        found[name] = Case(name, case)
    return found


# The older macro engine of the application has cases of its own, which are not asked here.
_ALL: Final = [
    case
    for case in load_cases()
    if holds_for(case, VERSION) and case["input"].get("engine") != "legacy"
]
LORE: Final = _read("lore")
MACROS: Final = _read("macro")
PROMPTS: Final = _read("prompt")


def share_of(cases: Collection[str]) -> Share:
    """Return the share of cases, by name, that agree.

    The tests compare the lists with the answers.
    """
    counted = set(cases) - NOT_ASKED.union(*(one.cases for one in ON_PURPOSE))
    return Share(len(counted - OPEN), len(counted))
