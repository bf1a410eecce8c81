"""Test the names by which NPCs know people, numbered in the order of meeting."""

import pytest

from evennia_ai.store import memories

pytestmark = pytest.mark.req("S3-08")


def settle(npc_ref: str, *people: str) -> None:
    memories.settle_names([memories.NewlyNamed(npc_ref=npc_ref, folded="anna", people=people)])


def test_first_person_with_a_name_keeps_number_one():
    settle("12", "5")
    settle("12", "3", "5", "7")
    assert memories.names_known_by("12").get("anna", {}) == {"5": 1, "3": 2, "7": 3}
    assert memories.names_known_by("13").get("anna", {}) == {}


def test_cached_names_are_read_without_a_query(no_queries):
    settle("12", "5")
    memories.names_known_by("12")
    with no_queries():
        assert memories.names_known_by("12").get("anna", {}) == {"5": 1}


def test_names_for_several_npcs_are_stored_with_the_same_number_of_queries(query_count):
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


def test_names_of_several_npcs_are_read_at_once(no_queries, query_count):
    settle("12", "5")
    memories.names_known_by.drop_all()
    assert query_count(lambda: memories.names_known_by.load_missing(["12", "13", "14"])) == 1
    with no_queries():
        memories.names_known_by.load_missing(["12", "13", "14"])
        assert memories.names_known_by("12") == {"anna": {"5": 1}}
        assert memories.names_known_by("13") == {}
