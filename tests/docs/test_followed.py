"""Test that a user who follows a page never gets stuck: settings, code and commands work.

The demo builder types the commands in the demo village. The examples of a page run in order, as for
a reader.
"""

from itertools import groupby
from typing import Any

import pytest

from tests.docs.fences import all_blocks
from tests.docs.following import Follower
from tests.docs.test_own_game import OWN_GAME

PAGES = {
    page: [one for one in found if (one.page, one.heading) not in OWN_GAME or one.kind == "python"]
    for page, found in groupby(all_blocks(), key=lambda one: one.page)
}


@pytest.mark.parametrize("page", PAGES)
def test_reader_who_follows_a_page_never_gets_stuck(
    page: str, village: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Follower(village, monkeypatch).follows(PAGES[page]) == []
