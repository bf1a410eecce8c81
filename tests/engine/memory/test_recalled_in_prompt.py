"""Recalled memories in a prompt: their place, the text around them, and their message parts."""

from dataclasses import replace
from typing import Any

import pytest

from evennia_ai.engine.compose import compose, compose_with_lore
from evennia_ai.engine.memory.memories import Memory
from evennia_ai.engine.memory.recalling import Moment, RecallRules
from evennia_ai.engine.prompt.blocks import DynamicBlock
from evennia_ai.engine.prompt.components import STATIC_IDS, PromptComponent
from evennia_ai.engine.prompt.prompt import Prompt
from tests.engine.memory.builders import a_memory
from tests.engine.prompt.builders import (
    a_component,
    a_history,
    a_staying,
    the_inputs,
    verdicts_of,
)

ROPE = a_memory("Anna owes Oren a rope.", id=3, created_at=1.0)
FERRY = a_memory("The ferry leaves at dawn.", id=5, created_at=2.0, revision=2)
BOTH = (ROPE, FERRY)
NOON = DynamicBlock(key="time", text="It is noon.")
MOOD = a_component("You are tired.", id=1200, key="mood", volatile=True)
UNDER_HEADING = "What you remember:\n- Anna owes Oren a rope.\n- The ferry leaves at dawn."
OWN = "component:semantic_memories"


def the_component(content: str, **fields: Any) -> PromptComponent:
    key = "semantic_memories"
    fields.setdefault("role", "user")
    return a_component(content, id=STATIC_IDS[key], key=key, volatile=True, **fields)


def the_prompt(*memories: Memory, components: tuple[PromptComponent, ...] = (), **more: Any):
    return compose(the_inputs(components, memories=memories, event="Hello", **more))


def blocks_and_texts(prompt: Prompt) -> list[tuple[str, str]]:
    return [(message.block, message.content) for message in prompt.messages]


def texts_by_origin(prompt: Prompt) -> dict[str, str]:
    """Return the text of each part by its origin."""
    return {
        part.origin: message.content[part.start : part.end]
        for message in prompt.messages
        for part in message.parts
    }


def test_memories_are_a_message_at_their_id_in_the_classic_layout() -> None:
    goals = a_component("Sell the boat.", id=4000, key="goals")
    prompt = the_prompt(*BOTH, components=(MOOD, goals), layout="classic", history=a_history(1))
    assert blocks_and_texts(prompt) == [
        ("ordered", "You are tired."),
        ("ordered", UNDER_HEADING),
        ("ordered", "Sell the boat."),
        ("history", "m1 word word"),
        ("event", "Hello"),
    ]
    assert [m.role for m in prompt.messages if m.content == UNDER_HEADING] == ["user"]


def test_memories_are_in_the_dynamic_message_by_their_id_in_the_cache_layout() -> None:
    tide = a_component("Low tide.", id=3001, key="tide", volatile=True)
    prompt = the_prompt(*BOTH, components=(MOOD, tide), blocks=(NOON,), history=a_history(1))
    assert blocks_and_texts(prompt) == [
        ("history", "m1 word word"),
        ("dynamic", f"You are tired.\n\n{UNDER_HEADING}\n\nLow tide.\n\nIt is noon."),
        ("event", "Hello"),
    ]


@pytest.mark.parametrize("layout", ["cache", "classic"])
def test_each_memory_has_its_own_message_part(layout: str) -> None:
    prompt = the_prompt(*BOTH, components=(MOOD,), layout=layout)
    found = texts_by_origin(prompt)
    assert found["memory:3"] == "- Anna owes Oren a rope."
    assert found["memory:5"] == "- The ferry leaves at dawn."
    assert found[OWN] == "What you remember:\n"


def test_message_part_has_the_revision_of_its_memory() -> None:
    parts = [part for message in the_prompt(*BOTH).messages for part in message.parts]
    assert {part.origin: part.revision for part in parts}["memory:5"] == 2


def test_builders_text_surrounds_the_memories_that_the_text_names() -> None:
    frame = the_component("<memories>\n{{memories}}\n</memories> Trust them, {{char}}.")
    prompt = the_prompt(ROPE, components=(frame,), layout="classic")
    assert blocks_and_texts(prompt)[0][1] == (
        "<memories>\n- Anna owes Oren a rope.\n</memories> Trust them, Oren."
    )
    assert texts_by_origin(prompt)["memory:3"] == "- Anna owes Oren a rope."


