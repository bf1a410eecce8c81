"""Texts with one depth, order and role are merged; neighbouring system messages are joined."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from evennia_ai.engine.compose import compose
from evennia_ai.engine.inputs import Inputs
from evennia_ai.engine.prompt.assembly.rules import PLAIN, PRESETS, AssemblyRules
from evennia_ai.engine.prompt.messages import Message, message_tokens
from evennia_ai.engine.prompt.notes import AuthorsNote
from evennia_ai.engine.prompt.prompt import Prompt
from tests.engine.prompt.builders import (
    a_component,
    a_history,
    a_staying,
    injected,
    texts,
    the_inputs,
)

BY_ROLE = AssemblyRules(ties="role")
SQUASHED = AssemblyRules(squash=True)


def under(inputs: Inputs, rules: AssemblyRules) -> Inputs:
    return replace(inputs, rules=replace(inputs.rules, assembly=rules))


def the_prompt(rules: AssemblyRules, *components: Any, **options: Any) -> Prompt:
    return compose(under(the_inputs(components, **options), rules))


def texts_of_origin(prompt: Prompt, origin: str) -> list[str]:
    """Return the texts of the message parts that have this origin."""
    return [text for m in prompt.messages for found, text in m.stretches if found == origin]


def test_parts_of_a_merged_message_cover_each_merged_text() -> None:
    prompt = the_prompt(
        BY_ROLE,
        injected("  One \n", 1, id=1201, key="one"),
        injected("\nTwo  ", 1, id=1202, key="two"),
        history=a_history(2),
        notes=[AuthorsNote(content=" A note. ", depth=1)],
    )
    [joined] = [message for message in prompt.messages if message.injected]
    assert joined.content == "One \n\n\nTwo\nA note."
    assert [texts_of_origin(prompt, origin) for origin in ("component:one", "component:two")] == [
        ["One \n"],
        ["\nTwo"],
    ]
    assert texts_of_origin(prompt, "note:0") == ["A note."]


def test_texts_of_different_depths_are_not_merged_at_the_same_place() -> None:
    deep = [injected(f"Depth {depth}.", depth, id=1200 + depth) for depth in (8, 9)]
    assert texts(the_prompt(BY_ROLE, *deep))[:2] == ["Depth 9.", "Depth 8."]


def test_persistent_text_is_never_merged() -> None:
    prompt = the_prompt(
        BY_ROLE,
        injected("Bottom.", 0, key="bottom"),
        history=[*a_history(2), a_staying("It rains.")],
        notes=[AuthorsNote(content="Stay.", mode="tail")],
    )
    [said] = [message for message in prompt.messages if message.of == "note:0"]
    assert (said.content, said.stays) == ("Stay.", True)


def test_merged_message_is_the_same_object_for_equal_texts() -> None:
    inputs = under(
        the_inputs([injected("One.", 1, id=1201), injected("Two.", 1, id=1202)]), BY_ROLE
    )
    [first], [again] = (
        [message for message in compose(inputs).messages if message.injected] for _ in range(2)
    )
    assert first is again


def test_squashed_message_has_a_part_for_each_text() -> None:
    prompt = the_prompt(
        SQUASHED, a_component("One.", id=1201, key="one"), a_component("Two.", id=1202, key="two")
    )
    assert texts(prompt) == ["One.\nTwo."]
    assert texts_of_origin(prompt, "component:two") == ["Two."]


def test_history_message_has_the_right_number_after_squashed_messages() -> None:
    fog = Message("system", "Fog.")
    prompt = the_prompt(
        SQUASHED,
        a_component("One.", id=1201),
        a_component("Two.", id=1202),
        history=[fog, *a_history(2)],
    )
    assert [prompt.called(index) for index in range(3)] == ["message 0", "message 1", "message 2"]


RULES = st.sampled_from(
    [PLAIN, BY_ROLE, SQUASHED, PRESETS["sillytavern"], AssemblyRules(names="content", squash=True)]
)
TEXTS = st.lists(
    st.tuples(
        st.sampled_from([" a ", "b\n", "c", "<START>\nAnna: d"]),
        st.sampled_from(["system", "user", "assistant"]),
        st.integers(0, 4),
        st.integers(99, 100),
    ),
    max_size=6,
)


@given(rules=st.lists(RULES, min_size=1, max_size=3), made=TEXTS, count=st.integers(0, 4))
def test_prompt_with_merged_messages_does_not_depend_on_earlier_prompts(
    rules: list[AssemblyRules], made: list[tuple[str, Any, int, int]], count: int
) -> None:
    def inputs() -> Inputs:
        components = [
            injected(text, depth, id=1201 + at, role=role, injection_order=order)
            for at, (text, role, depth, order) in enumerate(made)
        ]
        return the_inputs(components, history=a_history(count), event="Why?", limit=400)

    shared = inputs()
    for one in rules:
        prompt = compose(under(shared, one))
        assert prompt.sha256 == compose(under(inputs(), one)).sha256
        assert (
            sum(message_tokens(prompt.messages, prompt.counter))
            <= prompt.tokens
            <= prompt.limit_tokens
        )
        assert sum(prompt.by_origin.values()) == prompt.tokens
