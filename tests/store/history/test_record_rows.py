"""Test that a record changed without the store is found."""

import pytest
from django.db import connection

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.history.records import NewRecord, RecordKind
from evennia_ai.migrations import _append_only
from evennia_ai.models import ERASED_META
from evennia_ai.store.erasing import erase_conversation
from evennia_ai.store.history.conversations import append_records, get_or_open_conversation
from evennia_ai.store.history.record_rows import records_at
from evennia_ai.store.history.verifying import verify
from tests.store.builders import a_turn, talked


@pytest.fixture
def quay():
    return get_or_open_conversation("12", kind="room", place_ref="3")


def tamper(sql: str) -> None:
    """Change the database like somebody who removes the triggers."""
    editor = connection.SchemaEditorClass(connection)
    _append_only.unprotect(None, editor)
    with connection.cursor() as cursor:
        cursor.execute(sql)
    _append_only.protect(None, editor)


def test_untouched_conversation_verifies(quay):
    talked(quay, 3)
    a_turn(quay)

    assert verify(quay) is None


def test_empty_conversation_verifies(quay):
    assert verify(quay) is None


@pytest.mark.req("S2-08")
@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("UPDATE evennia_ai_record SET body = 'x' WHERE seq = 3", "does not match its content"),
        ("UPDATE evennia_ai_record SET kind = 'user' WHERE seq = 3", "does not match its content"),
        ("UPDATE evennia_ai_record SET meta = 'x' WHERE seq = 3", "cannot be read"),
        ("UPDATE evennia_ai_record SET sha256 = 'x' WHERE seq = 3", "does not match its content"),
        ("UPDATE evennia_ai_record SET seq = 13 WHERE seq = 3", "missing"),
        ("DELETE FROM evennia_ai_record WHERE seq = 3", "missing"),
        ("DELETE FROM evennia_ai_record WHERE seq = 1", "missing"),
    ],
)
def test_change_behind_the_store_is_found(quay, change, problem):
    talked(quay, 3)
    tamper(change)

    assert problem in str(verify(quay))


def test_verification_names_the_broken_record(quay):
    talked(quay, 3)
    tamper("UPDATE evennia_ai_record SET body = 'x' WHERE seq = 3")

    assert verify(quay).place == "1.3"


def test_words_removed_without_an_erasure_are_found(quay):
    talked(quay, 3)
    erase_conversation(quay, by=trusted("Mira"))
    talked(quay, 3)
    with connection.cursor() as cursor:  # The triggers allow words to be erased.
        cursor.execute(
            "UPDATE evennia_ai_record SET name = '', body = '', meta = %s"
            " WHERE seq = 3 AND segment = 2",
            [ERASED_META],
        )
    broken = verify(quay)

    assert broken.place == "2.3"
    assert "no record of an erasure follows" in broken.problem


def test_conversation_erased_twice_verifies(quay):
    for _ in range(2):
        talked(quay, 3)
        erase_conversation(quay, by=trusted("Mira"))
    talked(quay, 3)

    assert verify(quay) is None


def test_line_heard_by_several_npcs_is_in_memory_once(quay):
    said = NewRecord(
        kind=RecordKind.USER, role="user", name="Anna", body="A ship!", meta={"speaker": "7"}
    )
    here = append_records(quay, [said])[0]
    there = append_records(get_or_open_conversation("13", kind="room", place_ref="3"), [said])[0]
    read = records_at(quay.id, [here.place])[here.place]

    for one in (there, read):
        assert one.body is here.body
        assert one.meta is here.meta
        assert one.content_sha256 is here.content_sha256
    with pytest.raises(TypeError):
        here.meta["speaker"] = "8"
