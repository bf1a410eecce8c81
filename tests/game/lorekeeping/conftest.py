"""A builder at work on the wiki; nothing of Evennia at the top, which starts later."""

from typing import Any

import pytest


@pytest.fixture
def mara(stage: Any) -> Any:
    """A builder, and the wiki she works on."""
    from tests.game.lorekeeping.wikis import a_wiki

    a_wiki()
    mara = stage.player("Mara")
    mara.permissions.add("Builder")
    return mara
