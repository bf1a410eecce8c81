"""Test that migrations agree with the models, and what only migrations do."""

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction

from evennia_ai import models
from evennia_ai.engine.history.records import NewRecord, RecordKind
from evennia_ai.engine.prompt.components import STATIC_COMPONENTS
from evennia_ai.migrations import _append_only, _first_rows
from evennia_ai.store.history.conversations import append_records, get_or_open_conversation


def test_models_and_migrations_agree():
    call_command("makemigrations", "evennia_ai", check=True, dry_run=True, verbosity=0)


@pytest.mark.req("S3-21")
def test_static_components_are_made_once():
    _first_rows.create(apps, None)

    rows = models.Component.objects.filter(is_static=True).order_by("registry_id")
    assert [(row.registry_id, row.key) for row in rows] == [
        (component.id, component.key) for component in STATIC_COMPONENTS
    ]
    assert models.Revision.objects.count() == len(STATIC_COMPONENTS)


def test_triggers_can_be_removed_and_made_again():
    where = get_or_open_conversation("12", kind="room", place_ref="3")
    append_records(where, [NewRecord(kind=RecordKind.EVENT, role="user", body="said")])
    editor = connection.SchemaEditorClass(connection)

    _append_only.unprotect(apps, editor)
    change_all_records()
    _append_only.protect(apps, editor)
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        change_all_records()


def change_all_records() -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE evennia_ai_record SET name = 'Tam'")
