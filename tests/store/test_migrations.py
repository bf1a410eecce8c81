"""Migrations: they agree with the models, and do what only they can do."""

import json
import subprocess
import sys
from hashlib import sha256
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction

from evennia_ai import models
from evennia_ai.actors import trusted
from evennia_ai.history.records import NewRecord, RecordKind, canonical_json
from evennia_ai.migrations import _append_only
from evennia_ai.prompt.components import ALL_GRANTS, STATIC_COMPONENTS
from evennia_ai.store.authored import lorebooks
from evennia_ai.store.authored.book_texts import Difference
from evennia_ai.store.core.importing import grants_from
from evennia_ai.store.history.conversations import append, conversation
from evennia_ai.store.history.verifying import verify
from evennia_ai.store.history.windows import windows

book_revisions = import_module("evennia_ai.migrations.0004_lorebook_revisions")
book_texts_migration = import_module("evennia_ai.migrations.0030_book_texts")
static_components = import_module("evennia_ai.migrations.0003_static_components")
card_revisions = import_module("evennia_ai.migrations.0006_card_revisions")
record_contents = import_module("evennia_ai.migrations.0007_record_contents")
note_revisions = import_module("evennia_ai.migrations.0008_note_revisions")


def test_models_and_migrations_agree():
    call_command("makemigrations", "evennia_ai", check=True, dry_run=True, verbosity=0)


@pytest.mark.req("S3-21")
def test_the_static_components_are_made_once():
    static_components.create(apps, None)

    rows = models.Component.objects.filter(is_static=True).order_by("registry_id")
    assert [(row.registry_id, row.key) for row in rows] == [
        (component.id, component.key) for component in STATIC_COMPONENTS
    ]
    assert models.ComponentRevision.objects.count() == len(STATIC_COMPONENTS)


def test_the_triggers_can_be_taken_away_and_made_again():
    where = conversation("12", kind="room", place_ref="3")
    append(where, [NewRecord(kind=RecordKind.EVENT, role="user", body="said")])
    editor = connection.SchemaEditorClass(connection)

    _append_only.unprotect(apps, editor)
    change_all_records()
    _append_only.protect(apps, editor)
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        change_all_records()


def change_all_records() -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE evennia_ai_record SET name = 'Tam'")


def test_a_card_from_before_grants_keeps_its_file_and_all_it_could_do():
    text = '{"a": "é"}'
    card = SimpleNamespace(name="oren", source=text, revision=3, added_by="Mira", added_at=9.5)
    card.save = lambda: None

    card_revisions.keep_files(_OldApps(card), None)

    assert (bytes(card.file.content), card.file.source) == (text.encode(), text)
    row = models.CardRevision.objects.get()
    assert (row.name, row.number, row.action, row.changed_by) == ("oren", 3, "approved", "Mira")
    assert (row.file, grants_from(row.grants)) == (card.file, ALL_GRANTS)
    assert grants_from(card.grants) == ALL_GRANTS


def test_a_book_from_before_revisions_gets_its_first():
    book = SimpleNamespace(
        name="harbour", source='{"a": 1}', revision=5, added_by="Mira", added_at=1.0
    )

    books = SimpleNamespace(objects=SimpleNamespace(iterator=lambda: iter([book])))
    book_revisions.record_books(_Apps(books), None)

    first = lorebooks.book_revision("harbour", 5)
    assert (first.source, first.action, first.changed_by) == ('{"a": 1}', "created", "Mira")


def test_going_back_each_revision_of_a_book_is_a_whole_text_again():
    first = '{"a": {}}'
    lorebooks.save_book("harbour", first, by=trusted("Mira"))
    for number, (before, piece) in enumerate([("{}", '{"b": 1}'), ('{"b": 1}', '{"c": 2}')], 1):
        made = Difference(6, len(before), piece)
        text = made.made_in(first) if number == 1 else f'{{"a": {piece}}}'
        lorebooks.save_difference(
            "harbour", text, made, by=trusted("Tam"), expected_revision=number
        )
    told = SimpleNamespace(objects=_Told())

    book_texts_migration.make_whole(_Apps(told), None)

    rows = models.LorebookRevision.objects.order_by("number")
    assert [row.source for row in rows] == [first, '{"a": {"b": 1}}', '{"a": {"c": 2}}']
    assert told.objects.said[-1] == ("harbour", 3, '{"a": {"c": 2}}')


class _Apps:
    """Models of then: books that had a text, and revisions as they are."""

    def __init__(self, books: SimpleNamespace) -> None:
        self._books = books

    def get_model(self, app: str, name: str) -> Any:
        return self._books if name == "Lorebook" else apps.get_model(app, name)


