"""Facts that fill a component: where they stand in each layout, and what frames them."""

import pytest

from evennia_ai.compose import compose
from evennia_ai.prompt.blocks import DATA_HEAD, DynamicBlock
from evennia_ai.prompt.components import STATIC_IDS
from tests.prompt.builders import a_component, a_history, the_inputs, verdicts_of

SPEAKER = DynamicBlock(key="speaker", text="Who speaks: Anna (Player).", component="entity_context")
FRIEND = DynamicBlock(
    key="relation", text="What Anna is to you: a friend.", component="entity_context"
)
TAVERN = DynamicBlock(key="elsewhere", text="Elsewhere:\n- Ben: Ale!", component="context_buffer")
PLACE = DynamicBlock(key="place", text="Place: Quay.")
ALL = (PLACE, SPEAKER, FRIEND, TAVERN)
KNOWN = f"{SPEAKER.text}\n{FRIEND.text}"
GOALS = a_component("Sell the boat.", id=4000, key="goals")
WHO = a_component("You are Oren.", id=1000, key="character_context")


def filled(key, content, **fields):
    return a_component(
        content, id=STATIC_IDS[key], key=key, volatile=True, **{"role": "user", **fields}
    )


def the_prompt(*blocks, components=(), **options):
    options.setdefault("history", a_history(1))
    return compose(the_inputs(components, blocks=blocks, event="Hello", **options))


def told(prompt):
    return [(message.role, message.block, message.content) for message in prompt.messages]


@pytest.mark.req("S3-35")
def test_in_the_classic_layout_they_are_messages_at_their_ids() -> None:
    prompt = the_prompt(*ALL, components=(WHO, GOALS), layout="classic")
    assert told(prompt) == [
        ("system", "ordered", "You are Oren."),
        ("system", "ordered", f"{DATA_HEAD}\n{KNOWN}"),
        ("user", "ordered", TAVERN.text),
        ("system", "ordered", "Sell the boat."),
        ("user", "history", "m1 word word"),
        ("user", "dynamic", PLACE.text),
        ("user", "event", "Hello"),
    ]


@pytest.mark.req("S3-35")
def test_in_the_layout_cache_they_are_parts_of_the_dynamic_message() -> None:
    prompt = the_prompt(*ALL, components=(WHO, GOALS))
    assert told(prompt) == [
        ("system", "ordered", "You are Oren."),
        ("system", "ordered", "Sell the boat."),
        ("user", "history", "m1 word word"),
        ("user", "dynamic", f"{KNOWN}\n\n{TAVERN.text}\n\n{PLACE.text}"),
        ("user", "event", "Hello"),
    ]


@pytest.mark.req("S3-35")
def test_each_has_the_origin_of_its_component() -> None:
    (facts,) = [m for m in the_prompt(*ALL).messages if m.block == "dynamic"]
    assert {part.origin: facts.content[part.start : part.end] for part in facts.parts} == {
        "component:entity_context": KNOWN,
        "component:context_buffer": TAVERN.text,
        "block:place": PLACE.text,
    }


@pytest.mark.req("S3-35")
@pytest.mark.parametrize("layout", ["cache", "classic"])
def test_without_facts_the_prompt_is_as_without_the_components(layout) -> None:
    empty = (DynamicBlock(key="speaker", text=" \n", component="entity_context"),)
    assert told(the_prompt(*empty, layout=layout)) == told(the_prompt(layout=layout))
    assert [block for _, block, _ in told(the_prompt(layout=layout))] == ["history", "event"]


def test_a_builder_s_text_frames_the_facts_it_names() -> None:
    frame = filled("entity_context", "<people>\n{{present}}\n</people>")
    prompt = the_prompt(SPEAKER, components=(frame,), layout="classic")
    assert told(prompt)[0][2] == f"<people>\n{SPEAKER.text}\n</people>"


def test_a_builder_s_text_that_names_no_facts_stands_above_them() -> None:
    own = filled("context_buffer", "Gossip travels fast, {{user}}.")
    prompt = the_prompt(TAVERN, components=(own,), layout="classic")
    assert told(prompt)[0][2] == f"Gossip travels fast, Anna.\n{TAVERN.text}"


def test_a_builder_s_text_that_names_facts_gives_nothing_where_there_are_none() -> None:
    frame = filled("entity_context", "Here: {{present}}")
    prompt = the_prompt(PLACE, components=(frame,))
    assert verdicts_of(prompt, "component:entity_context") == [("expand", False, "nothing to tell")]


def test_a_builder_s_text_that_names_no_facts_stands_without_any() -> None:
    own = filled("entity_context", "People are kind here.")
    assert told(the_prompt(components=(own,)))[1][2] == "People are kind here."


def test_facts_are_never_expanded() -> None:
    said = DynamicBlock(key="speaker", text="{{user}} {% raw %}", component="entity_context")
    frame = filled("entity_context", "Here: {{present}}")
    for components in ((), (frame,)):
        assert "{{user}} {% raw %}" in told(the_prompt(said, components=components))[1][2]


def test_the_facts_of_a_component_that_is_off_are_left_out_and_say_so() -> None:
    off = filled("entity_context", "", enabled=False)
    prompt = the_prompt(*ALL, components=(off,))
    assert "Anna (Player)" not in str(told(prompt))
    reason = "component entity_context is disabled"
    assert verdicts_of(prompt, "block:speaker") == [("expand", False, reason)]
    assert verdicts_of(prompt, "component:entity_context") == [("expand", False, "disabled")]


def test_the_facts_of_a_component_that_cannot_be_read_are_left_out_and_say_so() -> None:
    broken = filled("entity_context", "{% if %}", trust="author")
    prompt = the_prompt(SPEAKER, components=(broken,))
    reason = "component entity_context has a template error"
    assert verdicts_of(prompt, "block:speaker") == [("expand", False, reason)]
