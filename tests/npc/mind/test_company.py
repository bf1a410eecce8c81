"""The data of all NPCs in a room are loaded together, in the form in which Evennia loads them."""

from typing import Any

import pytest
from evennia.objects.models import ObjectDB
from evennia.utils.idmapper.models import flush_cache

from evennia_ai.npc.inputs.facts import standing_facts
from evennia_ai.npc.inputs.shipped_providers import GOALS, RELATIONS
from evennia_ai.npc.senses.presence import FACTION, scopes_of
from evennia_ai.store.core.snapshots import forget_everything


@pytest.fixture
def company(stage: Any) -> list[Any]:
    """Return three NPCs of a room, of which nothing is cached yet."""
    ids = [stage.npc.id]
    for name in ("Ada", "Bo"):
        ids.append(stage.make(name, "evennia_ai.typeclasses.AINPC").id)
        npc = ObjectDB.objects.get(id=ids[-1])
        npc.tags.add("Guild", category=FACTION)
        npc.tags.add("Tall")
        npc.aliases.add(f"the {name}")
        npc.permissions.add("Builder")
    flush_cache()
    forget_everything()
    return [ObjectDB.objects.get(id=one) for one in ids]


def test_attributes_and_tags_of_all_npcs_are_loaded_with_the_first_mind(company, no_queries):
    oren, ada, bo = company
    assert oren.ai.ref
    scopes_of(oren), standing_facts(oren)  # the tags of the room
    with no_queries():
        for npc in (ada, bo):
            assert [scope.ref for scope in scopes_of(npc) if scope.kind == "faction"] == ["guild"]
            assert set(standing_facts(npc)["npc.tags"]) == {"guild", "tall"}
            assert npc.aliases.all() == [f"the {npc.key.lower()}"]
            assert npc.permissions.all() == ["builder"]
            assert npc.attributes.get(RELATIONS) is npc.attributes.get(GOALS) is None
        assert oren.aliases.all() == ["ferryman"]


def test_tags_changed_after_loading_are_seen(company):
    oren, ada, _ = company
    assert oren.ai.ref
    oren.tags.add("watch", category=FACTION)
    ada.tags.remove("guild", category=FACTION)
    ada.aliases.add("lady")
    assert [scope.ref for scope in scopes_of(oren) if scope.kind == "faction"] == ["watch"]
    assert [scope.ref for scope in scopes_of(ada) if scope.kind == "faction"] == []
    assert set(ada.aliases.all()) == {"the ada", "lady"}
