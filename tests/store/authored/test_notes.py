"""Test stored author's notes."""

from dataclasses import replace

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.errors import (
    ComponentValueError,
    EditConflictError,
    StoreError,
    TemplateError,
)
from evennia_ai.engine.prompt.components import of_npc
from evennia_ai.store.authored import notes
from evennia_ai.store.authored.notes import StoredNote
from evennia_ai.store.core.snapshots import forget_everything


def test_note_is_read_back():
    fields = {"content": "Be brief.", "depth": 2, "role": "user", "every": 3, "mode": "tail"}
    made = notes.set_note("12", by=trusted("b"), **fields)
    forget_everything()

    assert notes.notes_for("12") == (made,)
    assert made == StoredNote(**fields, revision=1)


def test_note_has_defaults():
    note = notes.set_note("12", by=trusted("builder"), content="Be brief.")

    assert (note.depth, note.role, note.every, note.mode) == (4, "system", 1, "floating")


def test_missing_note_fields_keep_their_values():
    notes.set_note("12", by=trusted("builder"), content="Be brief.", depth=2)
    note = notes.set_note("12", by=trusted("builder"), every=5)

    assert (note.content, note.depth, note.every, note.revision) == ("Be brief.", 2, 5, 2)


def test_unchanged_note_gets_no_revision():
    notes.set_note("12", by=trusted("builder"), content="Be brief.")

    assert notes.set_note("12", by=trusted("builder"), content="Be brief.").revision == 1


@pytest.mark.req("S3-09")
def test_notes_are_listed_in_their_order():
    notes.set_note("12", "scene", by=trusted("builder"), content="second")
    notes.set_note("12", by=trusted("builder"), content="first")

    assert [note.content for note in notes.notes_for("12")] == ["first", "second"]


def test_notes_of_another_npc_are_separate():
    notes.set_note("12", by=trusted("builder"), content="Be brief.")

    assert notes.notes_for("13") == ()


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"depth": -1}, "depth -1"),
        ({"depth": 2.5}, "depth 2.5"),
        ({"depth": True}, "depth True"),
        ({"every": -1}, "every -1"),
        ({"role": "wizard"}, "role 'wizard'"),
        ({"mode": "stuck"}, "mode 'stuck'"),
        ({"content": "a\x00"}, "content"),
        ({"key": "The Scene"}, "key 'The Scene'"),
        ({"order": "first"}, "order 'first'"),
        ({"enabled": "no"}, "enabled 'no'"),
    ],
)
def test_invalid_note_value_changes_nothing(fields, told):
    notes.set_note("12", by=trusted("builder"), content="Be brief.")

    with pytest.raises(ComponentValueError, match=f"the note's {told}"):
        notes.set_note("12", **{"by": trusted("builder"), "key": "note", **fields})
    assert [note.content for note in notes.notes_for("12")] == ["Be brief."]


def test_invalid_note_template_changes_nothing():
    with pytest.raises(TemplateError):
        notes.set_note("12", by=trusted("builder"), content="{% if %}")
    assert notes.notes_for("12") == ()


def test_clearing_removes_all_notes():
    notes.set_note("12", by=trusted("builder"), content="a")
    notes.set_note("12", "b", by=trusted("builder"), content="b")

    assert notes.clear_notes("12", by=trusted("builder")) == 2
    assert notes.notes_for("12") == ()


def test_cached_notes_are_read_without_a_query(no_queries):
    notes.set_note("12", by=trusted("builder"), content="Be brief.")
    warm = notes.notes_for("12"), notes.notes_for("13")

    with no_queries():
        assert (notes.notes_for("12"), notes.notes_for("13")) == warm


def test_every_change_of_a_note_can_be_read():
    notes.set_note("12", by=trusted("Mara"), content="Be brief.")
    notes.set_note("12", by=trusted("Tam"), content="Be kind.", depth=2)
    notes.set_note("12", by=trusted("Tam"), mode="anchored")

    kind = StoredNote(content="Be kind.", depth=2, revision=2)
    assert notes.NOTES.then("note", 1, scope=of_npc("12")) == StoredNote(
        content="Be brief.", revision=1
    )
    assert notes.NOTES.then("note", 2, scope=of_npc("12")) == kind
    assert notes.NOTES.then("note", 3, scope=of_npc("12")) == replace(
        kind, mode="anchored", revision=3
    )
    assert notes.NOTES.revision("note", 2, scope=of_npc("12")).changed_by == "Tam"


@pytest.mark.req("S3-09")
def test_clearing_with_a_key_removes_only_that_note():
    notes.set_note("12", by=trusted("b"), content="first")
    notes.set_note("12", "scene", by=trusted("b"), content="second")

    assert notes.clear_notes("12", "scene", by=trusted("b")) == 1
    assert [note.key for note in notes.notes_for("12")] == ["note"]


@pytest.mark.req("S3-09")
def test_second_editor_of_a_note_is_told():
    notes.set_note("12", by=trusted("Mara"), content="Be brief.")
    notes.set_note("12", by=trusted("Tam"), content="Be kind.")

    with pytest.raises(EditConflictError, match="changed by Tam"):
        notes.set_note("12", by=trusted("Mara"), seen_revision=1, content="Be long.")


def test_notes_of_an_npc_are_limited():
    for at in range(notes.MOST_NOTES):
        notes.set_note("12", f"n{at}", by=trusted("b"), content="x")

    with pytest.raises(StoreError, match="at most 100 notes"):
        notes.set_note("12", "one_more", by=trusted("b"), content="x")
    assert notes.set_note("12", "n7", by=trusted("b"), content="y").content == "y"
