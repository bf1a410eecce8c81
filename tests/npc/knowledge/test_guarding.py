"""Which knowledge bases an NPC may search, and which it must guard."""

from dataclasses import replace

import pytest

from evennia_ai.engine.actors import trusted
from evennia_ai.engine.knowledge.pages.page import BaseInfo
from evennia_ai.engine.prompt.components import Scope
from evennia_ai.npc.knowledge.guarding import (
    bases_for_npc,
    guarded_keys,
    may_search,
    must_guard,
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
def test_search_lock_is_checked_for_the_npc_and_forbids_when_it_fails(stage, locks, may):
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
def test_npc_guards_a_restricted_knowledge_base_unless_its_lock_excludes_the_npc(
    stage, locks, held
):
    assert must_guard(stage.npc, locked(locks)) is held


def test_superuser_npc_also_guards_a_restricted_knowledge_base(stage, monkeypatch):
    monkeypatch.setattr(type(stage.npc), "is_superuser", True)
    stage.npc.locks.cache_lock_bypass(stage.npc)
    assert must_guard(stage.npc, locked("restricted:all()"))
    assert not may_search(stage.npc, "search:false()")


def test_npc_does_not_guard_an_open_knowledge_base(stage):
    assert guarded_keys(stage.npc, [VAULT, replace(VAULT, key="open", restricted=False)]) == {
        "vault"
    }


@pytest.fixture
def bound(stage):
    knowledge_bases.save_base(VAULT, by=trusted("builder"))
    scope = Scope(kind="room", ref=str(stage.room.id))
    knowledge_bases.assign_base("vault", scope, by=trusted("builder"))
    return stage


def test_knowledge_base_of_a_room_is_searchable_only_for_npcs_there(bound):
    assert [info.key for info in searchable_bases(bound.npc, None)] == ["vault"]
    bound.npc.location = None
    assert searchable_bases(bound.npc, None) == ()


def test_cached_knowledge_bases_make_no_query(bound, no_queries):
    bases_for_npc(bound.npc, searchable_bases(bound.npc, None))
    with no_queries():
        assert bases_for_npc(bound.npc, searchable_bases(bound.npc, None))


def test_hint_is_scrubbed_only_for_a_guarded_knowledge_base(bound):
    (told,) = bases_for_npc(bound.npc, searchable_bases(bound.npc, None))
    assert told.hint == "The keys of it."
    free = replace(VAULT, restricted=False)
    assert bases_for_npc(bound.npc, [free]) == (free,)