def test_builders_text_with_logic_surrounds_the_memories() -> None:
    frame = the_component("{% if memories %}Known:\n{{ memories }}{% endif %}")
    prompt = the_prompt(ROPE, components=(frame,), layout="classic")
    assert blocks_and_texts(prompt)[0][1] == "Known:\n- Anna owes Oren a rope."


def test_memory_component_is_left_out_without_memories() -> None:
    prompt = the_prompt(components=(the_component("Known:\n{{memories}}"),))
    assert blocks_and_texts(prompt) == [("event", "Hello")]
    assert verdicts_of(prompt, OWN) == [("expand", False, "no memory was recalled")]


def test_memories_are_left_out_when_the_component_does_not_name_them() -> None:
    prompt = the_prompt(ROPE, components=(the_component("You remember little."),))
    assert blocks_and_texts(prompt)[0] == ("dynamic", "You remember little.")
    assert verdicts_of(prompt, "memory:3") == [
        ("recall", False, "component semantic_memories has a text that does not name {{memories}}")
    ]


def test_memories_are_left_out_when_the_component_is_disabled() -> None:
    prompt = the_prompt(ROPE, components=(the_component("", enabled=False),))
    assert blocks_and_texts(prompt) == [("event", "Hello")]
    assert verdicts_of(prompt, "memory:3") == [
        ("recall", False, "component semantic_memories is disabled")
    ]


def test_memories_are_left_out_when_the_component_text_has_an_error() -> None:
    prompt = the_prompt(ROPE, components=(the_component("{% if %}{{memories}}"),))
    assert verdicts_of(prompt, "memory:3") == [
        ("recall", False, "component semantic_memories has a template error")
    ]


def test_prompt_is_unchanged_without_memories() -> None:
    assert (
        the_prompt(components=(MOOD,)).sha256 == compose(the_inputs((MOOD,), event="Hello")).sha256
    )


def test_only_the_memory_component_can_name_the_memories() -> None:
    other = a_component("I know: {{memories}}", id=1201, key="other")
    assert blocks_and_texts(the_prompt(ROPE, components=(other,)))[0] == (
        "ordered",
        "I know: {{memories}}",
    )


@pytest.mark.parametrize("text", ["{{char}}", "{{random::a,b}}", "{% if x %}", "\\1 {{{{", "$0"])
def test_memory_text_is_never_expanded(text: str) -> None:
    for frame in ("", "Known:\n{{memories}}", "{% if memories %}{{ memories }}{% endif %}"):
        prompt = the_prompt(a_memory(text), components=(the_component(frame),))
        assert f"- {text}" in blocks_and_texts(prompt)[0][1]


def test_memory_does_not_count_as_recalled_when_the_budget_leaves_the_memory_out() -> None:
    inputs = the_inputs(memories=(ROPE,), event="Hello", limit=24)
    rules = replace(inputs.rules, memory=RecallRules(share_percent=100))
    composed = compose_with_lore(replace(inputs, rules=rules))
    assert composed.recalled.kept == (ROPE,)
    assert composed.recalled.shown_ids == ()
    assert verdicts_of(composed.prompt, OWN)[-1][0:2] == ("budget", False)


def test_memories_that_the_prompt_contains_count_as_recalled() -> None:
    inputs = the_inputs(memories=BOTH, event="Hello", moment=Moment(hours=2.0))
    assert compose_with_lore(inputs).recalled.shown_ids == (3, 5)


def test_memories_are_left_out_when_dynamic_context_is_disabled() -> None:
    off = a_component("", id=5500, key="dynamic_context", enabled=False)
    inputs = the_inputs([off], memories=(ROPE,), event="Hello")
    composed = compose_with_lore(inputs)
    assert composed.recalled.shown_ids == ()
    assert verdicts_of(composed.prompt, "memory:3") == [
        ("recall", False, "component semantic_memories was left out")
    ]


def test_prompt_with_memories_is_the_same_when_composed_again() -> None:
    inputs = the_inputs((MOOD,), memories=BOTH, event="Hello")
    fresh = the_inputs(
        (MOOD,), memories=tuple(replace(m, _memo={}) for m in reversed(BOTH)), event="Hello"
    )
    assert compose(inputs).sha256 == compose(inputs).sha256 == compose(fresh).sha256


def test_memories_count_as_recalled_when_the_history_already_has_them() -> None:
    stands = a_staying(UNDER_HEADING)
    inputs = the_inputs(memories=BOTH, event="Hello", history=[*a_history(2), stands])
    composed = compose_with_lore(replace(inputs, rules=replace(inputs.rules, blocks="on_change")))
    assert [m.content for m in composed.prompt.messages].count(UNDER_HEADING) == 1
    assert composed.recalled.shown_ids == (3, 5)
