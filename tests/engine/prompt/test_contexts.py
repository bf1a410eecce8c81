"""Contexts: which one is used for an event, and layers that may only restrict it."""

from dataclasses import replace

import pytest

from evennia_ai.engine.compose import compose
from evennia_ai.engine.errors import (
    ContextError,
)
from evennia_ai.engine.prompt.budget import BudgetRules, Reserve
from evennia_ai.engine.prompt.contexts import (
    AUTONOMOUS,
    BUILT_IN,
    CONVERSATION,
    WHISPER,
    PromptContext,
    context_for,
)
from evennia_ai.engine.prompt.expansion import ComponentSet
from evennia_ai.engine.prompt.registry import with_statics
from tests.engine.prompt.builders import (
    a_component,
    a_history,
    first_words,
    injected,
    the_inputs,
    the_prompt,
    verdicts_of,
)


@pytest.mark.req("S3-20")
def test_context_is_chosen_by_the_kind_of_event() -> None:
    assert context_for("say") is CONVERSATION
    assert context_for("say", private=True) is WHISPER
    assert context_for("tick") is AUTONOMOUS
    assert context_for("earthquake") is CONVERSATION
    with pytest.raises(ContextError, match="no context serves events of kind 'earthquake'"):
        context_for("earthquake", [AUTONOMOUS])


def test_context_without_events_serves_all_other_events() -> None:
    rest = PromptContext(name="rest")
    assert context_for("earthquake", [AUTONOMOUS, rest]) is rest
    assert context_for("tick", [AUTONOMOUS, rest]) is AUTONOMOUS


def test_context_with_listed_ids_disables_all_other_components() -> None:
    context = PromptContext(name="brief", enabled_ids=frozenset({0, 5000}))
    on = [component.key for component in context.applied(with_statics([])) if component.enabled]
    assert on == ["system_prompt", "conversation_history"]


@pytest.mark.req("S3-20")
def test_context_disables_the_components_whose_keys_are_off() -> None:
    registry = with_statics([a_component("mood", key="mood")])
    context = PromptContext(name="brief", off=frozenset({"mood", "goals"}))
    off = [component.key for component in context.applied(registry) if not component.enabled]
    assert off == ["mood", "goals"]


@pytest.mark.req("S3-20")
def test_component_disabled_by_a_context_has_a_verdict() -> None:
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
def test_depth_of_a_component_means_the_same_in_every_context() -> None:
    registry = with_statics([injected("note", 2, key="note")])
    for context in BUILT_IN:
        prompt = the_prompt(context.applied(registry), history=a_history(4))
        assert first_words(prompt) == ["m1", "m2", "note", "m3", "m4"]


@pytest.mark.req("S3-20")
def test_context_may_override_the_depth_of_a_component() -> None:
    context = PromptContext(name="urgent", overrides={"note": {"injection_depth": 1}})
    registry = with_statics([injected("note", 3, key="note")])
    prompt = the_prompt(context.applied(registry), history=a_history(3))
    assert first_words(prompt) == ["m1", "m2", "note", "m3"]


def test_context_cannot_override_the_trust_of_a_component() -> None:
    with pytest.raises(ContextError, match=r"overrides note\.trust, which is not possible"):
        PromptContext(name="sly", overrides={"note": {"trust": "author"}})


def test_context_layer_only_restricts_a_context() -> None:
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
def test_context_layer_cannot_give_a_text_more_weight(field: str) -> None:
    layer = PromptContext(name="layer", overrides={"mood": {field: 1}})
    with pytest.raises(ContextError, match="a layer may only restrict"):
        CONVERSATION.restricted(layer)


def test_context_layer_cannot_reserve_tokens() -> None:
    layer = PromptContext(name="layer", reserves={"mood": Reserve(min_tokens=50)})
    with pytest.raises(ContextError, match="reserves tokens for mood; a layer may only restrict"):
        CONVERSATION.restricted(layer)


def test_token_limit_of_a_context_never_exceeds_the_limit_of_the_model() -> None:
    reserves = {"mood": Reserve(min_tokens=50)}
    context = PromptContext(name="brief", limit_tokens=1000, reserves=reserves)
    assert context.budget(4000) == BudgetRules(limit_tokens=1000, reserves=reserves)
    assert context.budget(600).limit_tokens == 600
    assert CONVERSATION.budget(600) == BudgetRules(limit_tokens=600)


def test_context_layer_cannot_change_a_priority() -> None:
    base = PromptContext(name="base", overrides={"mood": {"priority": 50}})
    with pytest.raises(ContextError, match=r"overrides mood\.priority; a layer may only restrict"):
        base.restricted(PromptContext(name="up", overrides={"mood": {"priority": 90}}))


@pytest.mark.req("S3-20")
def test_component_outside_the_context_gives_no_message() -> None:
    registry = with_statics([a_component("mood", key="mood")])
    context = PromptContext(name="brief", enabled_ids=frozenset({5000}))
    prompt = the_prompt(context.applied(registry), history=a_history(1))
    assert first_words(prompt) == ["m1"]
