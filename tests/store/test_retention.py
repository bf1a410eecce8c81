"""Test that silent conversations are erased as a whole after some days."""

import pytest

from evennia_ai.store import erasing
from evennia_ai.store.erasing import Erased
from evennia_ai.store.history import conversations, record_rows
from evennia_ai.store.history.conversations import append_records, get_or_open_conversation
from evennia_ai.store.history.record_rows import End, insert_records, rows_after
from evennia_ai.store.history.verifying import verify
from tests.store.builders import a_line, said

DAY = 86_400.0
NOW = 1_000 * DAY


def spoken(where, body: str, *, days_ago: float) -> None:
    """Say something in the conversation as if it were so many days ago."""
    (row,) = rows_after(End(), where.id, [a_line(body)])
    insert_records([row._replace(created_at=NOW - days_ago * DAY)])
    conversations.windows.drop(where.id)


@pytest.fixture
def quay():
    return get_or_open_conversation("12", kind="room", place_ref="3")


@pytest.fixture
def whispers():
    return get_or_open_conversation("12", kind="private", partner_ref="7")


def test_conversation_silent_for_too_long_is_erased(quay, whispers):
    spoken(quay, "Long ago.", days_ago=31)
    spoken(whispers, "Lately.", days_ago=29)
    gone = erasing.forget_old(NOW, keep_days=30)

    assert (said(quay), said(whispers)) == ([], ["Lately."])
    assert gone == Erased(conversations=1, records=1, turns=0)
    assert verify(quay) is None


def test_old_words_of_an_active_conversation_are_kept(quay):
    spoken(quay, "Long ago.", days_ago=31)
    append_records(quay, [a_line("Just now.")])

    assert erasing.forget_old(NOW, keep_days=30) == Erased()
    assert said(quay) == ["Long ago.", "Just now."]


def test_expired_conversation_says_why_it_was_erased(quay):
    spoken(quay, "Long ago.", days_ago=31)
    erasing.forget_old(NOW, keep_days=30)

    assert record_rows.records_of(quay)[-1].meta["by"] == "retention after 30 days"


def test_erased_conversation_is_not_erased_again(quay):
    spoken(quay, "Long ago.", days_ago=31)
    erasing.forget_old(NOW, keep_days=30)

    assert erasing.forget_old(NOW + 100_000 * DAY, keep_days=30) == Erased()


def test_forget_old_erases_a_limited_number_of_conversations_per_call():
    wheres = [get_or_open_conversation("12", kind="private", partner_ref=str(n)) for n in range(5)]
    for where in wheres:
        spoken(where, "Long ago.", days_ago=31)
    gone = [erasing.forget_old(NOW, keep_days=30, most=2).conversations for _ in range(4)]
    assert gone == [2, 2, 1, 0]


def test_zero_days_keep_everything(quay):
    spoken(quay, "Long ago.", days_ago=900)

    assert erasing.forget_old(NOW, keep_days=0) == Erased()
    assert said(quay) == ["Long ago."]


def test_empty_conversation_is_not_erased(quay):
    assert erasing.forget_old(NOW, keep_days=30) == Erased()
