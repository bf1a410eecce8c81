"""The registry: what may be changed, which scope wins, and contexts that only take away."""

from dataclasses import replace

import pytest

from evennia_ai.compose import compose
from evennia_ai.errors import (
    ContextError,
    DuplicateComponentError,
    StaticComponentError,
    UnknownComponentError,
)
from evennia_ai.prompt.budget import BudgetRules, Reserve
from evennia_ai.prompt.components import PLACES, STATIC_COMPONENTS, Scope
from evennia_ai.prompt.expansion import ComponentSet
from evennia_ai.prompt.registry import (
    AUTONOMOUS,
    BUILT_IN,
    CONVERSATION,
    WHISPER,
    PromptContext,
    context_for,
    with_statics,
)
from tests.prompt.builders import (
    a_component,
    a_history,
    first_words,
    injected,
    the_inputs,
    the_prompt,
    verdicts_of,
)

ROOM = Scope(kind="room", ref="7")
NPC = Scope(kind="npc", ref="3")


def test_a_created_component_is_found_by_key_and_by_id() -> None:
    mood = a_component(id=1205, key="mood", injection_depth=2, injection_order=50)
    registry = with_statics([]).created(mood)
    assert registry.get("mood") is mood
    assert registry.get(1205) is mood
    assert registry.get("1205") is mood


def test_an_updated_component_keeps_what_was_not_named() -> None:
    registry = with_statics([]).created(a_component("Text.", key="mood"))
    deeper = registry.updated("mood", injection_depth=4).updated("mood", injection_order=10)
    found = deeper.get("mood")
    assert (found.injection_depth, found.injection_order, found.content) == (4, 10, "Text.")
    assert registry.get("mood").injection_depth == 0


def test_a_removed_component_is_gone_and_its_id_is_free_again() -> None:
    registry = with_statics([]).created(a_component(id=1201, key="mood"))
    without = registry.removed("mood")
    assert without.created(a_component(id=1201, key="other")).get(1201).key == "other"
    with pytest.raises(UnknownComponentError, match="there is no component 'mood'; known keys are"):
        without.get("mood")


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"id": 1202, "key": "mood"}, "key 'mood' is already taken by component 'mood'"),
        ({"id": 1201, "key": "other"}, "id 1201 is already taken by component 'mood'"),
        ({"id": 1000, "key": "other"}, "id 1000 is already taken by component 'character_context'"),
    ],
)
def test_a_key_or_an_id_cannot_be_taken_twice(second: dict[str, object], message: str) -> None:
    registry = with_statics([]).created(a_component(id=1201, key="mood"))
    with pytest.raises(DuplicateComponentError, match=message):
        registry.created(a_component(**second))


@pytest.mark.parametrize(
    "change",
    [
        {"id": 1001},
        {"key": "who"},
        {"is_static": False},
        {"role": "user"},
    ],
)
def test_a_static_component_keeps_its_identity(change: dict[str, object]) -> None:
    with pytest.raises(StaticComponentError, match="'character_context' is static and cannot be"):
        with_statics([]).updated("character_context", **change)


@pytest.mark.parametrize(
    "place", ["conversation_history", "dynamic_context", "pending_event", "tool_result"]
)
@pytest.mark.parametrize(
    "change", [{"injection_depth": 2}, {"placement": "history"}, {"injection_order": 5}]
)
def test_a_place_for_others_stays_where_it_is(place: str, change: dict[str, object]) -> None:
    with pytest.raises(StaticComponentError, match=f"'{place}' is static and cannot be"):
        with_statics([]).updated(place, **change)


@pytest.mark.parametrize("key", [c.key for c in STATIC_COMPONENTS if c.id not in PLACES])
def test_every_other_static_component_takes_a_depth_and_gives_it_back(key: str) -> None:
    deep = with_statics([]).updated(key, injection_depth=2)
    assert (deep.get(key).placement, deep.get(key).injection_depth) == ("history", 2)
    back = deep.updated(key, injection_depth=0)
    assert back.get(key) == with_statics([]).get(key)


def test_a_free_id_stands_behind_those_of_its_kind() -> None:
    nothing = with_statics([])
    assert nothing.free_id() == 1200
    assert nothing.created(a_component("Text.", key="mood", id=1213)).free_id() == 1220
    last = nothing.created(a_component("Text.", key="mood", id=4990))
    assert last.free_id() == 1


def test_a_free_id_is_free_in_its_own_scope() -> None:
    registry = with_statics([]).created(a_component("Text.", key="mood", id=1490))
    assert registry.free_id() == 1510  # 1500 is the game's own
    assert registry.free_id(NPC) == 1500


def test_a_static_component_can_be_disabled_and_filled_but_not_removed() -> None:
    registry = with_statics([]).updated("goals", enabled=False, content="Sell rope.")
    assert not registry.get("goals").enabled
    assert registry.get(4000).content == "Sell rope."
    with pytest.raises(StaticComponentError, match="'goals' is static and cannot be removed"):
        registry.removed("goals")


def test_the_narrowest_scope_that_applies_wins() -> None:
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


def test_an_event_finds_its_context() -> None:
    assert context_for("say") is CONVERSATION
    assert context_for("say", private=True) is WHISPER
    assert context_for("tick") is AUTONOMOUS
    assert context_for("earthquake") is CONVERSATION
    with pytest.raises(ContextError, match="no context serves events of kind 'earthquake'"):
        context_for("earthquake", [AUTONOMOUS])


