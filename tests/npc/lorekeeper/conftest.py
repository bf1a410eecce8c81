"""A builder at work on the wiki; nothing of Evennia at the top, which starts later."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest


@pytest.fixture(scope="module")
def _wiki(world: Callable[[], AbstractContextManager[None]], _cast: object) -> Iterator[None]:
    """The wiki of a file's tests, made once."""
    from tests.npc.lorekeeper.wikis import a_wiki

    with world():
        a_wiki()
        yield


@pytest.fixture
def mara(_wiki: None, stage: Any) -> Any:
    """A builder, and the wiki she works on."""
    mara = stage.player("Mara")
    mara.permissions.add("Builder")
    return mara
