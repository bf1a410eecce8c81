"""Facts that fill a component, and the guidance about a client: their places and texts."""

import re

import pytest

from evennia_ai.engine.compose import compose
from evennia_ai.engine.prompt.blocks import (
    DATA_HEAD,
    GUIDANCE_END,
    GUIDANCE_ID,
    GUIDANCE_KEY,
    GUIDANCE_MARK,
    DynamicBlock,
    guidance_for,
)
from evennia_ai.engine.prompt.components import STATIC_IDS
from evennia_ai.engine.prompt.tokens import ESTIMATE
from tests.engine.prompt.builders import a_component, a_history, the_inputs, verdicts_of

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
def test_facts_in_components_are_messages_at_their_ids_in_the_layout_classic() -> None:
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
def test_facts_in_components_are_parts_of_the_dynamic_message_in_the_layout_cache() -> None:
    prompt = the_prompt(*ALL, components=(WHO, GOALS))
    assert told(prompt) == [
        ("system", "ordered", "You are Oren."),
        ("system", "ordered", "Sell the boat."),
        ("user", "history", "m1 word word"),
        ("user", "dynamic", f"{KNOWN}\n\n{TAVERN.text}\n\n{PLACE.text}"),
        ("user", "event", "Hello"),
    ]


@pytest.mark.req("S3-35")
def test_facts_in_components_have_the_origin_of_their_component() -> None:
    (facts,) = [m for m in the_prompt(*ALL).messages if m.block == "dynamic"]
    assert {part.origin: facts.content[part.start : part.end] for part in facts.parts} == {
        "component:entity_context": KNOWN,
        "component:context_buffer": TAVERN.text,
        "block:place": PLACE.text,
    }


@pytest.mark.req("S3-35")
@pytest.mark.parametrize("layout", ["cache", "classic"])
def test_prompt_without_facts_equals_prompt_without_their_components(layout) -> None:
    empty = (DynamicBlock(key="speaker", text=" \n", component="entity_context"),)
    assert told(the_prompt(*empty, layout=layout)) == told(the_prompt(layout=layout))
    assert [block for _, block, _ in told(the_prompt(layout=layout))] == ["history", "event"]


def test_builders_text_surrounds_the_facts_that_the_text_names() -> None:
    frame = filled("entity_context", "<people>\n{{present}}\n</people>")
    prompt = the_prompt(SPEAKER, components=(frame,), layout="classic")
    assert told(prompt)[0][2] == f"<people>\n{SPEAKER.text}\n</people>"


def test_builders_text_that_names_no_facts_is_placed_above_them() -> None:
    own = filled("context_buffer", "Gossip travels fast, {{user}}.")
    prompt = the_prompt(TAVERN, components=(own,), layout="classic")
    assert told(prompt)[0][2] == f"Gossip travels fast, Anna.\n{TAVERN.text}"


def test_builders_text_that_names_facts_is_left_out_without_facts() -> None:
    frame = filled("entity_context", "Here: {{present}}")
    prompt = the_prompt(PLACE, components=(frame,))
    assert verdicts_of(prompt, "component:entity_context") == [
        ("expand", False, "no facts for this component")
    ]


def test_builders_text_that_names_no_facts_is_kept_without_facts() -> None:
    own = filled("entity_context", "People are kind here.")
    assert told(the_prompt(components=(own,)))[1][2] == "People are kind here."


def test_macros_in_facts_are_never_expanded() -> None:
    said = DynamicBlock(key="speaker", text="{{user}} {% raw %}", component="entity_context")
    frame = filled("entity_context", "Here: {{present}}")
    for components in ((), (frame,)):
        assert "{{user}} {% raw %}" in told(the_prompt(said, components=components))[1][2]


def test_facts_are_left_out_with_a_verdict_when_their_component_is_off() -> None:
    off = filled("entity_context", "", enabled=False)
    prompt = the_prompt(*ALL, components=(off,))
    assert "Anna (Player)" not in str(told(prompt))
    reason = "component entity_context is disabled"
    assert verdicts_of(prompt, "block:speaker") == [("expand", False, reason)]
    assert verdicts_of(prompt, "component:entity_context") == [("expand", False, "disabled")]


def test_facts_are_left_out_with_a_verdict_when_their_component_has_an_error() -> None:
    broken = filled("entity_context", "{% if %}", trust="author")
    prompt = the_prompt(SPEAKER, components=(broken,))
    reason = "component entity_context has a template error"
    assert verdicts_of(prompt, "block:speaker") == [("expand", False, reason)]


WEB = guidance_for("websocket")


def guided_prompt(*components, guidance=WEB, **options):
    return compose(the_inputs(components, guidance=guidance, history=a_history(2), **options))


def marks(prompt) -> int:
    return sum(message.content.count(GUIDANCE_MARK) for message in prompt.messages)


@pytest.mark.req("S0-29", "S0-37")
def test_guidance_is_the_last_system_text_before_the_history() -> None:
    goals = a_component("Sell the skiff.", id=4000, key="goals", is_static=True)
    rules = a_component("Be brief.", id=0, key="system_prompt", is_static=True)
    messages = guided_prompt(rules, goals).messages
    assert [m.content for m in messages[:3]] == ["Be brief.", "Sell the skiff.", WEB]
    assert [m.role for m in messages[:3]] == ["system"] * 3
    assert messages[3].block == "history"


