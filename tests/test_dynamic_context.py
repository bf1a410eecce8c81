"""Test the order of a prompt with facts of the moment.

Whole prompts are compared, so that nothing else changes when the facts change.
"""

import ast
from pathlib import Path

import pytest

import evennia_ai
from evennia_ai.engine.compose import compose
from evennia_ai.engine.prompt.blocks import DynamicBlock
from evennia_ai.engine.prompt.messages import said
from evennia_ai.formats.scenario import run_scenario
from tests.engine.prompt.builders import a_component, a_history, the_inputs, verdicts_of

PACKAGE = Path(evennia_ai.__file__).parent
RULES = a_component("You are an NPC. Be brief.", id=0, key="system_prompt", is_static=True)
KB = DynamicBlock(key="kb_meta_prompt", text="Knowledge bases at hand: harbour (ID: harbour)")
SPEAKER = DynamicBlock(key="speaker", text="Who speaks: Anna (Player).")


def the_prompt(*blocks, history=4, event="Does the ferry run?", components=(RULES,), **options):
    past = a_history(history) if isinstance(history, int) else history
    return compose(
        the_inputs(components, history=past, event=event, blocks=tuple(blocks), **options)
    )


def told(prompt):
    return [(message.role, message.block, message.content) for message in prompt.messages]


def head(prompt):
    return [message.content for message in prompt.messages if message.role == "system"]


@pytest.mark.req("S0-08", "S1-11")
def test_prompt_order_is_system_history_facts_event() -> None:
    assert told(the_prompt(KB, history=2)) == [
        ("system", "ordered", "You are an NPC. Be brief."),
        ("user", "history", "m1 word word"),
        ("assistant", "history", "m2 word word"),
        ("user", "dynamic", KB.text),
        ("user", "event", "Does the ferry run?"),
    ]


@pytest.mark.req("S0-01", "S0-03", "S1-08")
def test_other_facts_leave_all_bytes_before_them_unchanged() -> None:
    first = told(the_prompt(KB, SPEAKER))
    other = told(the_prompt(DynamicBlock(key="speaker", text="Nobody speaks to you.")))
    assert first[:5] == other[:5]
    assert first[5] != other[5]
    assert first[6] == other[6]


@pytest.mark.req("S0-01", "S1-08")
def test_volatile_component_is_among_the_facts_after_the_history() -> None:
    def with_mood(text: str):
        mood = a_component(text, id=1200, key="mood", volatile=True)
        return told(the_prompt(KB, components=(RULES, mood)))

    calm, cross = with_mood("Oren is calm."), with_mood("Oren is cross.")
    assert [one for one in calm if one[1] != "dynamic"] == [
        one for one in cross if one[1] != "dynamic"
    ]
    (facts,) = [one for one in cross if one[1] == "dynamic"]
    assert "Oren is cross." in facts[2]


@pytest.mark.req("S0-03")
@pytest.mark.parametrize(
    "more",
    [
        {"blocks": (KB, SPEAKER)},
        {"event": "And to Saltholm?"},
        {"history": 9},
        {"values": {"weather": "fog"}},
    ],
    ids=["facts", "event", "history", "values"],
)
def test_request_never_changes_the_system_texts(more) -> None:
    blocks = more.pop("blocks", ())
    assert head(the_prompt(*blocks, **more)) == head(the_prompt())


@pytest.mark.req("S0-02", "S0-05", "S0-27", "S1-06", "S1-07")
def test_fact_blocks_are_separate_in_one_message_in_order() -> None:
    prompt = the_prompt(KB, SPEAKER)
    (facts,) = [message for message in prompt.messages if message.block == "dynamic"]
    assert facts.content == f"{KB.text}\n\n{SPEAKER.text}"
    assert {part.origin: facts.content[part.start : part.end] for part in facts.parts} == {
        "block:kb_meta_prompt": KB.text,
        "block:speaker": SPEAKER.text,
    }


@pytest.mark.req("S0-05", "S1-06")
def test_additional_fact_block_changes_no_other_message() -> None:
    less, more = told(the_prompt(KB)), told(the_prompt(KB, SPEAKER))
    assert [m for m in less if m[1] != "dynamic"] == [m for m in more if m[1] != "dynamic"]


@pytest.mark.req("S0-04", "S0-11", "S1-04")
def test_facts_are_a_user_message_with_unchanged_text() -> None:
    text = "  {{char}} <b>{% if x %}</b>\n\nKeep {this}.  "
    (facts,) = [m for m in told(the_prompt(DynamicBlock(key="x", text=text))) if m[1] == "dynamic"]
    assert facts == ("user", "dynamic", text)


@pytest.mark.req("S0-09")
def test_prompt_without_system_text_has_no_system_message() -> None:
    empty = a_component("  \n", id=0, key="system_prompt", is_static=True)
    assert head(the_prompt(KB, components=(empty,))) == []
    assert head(the_prompt(KB, components=())) == []


@pytest.mark.req("S0-10")
def test_history_is_shown_unchanged() -> None:
    past = [said("user", "  One\n\n two  "), said("assistant", "{{user}} | {x}"), said("user", "3")]
    shown = [m.content for m in the_prompt(KB, history=past).messages if m.block == "history"]
    assert shown == [message.content for message in past]


@pytest.mark.req("S0-10")
def test_longer_history_begins_with_the_shorter_one() -> None:
    short, long = told(the_prompt(KB, history=4)), told(the_prompt(KB, history=6))
    assert long[:5] == short[:5]


@pytest.mark.req("S0-11", "S0-49", "S1-09")
@pytest.mark.parametrize("text", ["", "  ", "\n\n"])
def test_empty_fact_block_makes_no_message(text) -> None:
    prompt = the_prompt(DynamicBlock(key="kb_meta_prompt", text=text))
    assert told(prompt) == told(the_prompt())
    assert prompt.sha256 == the_prompt().sha256
    assert verdicts_of(prompt, "block:kb_meta_prompt") == [("expand", False, "empty")]


@pytest.mark.req("S0-12")
def test_answered_event_is_the_last_message() -> None:
    assert told(the_prompt(KB, SPEAKER))[-1] == ("user", "event", "Does the ferry run?")


@pytest.mark.req("S0-06")
def test_policy_in_a_static_text_stays_in_the_system_message() -> None:
    policy = a_component("Search before you answer.", id=100, key="knowledge_rules")
    prompt = the_prompt(KB, components=(RULES, policy))
    assert head(prompt) == [RULES.content, policy.content]
    assert policy.content not in [m[2] for m in told(prompt) if m[1] == "dynamic"]


@pytest.mark.req("S1-05")
def test_facts_from_other_providers_give_the_same_messages() -> None:
    scenario = {
        "dynamic_context": [KB.text, SPEAKER.text],
        "history": [{"role": m.role, "content": m.content} for m in a_history(2)],
        "event": {"name": "Anna", "content": "Does the ferry run?"},
        "settings": {"system_prompt": RULES.content},
    }
    sent = run_scenario(scenario)["messages"]
    here = the_prompt(KB, SPEAKER, history=2)
    assert [(m["role"], m["content"]) for m in sent] == [(m.role, m.content) for m in here.messages]


def _imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


@pytest.mark.req("S1-05")
@pytest.mark.parametrize(
    "name",
    ["engine/compose.py", "services/llm", "engine/prompt", "npc/turn", "npc/inputs/gather.py"],
)
def test_composing_modules_do_not_import_knowledge(name) -> None:
    path = PACKAGE / name
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    assert files
    guilty = {file.name for file in files for module in _imported(file) if "knowledge" in module}
    assert guilty == set()