def test_a_context_without_events_serves_all_that_none_before_it_serves() -> None:
    rest = PromptContext(name="rest")
    assert context_for("earthquake", [AUTONOMOUS, rest]) is rest
    assert context_for("tick", [AUTONOMOUS, rest]) is AUTONOMOUS


def test_a_context_disables_what_it_does_not_list() -> None:
    context = PromptContext(name="brief", enabled_ids=frozenset({0, 5000}))
    on = [component.key for component in context.applied(with_statics([])) if component.enabled]
    assert on == ["system_prompt", "conversation_history"]


def test_a_context_disables_the_components_of_its_keys() -> None:
    registry = with_statics([a_component("mood", key="mood")])
    context = PromptContext(name="brief", off=frozenset({"mood", "goals"}))
    off = [component.key for component in context.applied(registry) if not component.enabled]
    assert off == ["mood", "goals"]


def test_a_component_that_is_off_in_a_context_says_so() -> None:
    context = PromptContext(name="brief", off=frozenset({"mood", "runtime_guidance"}))
    components = [a_component("mood", key="mood"), a_component("no", id=1202, enabled=False)]
    registry = with_statics(components)
    made = ComponentSet(context.applied(registry), context=context.name, off=context.off)
    inputs = replace(the_inputs(history=a_history(1)), components=made, guidance="A page.")
    prompt = compose(inputs)
    assert first_words(prompt) == ["m1"]
    reason = [("expand", False, "off in the context brief")]
    assert verdicts_of(prompt, "component:mood") == reason
    assert verdicts_of(prompt, "component:runtime_guidance") == reason
    assert verdicts_of(prompt, "component:component_1202") == [("expand", False, "disabled")]


@pytest.mark.req("S3-20")
def test_depth_is_injected_alike_in_every_context() -> None:
    registry = with_statics([injected("note", 2, key="note")])
    for context in BUILT_IN:
        prompt = the_prompt(context.applied(registry), history=a_history(4))
        assert first_words(prompt) == ["m1", "m2", "note", "m3", "m4"]


@pytest.mark.req("S3-20")
def test_a_context_may_inject_a_component_elsewhere() -> None:
    context = PromptContext(name="urgent", overrides={"note": {"injection_depth": 1}})
    registry = with_statics([injected("note", 3, key="note")])
    prompt = the_prompt(context.applied(registry), history=a_history(3))
    assert first_words(prompt) == ["m1", "m2", "note", "m3"]


def test_a_context_cannot_override_the_trust_of_a_component() -> None:
    with pytest.raises(ContextError, match=r"overrides note\.trust, which is not possible"):
        PromptContext(name="sly", overrides={"note": {"trust": "author"}})


def test_a_layer_takes_away_and_never_adds() -> None:
    base = PromptContext(
        name="base",
        off=frozenset({"mood"}),
        enabled_ids=frozenset({0, 1000, 5000}),
        limit_tokens=1000,
        tools=frozenset({"look", "give"}),
    )
    layer = PromptContext(
        name="layer",
        off=frozenset({"goals"}),
        enabled_ids=frozenset({0, 4000, 5000}),
        limit_tokens=9000,
        tools=frozenset({"give", "shutdown"}),
    )
    both = base.restricted(layer)
    assert both.enabled_ids == {0, 5000}
    assert both.off == {"mood", "goals"}
    assert both.limit_tokens == 1000
    assert both.tools == {"give"}


@pytest.mark.parametrize("field", ["role", "injection_depth", "injection_order", "required"])
def test_a_layer_cannot_give_a_text_more_weight(field: str) -> None:
    layer = PromptContext(name="layer", overrides={"mood": {field: 1}})
    with pytest.raises(ContextError, match="a layer may only restrict"):
        CONVERSATION.restricted(layer)


def test_a_layer_reserves_no_room() -> None:
    layer = PromptContext(name="layer", reserves={"mood": Reserve(min_tokens=50)})
    with pytest.raises(ContextError, match="reserves room for mood; a layer may only restrict"):
        CONVERSATION.restricted(layer)


def test_a_context_budgets_no_more_than_the_model_has() -> None:
    reserves = {"mood": Reserve(min_tokens=50)}
    context = PromptContext(name="brief", limit_tokens=1000, reserves=reserves)
    assert context.budget(4000) == BudgetRules(limit_tokens=1000, reserves=reserves)
    assert context.budget(600).limit_tokens == 600
    assert CONVERSATION.budget(600) == BudgetRules(limit_tokens=600)


def test_a_layer_changes_no_priority() -> None:
    base = PromptContext(name="base", overrides={"mood": {"priority": 50}})
    with pytest.raises(ContextError, match=r"overrides mood\.priority; a layer may only restrict"):
        base.restricted(PromptContext(name="up", overrides={"mood": {"priority": 90}}))


def test_a_component_outside_the_context_gives_no_message() -> None:
    registry = with_statics([a_component("mood", key="mood")])
    context = PromptContext(name="brief", enabled_ids=frozenset({5000}))
    prompt = the_prompt(context.applied(registry), history=a_history(1))
    assert first_words(prompt) == ["m1"]
