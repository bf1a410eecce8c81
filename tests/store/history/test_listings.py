"""Pages of records: newest first, over all conversations of one NPC, no texts of prompts."""

from evennia_ai.store.history.conversations import conversation
from evennia_ai.store.history.listings import record_page
from tests.store.history.test_turns import begun, heard


def bodies(page):
    return [record.body for record in page.records]


def test_pages_go_from_the_newest_record_to_the_oldest():
    where = conversation("12", kind="room", place_ref="3")
    for number in range(5):
        heard(where, f"Line {number}.")
    first, second, third = (record_page("12", number, size=2) for number in (1, 2, 3))
    assert bodies(first) == ["Line 3.", "Line 4."]
    assert bodies(second) == ["Line 1.", "Line 2."]
    assert bodies(third) == ["Line 0."]
    assert [page.has_older for page in (first, second, third)] == [True, True, False]
    assert bodies(record_page("12", 4, size=2)) == []


def test_a_page_has_all_conversations_of_the_npc_and_of_no_other():
    room = conversation("12", kind="room", place_ref="3")
    private = conversation("12", kind="private", partner_ref="7")
    heard(room, "Loud.")
    heard(private, "Soft.")
    heard(conversation("13", kind="room", place_ref="3"), "Elsewhere.")
    page = record_page("12", 1, size=9)
    assert bodies(page) == ["Loud.", "Soft."]
    assert page.conversations == {room.id: room, private.id: private}


def test_texts_of_prompts_are_left_out():
    where = conversation("12", kind="room", place_ref="3")
    heard(where, "Said.")
    begun(where)
    assert bodies(record_page("12", 1, size=9)) == ["Said."]
