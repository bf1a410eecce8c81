"""Test reading past turns, and pages of their records."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evennia_ai.store.history import past_turns, turns
from evennia_ai.store.history.conversations import get_or_open_conversation
from evennia_ai.store.history.past_turns import record_page
from tests.store.history.test_turns import REPLY, begun, heard


@pytest.fixture
def two_talks():
    """Turns 1, 3 and 5 of NPC 12 in the room, 2 and 4 in a whisper."""
    room = get_or_open_conversation("12", kind="room", place_ref="3")
    private = get_or_open_conversation("12", kind="private", partner_ref="7")
    for number in range(5):
        where = private if number % 2 else room
        heard(where, f"Line {number}.")
        turn, _ = begun(where)
        turns.finish_turn(turn, [REPLY])
    return room, private


def numbers(stream):
    return [turn.number for turn in stream]


def test_newest_turns_are_listed_oldest_first(two_talks):
    assert numbers(past_turns.newest_turns("12", 3)) == [3, 4, 5]
    assert numbers(past_turns.newest_turns("12", 9)) == [1, 2, 3, 4, 5]
    assert past_turns.newest_turns("13", 3) == ()


def test_turn_before_is_of_the_same_conversation(two_talks):
    assert past_turns.turn_before(turns.get_turn("12", 5)).number == 3
    assert past_turns.turn_before(turns.get_turn("12", 4)).number == 2
    assert past_turns.turn_before(turns.get_turn("12", 1)) is None


@pytest.mark.parametrize(
    ("newest", "expected"), [(None, [1, 2, 3, 4, 5]), (2, [4, 5]), (5, [1, 2, 3, 4, 5]), (9, 5)]
)
def test_all_or_the_newest_turns_are_yielded_in_order(two_talks, newest, expected):
    found = numbers(past_turns.turns_in_order("12", newest=newest))
    assert found == (expected if isinstance(expected, list) else [1, 2, 3, 4, 5])


def test_walk_over_turns_reads_part_by_part(two_talks, monkeypatch):
    monkeypatch.setattr(past_turns, "_CHUNK", 2)
    stream = past_turns.turns_in_order("12")
    with CaptureQueriesContext(connection) as queries:
        next(stream)
        next(stream)
    assert len(queries) == 1
    assert numbers(stream) == [3, 4, 5]


def test_npcs_with_turns_are_listed_with_the_number_of_turns(two_talks):
    assert past_turns.npc_refs() == ("12",)
    assert past_turns.count_of_turns("12") == 5
    assert past_turns.count_of_turns("13") == 0


def bodies(page):
    return [record.body for record in page.records]


def test_record_pages_go_from_newest_to_oldest():
    where = get_or_open_conversation("12", kind="room", place_ref="3")
    for number in range(5):
        heard(where, f"Line {number}.")
    first, second, third = (record_page("12", number, size=2) for number in (1, 2, 3))
    assert bodies(first) == ["Line 3.", "Line 4."]
    assert bodies(second) == ["Line 1.", "Line 2."]
    assert bodies(third) == ["Line 0."]
    assert [page.has_older for page in (first, second, third)] == [True, True, False]
    assert bodies(record_page("12", 4, size=2)) == []


def test_record_page_has_all_conversations_of_its_npc_only():
    room = get_or_open_conversation("12", kind="room", place_ref="3")
    private = get_or_open_conversation("12", kind="private", partner_ref="7")
    heard(room, "Loud.")
    heard(private, "Soft.")
    heard(get_or_open_conversation("13", kind="room", place_ref="3"), "Elsewhere.")
    page = record_page("12", 1, size=9)
    assert bodies(page) == ["Loud.", "Soft."]
    assert page.conversations == {room.id: room, private.id: private}


def test_record_page_leaves_out_texts_of_prompts():
    where = get_or_open_conversation("12", kind="room", place_ref="3")
    heard(where, "Said.")
    begun(where)
    assert bodies(record_page("12", 1, size=9)) == ["Said."]