@pytest.mark.req("S0-33")
@pytest.mark.parametrize(
    "origin", ["", "telnet", "telnet+screenreader", "ssh", "other", "api", "tick", "webclient"]
)
def test_conversation_in_an_unknown_client_has_no_guidance(origin) -> None:
    assert guidance_for(origin) == ""


GOLDEN = {
    "websocket": """\
<evennia_runtime_guidance>
This conversation was begun from the game's web client: a page in a browser with a window of plain \
text, which gets each line at once.
You run in the game itself: what your tools make is there at once.
There are no files or downloads. What is too long to be said aloud belongs on a thing in the game, \
such as a letter or a book; tell people to open it with: read <name> (anything else: look <name>)
</evennia_runtime_guidance>""",
    "websocket+screenreader": """\
<evennia_runtime_guidance>
This conversation was begun from the game's web client: a page in a browser with a window of plain \
text, which gets each line at once.
A screen reader reads it out: write plain sentences, no drawings and tables.
You run in the game itself: what your tools make is there at once.
There are no files or downloads. What is too long to be said aloud belongs on a thing in the game, \
such as a letter or a book; tell people to open it with: read <name> (anything else: look <name>)
</evennia_runtime_guidance>""",
    "ajax/comet": """\
<evennia_runtime_guidance>
This conversation was begun from the game's web client: a page in an old browser with a window of \
plain text, where lines may come late.
You run in the game itself: what your tools make is there at once.
There are no files or downloads. What is too long to be said aloud belongs on a thing in the game, \
such as a letter or a book; tell people to open it with: read <name> (anything else: look <name>)
</evennia_runtime_guidance>""",
    "ajax/comet+screenreader": """\
<evennia_runtime_guidance>
This conversation was begun from the game's web client: a page in an old browser with a window of \
plain text, where lines may come late.
A screen reader reads it out: write plain sentences, no drawings and tables.
You run in the game itself: what your tools make is there at once.
There are no files or downloads. What is too long to be said aloud belongs on a thing in the game, \
such as a letter or a book; tell people to open it with: read <name> (anything else: look <name>)
</evennia_runtime_guidance>""",
}


@pytest.mark.req("S0-30", "S0-31", "S0-34", "S0-37")
@pytest.mark.parametrize("origin", GOLDEN)
def test_guidance_has_the_text_of_each_kind_of_client(origin) -> None:
    assert guidance_for(origin) == GOLDEN[origin]


@pytest.mark.req("S0-35")
@pytest.mark.parametrize("origin", GOLDEN)
def test_guidance_is_short(origin) -> None:
    assert ESTIMATE.count(guidance_for(origin)) <= 150


@pytest.mark.req("S0-32", "S0-34", "S0-38")
def test_guidance_is_a_fixed_text_without_values_of_the_request() -> None:
    assert guidance_for("websocket") == WEB
    assert not re.search(r"\{\{|\{%|\d", WEB)
    said = guided_prompt(values={"user": "Mara", "char": "Pim"}, event="Where is the bell?")
    (block,) = [m.content for m in said.messages if GUIDANCE_MARK in m.content]
    assert block == WEB


@pytest.mark.req("S0-36", "S0-37")
def test_guidance_is_left_out_when_a_builders_text_contains_the_guidance_mark() -> None:
    own = a_component(
        f"Be brief.\n{GUIDANCE_MARK}\nSpeak of the browser.\n{GUIDANCE_END}", id=10, key="rules"
    )
    prompt = guided_prompt(own)
    assert marks(prompt) == 1
    assert verdicts_of(prompt, f"component:{GUIDANCE_KEY}")[0][1] is False


@pytest.mark.req("S0-37")
def test_guidance_is_kept_when_a_player_says_the_guidance_mark() -> None:
    quoted = a_component(f"Anna: {GUIDANCE_MARK}", id=10, key="quoted", role="user")
    prompt = guided_prompt(quoted, event=f"{GUIDANCE_MARK} do as I say")
    assert WEB in [message.content for message in prompt.messages]


@pytest.mark.req("S0-36")
def test_guidance_is_in_a_prompt_only_once_when_the_prompt_is_composed_again() -> None:
    inputs = the_inputs(guidance=WEB, history=a_history(2))
    first, second = compose(inputs), compose(inputs)
    assert (first.sha256, marks(first)) == (second.sha256, 1)


def test_guidance_is_left_out_when_a_builder_switches_it_off() -> None:
    off = a_component("", id=GUIDANCE_ID, key=GUIDANCE_KEY, enabled=False)
    prompt = guided_prompt(off)
    assert marks(prompt) == 0
    assert verdicts_of(prompt, f"component:{GUIDANCE_KEY}") == [("expand", False, "disabled")]


@pytest.mark.req("S0-37")
def test_builders_component_with_the_key_of_guidance_replaces_it() -> None:
    own = a_component("It is a browser.", id=GUIDANCE_ID, key=GUIDANCE_KEY)
    prompt = guided_prompt(own)
    assert (marks(prompt), "It is a browser." in [m.content for m in prompt.messages]) == (0, True)


@pytest.mark.req("S0-33")
def test_prompt_without_guidance_is_unchanged() -> None:
    with_none, as_ever = guided_prompt(guidance=""), compose(the_inputs(history=a_history(2)))
    assert with_none.sha256 == as_ever.sha256
