"""The registry of components: allowed changes, and the scope that wins."""

import pytest

from evennia_ai.engine.errors import (
    DuplicateComponentError,
    StaticComponentError,
    UnknownComponentError,
)
from evennia_ai.engine.prompt.components import PLACES, STATIC_COMPONENTS, Scope
from evennia_ai.engine.prompt.registry import with_statics
from tests.engine.prompt.builders import (
    a_component,
)

ROOM = Scope(kind="room", ref="7")
NPC = Scope(kind="npc", ref="3")


@pytest.mark.req("S3-21")
def test_created_component_is_found_by_key_and_by_id() -> None:
    mood = a_component(id=1205, key="mood", injection_depth=2, injection_order=50)
    registry = with_statics([]).created(mood)
    assert registry.get("mood") is mood
    assert registry.get(1205) is mood
    assert registry.get("1205") is mood


@pytest.mark.req("S3-21")
def test_updated_component_keeps_fields_that_were_not_named() -> None:
    registry = with_statics([]).created(a_component("Text.", key="mood"))
    deeper = registry.updated("mood", injection_depth=4).updated("mood", injection_order=10)
    found = deeper.get("mood")
    assert (found.injection_depth, found.injection_order, found.content) == (4, 10, "Text.")
    assert registry.get("mood").injection_depth == 0


@pytest.mark.req("S3-21")
def test_removing_a_component_makes_its_id_free_again() -> None:
    registry = with_statics([]).created(a_component(id=1201, key="mood"))
    without = registry.removed("mood")
    assert without.created(a_component(id=1201, key="other")).get(1201).key == "other"
    with pytest.raises(UnknownComponentError, match="there is no component 'mood'; known keys are"):
        without.get("mood")


@pytest.mark.req("S3-21")
@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"id": 1202, "key": "mood"}, "key 'mood' is already taken by component 'mood'"),
        ({"id": 1201, "key": "other"}, "id 1201 is already taken by component 'mood'"),
        ({"id": 1000, "key": "other"}, "id 1000 is already taken by component 'character_context'"),
    ],
)
def test_component_key_or_id_cannot_be_taken_twice(second: dict[str, object], message: str) -> None:
    registry = with_statics([]).created(a_component(id=1201, key="mood"))
    with pytest.raises(DuplicateComponentError, match=message):
        registry.created(a_component(**second))


@pytest.mark.req("S3-21")
@pytest.mark.parametrize(
    "change",
    [
        {"id": 1001},
        {"key": "who"},
        {"is_static": False},
        {"role": "user"},
    ],
)
def test_static_component_keeps_its_id_key_and_role(change: dict[str, object]) -> None:
    with pytest.raises(StaticComponentError, match="'character_context' is static and cannot be"):
        with_statics([]).updated("character_context", **change)


@pytest.mark.req("S3-21")
@pytest.mark.parametrize(
    "place", ["conversation_history", "dynamic_context", "pending_event", "tool_result"]
)
@pytest.mark.parametrize(
    "change", [{"injection_depth": 2}, {"placement": "history"}, {"injection_order": 5}]
)
def test_component_that_is_a_place_for_texts_cannot_be_moved(
    place: str, change: dict[str, object]
) -> None:
    with pytest.raises(StaticComponentError, match=f"'{place}' is static and cannot be"):
        with_statics([]).updated(place, **change)


@pytest.mark.req("S3-21")
@pytest.mark.parametrize("key", [c.key for c in STATIC_COMPONENTS if c.id not in PLACES])
def test_static_component_that_is_no_place_can_get_and_lose_a_depth(key: str) -> None:
    deep = with_statics([]).updated(key, injection_depth=2)
    assert (deep.get(key).placement, deep.get(key).injection_depth) == ("history", 2)
    back = deep.updated(key, injection_depth=0)
    assert back.get(key) == with_statics([]).get(key)


def test_free_component_id_follows_the_ids_of_builders_components() -> None:
    nothing = with_statics([])
    assert nothing.free_id() == 1200
    assert nothing.created(a_component("Text.", key="mood", id=1213)).free_id() == 1220
    last = nothing.created(a_component("Text.", key="mood", id=4990))
    assert last.free_id() == 1


def test_free_component_id_is_free_in_its_own_scope() -> None:
    registry = with_statics([]).created(a_component("Text.", key="mood", id=1490))
    assert registry.free_id() == 1510  # 1500 is an ID of the game's scope
    assert registry.free_id(NPC) == 1500


@pytest.mark.req("S3-21")
def test_static_component_can_be_disabled_and_filled_but_not_removed() -> None:
    registry = with_statics([]).updated("goals", enabled=False, content="Sell rope.")
    assert not registry.get("goals").enabled
    assert registry.get(4000).content == "Sell rope."
    with pytest.raises(StaticComponentError, match="'goals' is static and cannot be removed"):
        registry.removed("goals")


@pytest.mark.req("S3-21")
def test_component_of_the_narrowest_matching_scope_wins() -> None:
    registry = with_statics(
        [
            a_component("everywhere", id=1201, key="mood"),
            a_component("in the room", id=1301, key="mood", scope=ROOM),
            a_component("of the NPC", id=1201, key="mood", scope=NPC),
        ]
    )
    assert registry.resolved([ROOM, NPC]).get("mood", scope=NPC).content == "of the NPC"
    seen = [c for c in registry.resolved([ROOM]) if c.key == "mood"]
    assert [(c.content, c.id) for c in seen] == [("in the room", 1301)]
    assert [c.content for c in registry.resolved([]) if c.key == "mood"] == ["everywhere"]
    assert [c.id for c in registry.resolved([ROOM, NPC])] == sorted(
        c.id for c in registry.resolved([ROOM, NPC])
    )
