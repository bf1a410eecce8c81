"""Fixtures with a wiki and its builder. Evennia is not imported at the top, because it starts
later.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest


@pytest.fixture(scope="module")
def _wiki(world: Callable[[], AbstractContextManager[None]], _cast: object) -> Iterator[None]:
    """Create the wiki once for all tests of a module."""
    from tests.npc.lorekeeper.wikis import a_wiki

    with world():
        a_wiki()
        yield


@pytest.fixture
def mara(_wiki: None, stage: Any) -> Any:
    """Return a builder, Mara, and the wiki on which she works."""
    mara = stage.player("Mara")
    mara.permissions.add("Builder")
    return mara
