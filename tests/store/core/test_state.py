"""Writes of other processes: noticed by number, and only when asked."""

import pytest
from django.db import DatabaseError, connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from evennia_ai import models
from evennia_ai.errors import StoreError
from evennia_ai.prompt.components import GAME
from evennia_ai.store.authored import cards, components, lorebooks, notes
from evennia_ai.store.core import state


def another_process_writes(kind: str, sql: str) -> None:
    """What a process that shares nothing but the database with us does."""
    with connection.cursor() as cursor:
        cursor.execute(sql)
    models.StateRevision.objects.filter(name=kind).update(number=F("number") + 1)


@pytest.fixture
def refreshed():
    state.refresh_if_changed()


def goals() -> str:
    return components.registry().get("goals").content


@pytest.mark.usefixtures("refreshed")
def test_a_component_written_elsewhere_is_seen_after_a_refresh():
    goals()
    another_process_writes(
        "components", "UPDATE evennia_ai_component SET content = 'New.' WHERE key = 'goals'"
    )

    assert goals() == ""
    assert state.refresh_if_changed() == {"components"}
    assert goals() == "New."


@pytest.mark.usefixtures("refreshed")
def test_cards_books_and_notes_written_elsewhere_are_seen_after_a_refresh():
    cards.save_card("oren", '{"a": 1}', by="builder")
    cards.assign("12", "oren", by="builder")
    lorebooks.save_book("harbour", '{"a": 1}', by="builder")
    lorebooks.attach("harbour", GAME, by="builder")
    notes.set_note("12", by="builder", content="Be brief.")
    another_process_writes("cards", "UPDATE evennia_ai_card SET grants = ''")
    another_process_writes("lorebooks", "UPDATE evennia_ai_lorebook SET source = '{}'")
    another_process_writes("notes", "UPDATE evennia_ai_note SET content = 'Be long.'")

    assert state.refresh_if_changed() == {"cards", "lorebooks", "notes"}
    assert cards.card_of("12").grants == frozenset()
    assert [book.source for book in lorebooks.books_for([GAME])] == ["{}"]
    assert [note.content for note in notes.notes_for("12")] == ["Be long."]


@pytest.mark.usefixtures("refreshed")
def test_nothing_is_dropped_when_nothing_changed():
    before = components.registry()

    assert state.refresh_if_changed() == frozenset()
    assert components.registry() is before


@pytest.mark.usefixtures("refreshed")
def test_a_refresh_is_one_query():
    with CaptureQueriesContext(connection) as queries:
        state.refresh_if_changed()

    assert len(queries) == 1


@pytest.mark.parametrize(
    ("kind", "write"),
    [
        ("components", lambda: components.update("goals", by="b", content="x")),
        ("cards", lambda: cards.save_card("oren", "{}", by="b")),
        ("lorebooks", lambda: lorebooks.save_book("harbour", "{}", by="b")),
        ("notes", lambda: notes.set_note("12", by="b", content="x")),
    ],
)
def test_every_write_raises_the_number_of_its_kind(kind, write):
    before = models.StateRevision.objects.get(name=kind).number
    write()

    assert models.StateRevision.objects.get(name=kind).number > before


def test_a_refused_write_does_not_raise_the_number():
    before = models.StateRevision.objects.get(name="notes").number
    with pytest.raises(StoreError), state.changing("notes", "writing"):
        raise DatabaseError("disk full")

    assert models.StateRevision.objects.get(name="notes").number == before


def test_a_missing_number_is_made():
    models.StateRevision.objects.all().delete()
    components.update("goals", by="builder", content="x")

    assert models.StateRevision.objects.get(name="components").number == 1
