"""Fixtures: a stage whose NPC guards the base of `cellars.py`."""

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture(scope="module")
def _dug(beforehand: Callable[[Callable[[Any], Any]], Any]) -> None:
    """Store the base that Oren guards, once for all tests of a file."""
    from tests.npc.knowledge.cellars import dig

    beforehand(lambda stage: dig(stage.npc))


@pytest.fixture
def cellar(_dug: None, stage: Any) -> Any:
    from tests.npc.knowledge.cellars import with_minds

    return with_minds(stage)


@pytest.fixture
def told(cellar: Any) -> Callable[..., Any]:
    """A function that asks Oren something and returns the result of his search."""

    def ask(text: str = "Oren, what of the smugglers and the watchword?") -> Any:
        cellar.says(cellar.anna, text)
        last = cellar.minds.requests[-1].messages[-1]
        assert last.role == "tool"
        return last.content

    return ask
