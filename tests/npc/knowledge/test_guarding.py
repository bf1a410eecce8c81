"""Which bases an NPC may search, and which it must guard."""

from dataclasses import replace

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.knowledge.pages.page import BaseInfo
from evennia_ai.engine.prompt.components import Scope
from evennia_ai.npc.knowledge.guarding import (
    bases_as_told,
    held_keys,
    is_held,
    may_search,
    searchable_bases,
)
from evennia_ai.store.knowledge import knowledge_bases

VAULT = BaseInfo(key="vault", name="The vault", hint="The 47 keys of it.", restricted=True)


def locked(locks: str) -> BaseInfo:
    return replace(VAULT, locks=locks)


@pytest.mark.parametrize(
    ("locks", "may"),
    [
        ("", True),
        ("view:perm(Admin)", True),
        ("search:all()", True),
        ("search:false()", False),
        ("search:tag(keeper)", True),
        ("search:tag(stranger)", False),
        ("search:no_such_lock()", False),
        ("gibberish", False),
    ],
)
def test_a_lock_is_asked_as_the_npc_and_lets_nobody_in_where_it_cannot_be_asked(stage, locks, may):
    stage.npc.tags.add("keeper")
    assert may_search(stage.npc, locks) is may


@pytest.mark.parametrize(
    ("locks", "held"),
    [
        ("", True),
        ("restricted:all()", True),
        ("restricted:false()", False),
        ("restricted:no_such_lock()", True),
    ],
)
def test_every_npc_guards_a_restricted_base_unless_its_lock_says_else(stage, locks, held):
    assert is_held(stage.npc, locked(locks)) is held


def test_a_superuser_guards_it_as_well(stage, monkeypatch):
    monkeypatch.setattr(type(stage.npc), "is_superuser", True)
    stage.npc.locks.cache_lock_bypass(stage.npc)
    assert is_held(stage.npc, locked("restricted:all()"))
    assert not may_search(stage.npc, "search:false()")


def test_nobody_guards_an_open_base(stage):
    assert held_keys(stage.npc, [VAULT, replace(VAULT, key="open", restricted=False)]) == {"vault"}


@pytest.fixture
def bound(stage):
    knowledge_bases.save_base(VAULT, by=trusted("builder"))
    scope = Scope(kind="room", ref=str(stage.room.id))
    knowledge_bases.bind_base("vault", scope, by=trusted("builder"))
    return stage


def test_a_base_counts_where_the_npc_is(bound):
    assert [info.key for info in searchable_bases(bound.npc, None)] == ["vault"]
    bound.npc.location = None
    assert searchable_bases(bound.npc, None) == ()


def test_which_bases_there_are_is_read_without_a_query(bound, no_queries):
    bases_as_told(bound.npc, searchable_bases(bound.npc, None))
    with no_queries():
        assert bases_as_told(bound.npc, searchable_bases(bound.npc, None))


def test_the_hint_of_what_is_guarded_is_scrubbed_and_that_of_the_rest_is_not(bound):
    (told,) = bases_as_told(bound.npc, searchable_bases(bound.npc, None))
    assert told.hint == "The keys of it."
    free = replace(VAULT, restricted=False)
    assert bases_as_told(bound.npc, [free]) == (free,)
