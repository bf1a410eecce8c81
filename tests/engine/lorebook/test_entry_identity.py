"""Tests of identities: entries with the same label have separate timers."""

import pytest

from evennia_ai.engine.lorebook.activation.timers import Clock
from evennia_ai.engine.lorebook.book import label_of
from tests.engine.lorebook.builders import a_book, a_scan, an_entry, texts
from tests.engine.lorebook.turns import a_turn

STAYS = {"sticky": 9, "cooldown": 9}


@pytest.mark.parametrize(
    ("book", "uid", "other", "other_uid"),
    [
        ({"label": "a"}, "b#c", {"label": "a#b"}, "c"),
        ({"label": "a\\"}, "b#c", {"label": "a#b"}, "c"),
        ({"label": "a", "attach": "character"}, "1", {"label": "a", "attach": "npc"}, "1"),
        ({"label": "a", "attach": "character"}, "1", {"label": "#a", "attach": "npc"}, "1"),
    ],
)
def test_entries_with_the_same_label_have_separate_timers(book, uid, other, other_uid):
    woken = a_book(an_entry("Woken.", keys=["coin"], id=uid, extensions=STAYS), **book)
    silent = a_book(an_entry("Never.", keys=["gate"], id=other_uid, extensions=STAYS), **other)
    first = a_turn(woken, silent, scan=a_scan("user: coin"))
    assert list(map(label_of, first.after.sticky)) == [f"{book['label']}#{uid}"]
    later = a_turn(woken, silent, scan=a_scan("user: hm"), state=first.after, clock=Clock(turns=2))
    assert texts(later) == ["Woken."]


def test_timers_of_an_entry_are_stored_by_its_label():
    book = a_book(an_entry(extensions=STAYS), label="harbour", attach="npc")
    assert list(a_turn(book, scan=a_scan("user: coin")).after.sticky) == ["harbour#0"]
