"""Names that NPCs know: settled once, in the order of who bore them; and what the past had."""

from importlib import import_module

import pytest
from django.apps import apps

from evennia_ai import models
from evennia_ai.history.records import NewRecord, RecordKind
from evennia_ai.store import memories
from evennia_ai.store.authored import components
from evennia_ai.store.history.conversations import append, conversation

introducing = import_module("evennia_ai.migrations.0025_known_names")
roles = import_module("evennia_ai.migrations.0026_roles_of_what_players_said")

pytestmark = pytest.mark.req("S3-08")


def test_who_bore_a_name_first_is_the_first_for_good():
    memories.settle_name("12", "anna", ["5"])
    memories.settle_name("12", "anna", ["3", "5", "7"])
    assert memories.names_known_by("12").get("anna", {}) == {"5": 1, "3": 2, "7": 3}
    assert memories.names_known_by("13").get("anna", {}) == {}


def test_a_warm_read_asks_nothing(no_queries):
    memories.settle_name("12", "anna", ["5"])
    memories.names_known_by("12")
    with no_queries():
        assert memories.names_known_by("12").get("anna", {}) == {"5": 1}


def test_what_was_said_before_the_update_tells_who_bore_a_name_first():
    where = conversation("12", kind="room", place_ref="3")
    for name, speaker in (("Anna", "5"), ("Anna:", "9"), ("Anna", "5"), ("Ben", "6"), ("", "4")):
        said = NewRecord(
            kind=RecordKind.USER, role="user", name=name, body="Hm.", meta={"speaker": speaker}
        )
        append(where, [said])
    introducing.settle_the_past(apps, None)
    rows = models.KnownName.objects.order_by("folded", "number")
    assert list(rows.values_list("npc_ref", "folded", "person_ref", "number")) == [
        ("12", "anna", "5", 1),
        ("12", "anna", "9", 2),
        ("12", "ben", "6", 1),
    ]


def test_stored_places_of_what_players_said_become_a_users():
    models.Component.objects.filter(key="context_buffer").update(role="system")
    roles.tell_as_users(apps, None)
    roles.tell_as_users(apps, None)
    changed = components.registry().get("context_buffer")
    assert changed.role == "user"
    newest = components.revisions("context_buffer")[-1]
    assert (newest.number, newest.action, newest.new.role) == (changed.revision, "updated", "user")
    assert changed.revision == 2
