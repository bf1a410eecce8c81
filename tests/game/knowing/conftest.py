"""The stage with a base that is guarded; what it is made of is in `cellars.py`."""

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def cellar(stage: Any) -> Any:
    from tests.game.knowing.cellars import a_cellar

    return a_cellar(stage)


@pytest.fixture
def told(cellar: Any) -> Callable[..., Any]:
    """Ask Oren something; what the NPC's model was told of its search."""

    def ask(text: str = "Oren, what of the smugglers and the watchword?") -> Any:
        cellar.says(cellar.anna, text)
        last = cellar.minds.requests[-1].messages[-1]
        assert last.role == "tool"
        return last.content

    return ask
