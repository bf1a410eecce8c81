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


def settle(npc_ref: str, *people: str) -> None:
    memories.settle_names([memories.NewlyNamed(npc_ref=npc_ref, folded="anna", people=people)])


def test_who_bore_a_name_first_is_the_first_for_good():
    settle("12", "5")
    settle("12", "3", "5", "7")
    assert memories.names_known_by("12").get("anna", {}) == {"5": 1, "3": 2, "7": 3}
    assert memories.names_known_by("13").get("anna", {}) == {}


def test_a_warm_read_asks_nothing(no_queries):
    settle("12", "5")
    memories.names_known_by("12")
    with no_queries():
        assert memories.names_known_by("12").get("anna", {}) == {"5": 1}


def test_names_that_several_settle_are_settled_for_each_and_cost_no_more(query_count):
    settle("12", "5")
    one = [memories.NewlyNamed(npc_ref="11", folded="anna", people=["7"])]
    more = [
        memories.NewlyNamed(npc_ref=ref, folded="anna", people=["7", "5"])
        for ref in ("12", "13", "14", "15")
    ]
    cost = query_count(lambda: memories.settle_names(one))
    assert query_count(lambda: memories.settle_names(more)) == cost
    assert memories.names_known_by("12")["anna"] == {"5": 1, "7": 2}
    assert memories.names_known_by("15")["anna"] == {"7": 1, "5": 2}


def test_names_of_several_are_read_at_once(no_queries, query_count):
    settle("12", "5")
    memories.names_known_by.drop_all()
    assert query_count(lambda: memories.names_known_by.take_in(["12", "13", "14"])) == 1
    with no_queries():
        memories.names_known_by.take_in(["12", "13", "14"])
        assert memories.names_known_by("12") == {"anna": {"5": 1}}
        assert memories.names_known_by("13") == {}


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
