"""The stage with a base that is guarded; what it is made of is in `cellars.py`."""

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture(scope="module")
def _dug(beforehand: Callable[[Callable[[Any], Any]], Any]) -> None:
    """The base that Oren guards, made once for all tests of a file."""
    from tests.npc.knowledge.cellars import dig

    beforehand(lambda stage: dig(stage.npc))


@pytest.fixture
def cellar(_dug: None, stage: Any) -> Any:
    from tests.npc.knowledge.cellars import with_minds

    return with_minds(stage)


@pytest.fixture
def told(cellar: Any) -> Callable[..., Any]:
    """Ask Oren something; what the NPC's model was told of its search."""

    def ask(text: str = "Oren, what of the smugglers and the watchword?") -> Any:
        cellar.says(cellar.anna, text)
        last = cellar.minds.requests[-1].messages[-1]
        assert last.role == "tool"
        return last.content

    return ask