class _Told:
    """Books that were told a text for a revision."""

    def __init__(self) -> None:
        self.said: list[tuple[str, int, str]] = []

    def filter(self, *, name: str, revision: int) -> Any:
        return SimpleNamespace(update=lambda source: self.said.append((name, revision, source)))


def test_a_note_from_before_revisions_is_its_first():
    note = SimpleNamespace(npc_ref="12", position=0, revision=4, changed_by="Mira")
    said = {"content": "Be brief.", "depth": 4, "role": "system", "every": 1}
    vars(note).update(said)
    made: list[dict[str, Any]] = []
    tables = {
        "Note": SimpleNamespace(objects=SimpleNamespace(iterator=lambda: iter([note]))),
        "NoteRevision": SimpleNamespace(
            objects=SimpleNamespace(create=lambda **row: made.append(row))
        ),
    }

    note_revisions.record_notes(SimpleNamespace(get_model=lambda _, name: tables[name]), None)

    [row] = made
    assert (row["number"], row["action"], row["changed_by"]) == (4, "created", "Mira")
    assert json.loads(row["value"]) == said


@pytest.mark.long
def test_notes_from_before_keys_go_on_under_one_and_back(tmp_path):
    command = [sys.executable, "-m", "tests.store.migrating_notes", str(tmp_path / "game.db3")]
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)

    assert json.loads(told.stdout) == {
        "now": [["note", "at 0", 1], ["note_02", "at 2", 1]],
        "then": "at 2",
        "back": [[0, "Mira"], [1, "Mira"]],
    }


class _OldApps:
    """The tables as the migration meets them: the cards still have their texts."""

    def __init__(self, *cards):
        rows = SimpleNamespace(objects=SimpleNamespace(iterator=lambda: iter(cards)))
        self._models = {"Card": rows}

    def get_model(self, app, name):
        return self._models.get(name) or apps.get_model(app, name)


class TestRecordContents:
    """Rows of before get hashes of what they say, a chain over these, and counts."""

    SAID = [
        ("event", "user", "Anna", "Good evening.", {"hops": 1}),
        ("context_block", "user", "", "Dusk.", {}),
        ("assistant", "assistant", "Oren", "Evening.", {}),
        ("run_end", "system", "", "answered", {"turn": 1}),
    ]

    @pytest.fixture
    def quay(self):
        """A conversation whose rows are as they were before, each twice: in two segments."""
        quay = conversation("12", kind="room", place_ref="3")
        rows = []
        for segment in (1, 2):
            before = ""
            for seq, (kind, role, name, body, meta) in enumerate(self.SAID, start=1):
                said = canonical_json([kind, role, name, body, meta])
                before = sha256(f"{before}\n{said}".encode()).hexdigest()
                rows.append(
                    models.Record(
                        conversation_id=quay.id,
                        segment=segment,
                        seq=seq,
                        kind=kind,
                        role=role,
                        name=name,
                        body=body,
                        meta=canonical_json(meta),
                        sha256=before,
                        created_at=1.0,
                    )
                )
        models.Record.objects.bulk_create(rows)
        return quay

    def migrate(self) -> None:
        editor = connection.SchemaEditorClass(connection)
        _append_only.unprotect(apps, editor)
        record_contents.count_and_chain_again(apps, editor)
        _append_only.protect_but_erasing(apps, editor)
        windows.drop_all()

    @pytest.mark.req("S2-08")
    def test_the_chain_holds_from_end_to_end(self, quay):
        self.migrate()

        assert verify(quay) is None

    def test_a_window_is_opened_with_the_right_counts(self, quay):
        self.migrate()

        assert (
            windows(quay.id).history.stop,
            windows(quay.id).history.user_messages,
            windows(quay.id).history.replies,
        ) == (4, 2, 2)

    def test_what_is_appended_follows(self, quay):
        self.migrate()
        append(quay, [NewRecord(kind=RecordKind.EVENT, role="user", body="said")])

        assert verify(quay) is None

    def test_what_was_tampered_with_still_shows(self, quay):
        editor = connection.SchemaEditorClass(connection)
        _append_only.unprotect(apps, editor)
        with connection.cursor() as cursor:
            cursor.execute("UPDATE evennia_ai_record SET body = 'x' WHERE segment = 1 AND seq = 3")
        self.migrate()

        assert verify(quay).place == "1.3"

    def test_more_rows_than_one_batch_holds(self, quay, monkeypatch):
        monkeypatch.setattr(record_contents, "BATCH", 3)
        self.migrate()

        assert verify(quay) is None
