"""Conditions (`when`) of components and notes: off means out of the prompt, with a reason."""

from dataclasses import replace

import pytest

from evennia_ai.engine.compose import compose
from evennia_ai.engine.errors import ComponentValueError
from evennia_ai.engine.inputs import ComposeRules, Inputs
from evennia_ai.engine.memory.memories import Memory
from evennia_ai.engine.prompt.blocks import DynamicBlock
from evennia_ai.engine.prompt.cache_account import Sent, first_break
from evennia_ai.engine.prompt.components import (
    STATIC_COMPONENTS,
    STATIC_IDS,
    PromptComponent,
)
from evennia_ai.engine.prompt.conditions import parse_conditions
from evennia_ai.engine.prompt.contexts import CONVERSATION
from evennia_ai.engine.prompt.expansion import ComponentSet
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.notes import AuthorsNote, Notes
from evennia_ai.engine.prompt.prompt import Prompt
from evennia_ai.engine.prompt.registry import with_statics
from tests.engine.prompt.builders import DICE, a_component, a_history

EVENING = "time.hour >= 18"
RULES = ComposeRules(budget=CONVERSATION.budget(4096), dice=DICE)


def inputs_at(hour: int, *components: PromptComponent, **more: object) -> Inputs:
    made = Inputs(
        components=ComponentSet(with_statics(components)),
        rules=RULES,
        history=History(a_history(4)),
        facts={"time.hour": hour, "room.tags": ("quay",)},
    )
    return replace(made, **more)


def at(inputs: Inputs, hour: int) -> Inputs:
    return replace(inputs, facts={**inputs.facts, "time.hour": hour})


def why(prompt: Prompt, item: str) -> list[str]:
    return [one.reason for one in prompt.verdicts if one.item == item and not one.kept]


def texts(prompt: Prompt) -> str:
    return "\n".join(message.content for message in prompt.messages)


def test_component_is_in_the_prompt_only_while_its_conditions_are_met() -> None:
    tavern = a_component("The tavern is full.", id=1201, key="tavern", when=EVENING)
    inputs = inputs_at(12, tavern)
    for hour, is_there in ((12, False), (18, True), (12, False), (23, True)):  # one warm set
        prompt = compose(at(inputs, hour))
        assert ("The tavern is full." in texts(prompt)) is is_there
        reason = f"off now: time.hour must be at least 18, and it is {hour}"
        assert why(prompt, "component:tavern") == ([] if is_there else [reason])


def test_condition_is_never_met_when_its_fact_is_unknown() -> None:
    inputs = inputs_at(20, a_component("Rain.", key="rain", when="weather is_any rain"))
    assert why(compose(inputs), "component:rain") == [
        "off now: weather must be rain, and the fact is unknown"
    ]


@pytest.mark.parametrize("mode", ["floating", "anchored", "tail"])
def test_note_is_in_the_prompt_only_while_its_conditions_are_met(mode: str) -> None:
    note = AuthorsNote(content="He yawns.", key="n", depth=1, when=EVENING, mode=mode)  # type: ignore[arg-type]
    inputs = inputs_at(12, notes=Notes([note]))
    assert "He yawns." not in texts(compose(inputs))
    assert why(compose(inputs), "note:n") == [
        "off now: time.hour must be at least 18, and it is 12"
    ]
    assert "He yawns." in texts(compose(at(inputs, 19)))


def test_variables_of_a_component_are_not_set_while_it_is_off() -> None:
    inputs = inputs_at(
        12,
        a_component("{{setvar::mood::merry}}Set.", id=5100, key="one", when=EVENING),
        a_component("Mood: {{getvar::mood}}.", id=5200, key="two"),
    )
    for hour, mood in ((12, ""), (20, "merry"), (12, "")):
        assert f"Mood: {mood}." in texts(compose(at(inputs, hour)))


def test_component_with_a_changing_condition_moves_after_the_history() -> None:
    """The beginning of the prompt must stay the same, so that providers can cache it."""
    by_hour = a_component("By hour.", id=1201, key="hour", when=EVENING)
    by_room = a_component("By room.", id=1202, key="room", when="room.tags has_any quay")
    inputs = inputs_at(12, by_hour, by_room)
    noon, night = compose(inputs), compose(at(inputs, 22))
    blocks = {text: one.block for one in night.messages for text in one.content.split("\n")}
    assert (blocks["By hour."], blocks["By room."]) == ("dynamic", "ordered")
    shared = [one.content for one in noon.messages if one.block in ("ordered", "history")]
    assert [one.content for one in night.messages][: len(shared)] == shared


def test_cache_break_names_the_condition_when_the_layout_is_classic() -> None:
    rules = replace(RULES, layout="classic")
    inputs = inputs_at(12, a_component("Now.", id=1201, key="now", when=EVENING), rules=rules)
    older, newer = (compose(at(inputs, hour)).messages for hour in (20, 12))
    found = first_break(
        Sent(messages=older), Sent(messages=newer), at=0, components=inputs.components
    )
    assert (found.reason, found.origin) == ("condition", "component:now")


def test_memories_and_facts_have_no_place_while_their_component_is_off() -> None:
    of_memories, of_facts = (
        replace(one, when=EVENING)
        for one in STATIC_COMPONENTS
        if one.key in ("semantic_memories", "entity_context")
    )
    memory = Memory(id=1, text="Anna likes maps.", about="7", importance=9)
    block = DynamicBlock(key="who", text="Anna is here.", component="entity_context")
    inputs = inputs_at(12, of_memories, of_facts, memories=(memory,), blocks=(block,))
    noon, night = compose(inputs), compose(at(inputs, 22))
    for text in ("Anna likes maps.", "Anna is here."):
        assert text not in texts(noon)
        assert text in texts(night)
    assert why(noon, "block:who") == [
        "component entity_context is off now: time.hour must be at least 18, and it is 12"
    ]


def test_conditions_are_parsed_as_lore_writes_them() -> None:
    parsed = parse_conditions(
        "time.hour >= 18 ; room.tags HAS_ANY quay, the docks; ill is_any true;"
    )
    assert [str(one) for one in parsed] == [
        "time.hour at_least 18",
        "room.tags has_any quay, the docks",
        "ill is_any True",
    ]


@pytest.mark.parametrize("text", ["time.hour", "time.hour > 18", "time.hour >= late", "a is_any"])
def test_component_refuses_a_text_that_is_no_condition(text: str) -> None:
    with pytest.raises(ComponentValueError, match="when"):
        a_component("Fog.", when=text)
    with pytest.raises(ComponentValueError, match="it must be"):
        parse_conditions(text)


def test_place_of_other_texts_refuses_conditions() -> None:
    place = next(one for one in STATIC_COMPONENTS if one.key == "conversation_history")
    assert STATIC_IDS["conversation_history"] == place.id
    with pytest.raises(ComponentValueError, match="a place for other texts"):
        place.changed(when=EVENING)
