"""A user who follows a page gets nowhere stuck: its settings hold, its code runs, its lines work.

What is typed in the game is typed by the demo builder in the demo village; the examples of a page
come one after the other, as they do for who reads it.
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
