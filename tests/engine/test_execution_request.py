"""Execution requests survive the way through JSON, and invalid ones are refused."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from evennia_ai.engine.compose import compose
from evennia_ai.engine.errors import EvenniaAIError, FormatError
from evennia_ai.engine.execution_request import VERSION, ExecutionRequest, execution_request
from evennia_ai.engine.prompt.blocks import DynamicBlock
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import ToolSpec
from evennia_ai.engine.prompt.placement import Anchor
from evennia_ai.engine.prompt.tokens import TokenCounter, estimate_tokens
from evennia_ai.formats.scenario.reading import read_scenario
from evennia_ai.formats.scenario.running import composed_turns
from tests.engine.memory.builders import a_memory
from tests.engine.prompt.builders import a_component, a_history, a_record, a_tool_pair, the_inputs
from tests.formats.scenario.test_golden_cases import CASES

KB = "Knowledge bases at hand: harbour (ID: harbour)"
TOOLS = (ToolSpec(name="look", description="Look around.", parameters={"type": "object"}),)


def a_request(*blocks: DynamicBlock, **fields) -> ExecutionRequest:
    rules = a_component("Be brief, {{char}}.", id=0, key="system_prompt", is_static=True)
    inputs = the_inputs([rules], history=a_history(4), event="Does the ferry run?")
    inputs = replace(inputs, **{"blocks": blocks, "values": {"char": "Oren"}, **fields})
    return execution_request(inputs, npc_ref="7", conversation=3, event="41", tools=TOOLS)


def with_kb() -> ExecutionRequest:
    return a_request(
        DynamicBlock(key="speaker", text="Who speaks: Anna."),
        DynamicBlock(key="kb_meta_prompt", text=KB),
        DynamicBlock(key="place", text="Place: the quay."),
    )


def sent(request: ExecutionRequest) -> dict:
    """Return a request as plain JSON values."""
    return json.loads(request.to_json())


def received(data, **options) -> ExecutionRequest:
    """Parse a request whose keys were sorted, because transports may change the order of keys."""
    return ExecutionRequest.from_json(json.dumps(data, sort_keys=True), **options)


def refused(data, **options) -> str:
    with pytest.raises(FormatError) as caught:
        received(data, **options)
    return str(caught.value)


@pytest.mark.req("S0-14", "S1-03")
def test_request_fields_besides_the_inputs_round_trip_through_json():
    request = with_kb()
    back = received(sent(request))
    assert back.kb_meta_prompt == request.kb_meta_prompt == KB
    assert (back.npc_ref, back.conversation, back.event) == ("7", 3, "41")
    assert back.tools == TOOLS
    assert back.inputs.blocks == request.inputs.blocks


@pytest.mark.req("S0-14", "S1-03")
def test_text_about_knowledge_bases_is_sent_only_in_the_request_metadata():
    data = sent(with_kb())
    assert data["metadata"]["kb_meta_prompt"] == KB
    assert KB not in json.dumps(data["inputs"])


@pytest.mark.req("S1-03")
def test_request_metadata_may_lack_the_text_about_knowledge_bases():
    data = sent(with_kb())
    del data["metadata"]["kb_meta_prompt"]
    back = received(data)
    assert back.kb_meta_prompt == ""
    assert KB not in str(back.composed().prompt.messages)


@pytest.mark.req("S1-05")
def test_sent_text_about_knowledge_bases_is_placed_in_its_block():
    data = sent(with_kb())
    data["metadata"]["kb_meta_prompt"] = "Knowledge bases at hand: none of yours"
    prompt = received(data).composed().prompt
    (facts,) = [m.content for m in prompt.messages if m.block == "dynamic"]
    assert facts.split("\n\n")[1] == "Knowledge bases at hand: none of yours"


def test_request_with_a_text_about_knowledge_bases_but_no_block_is_refused():
    data = sent(a_request())
    data["metadata"]["kb_meta_prompt"] = KB
    assert "metadata.kb_meta_prompt: there is a text, and inputs.blocks has no block" in refused(
        data
    )


def test_request_is_refused_when_its_meta_prompt_differs_from_the_block():
    with pytest.raises(FormatError, match="differs from the block"):
        replace(with_kb(), kb_meta_prompt="Another.")


def test_request_after_a_tool_call_has_the_call_and_its_result():
    request = a_request().after(a_tool_pair(1))
    back = received(sent(request))
    assert [message.role for message in back.inputs.tools] == ["assistant", "tool"]
    assert back.composed().prompt.sha256 == request.composed().prompt.sha256


def turns_of(case):
    try:
        return list(composed_turns(read_scenario(case["given"], folder=Path("scenarios"))))
    except EvenniaAIError:  # a case in `CASES` whose expected result is an error
        return []


def _reproduced_parts(made):
    """Return the parts of a composition that another process must reproduce exactly."""
    return made.prompt.sha256, made.prompt.verdicts, made.lore.after


@pytest.mark.req("S1-05")
def test_every_golden_scenario_gives_the_same_prompt_in_another_process():
    played, other = 0, []
    for name, case in CASES.items():
        for turn in turns_of(case):
            played += 1
            request = execution_request(turn.inputs, npc_ref="1", conversation=1, event="1")
            counters = [turn.inputs.rules.counter]
            back = received(sent(request), counters=counters).composed()
            if _reproduced_parts(back) != _reproduced_parts(turn.made):
                other.append(name)
    assert other == []
    assert played > 60


def test_request_with_memories_gives_the_same_prompt_after_json():
    request = a_request(memories=(a_memory("The ferry was late.", about="Anna"),))
    history = request.inputs.history.appended(a_record(), *a_tool_pair(2))
    request = replace(request, inputs=replace(request.inputs, history=history))
    back = received(sent(request))
    assert back.inputs.memories == request.inputs.memories
    assert list(back.inputs.history) == list(history)
    assert back.composed().prompt.sha256 == compose(request.inputs).sha256


def test_history_in_a_request_keeps_its_counts_of_earlier_messages():
    left = History(a_history(4), earlier=30, earlier_users=12, earlier_replies=9, segment=2)
    anchors = {"note:0": Anchor(31, "abc")}
    request = a_request(history=left, cut=31, anchors=anchors)
    back = received(sent(request)).inputs
    assert (back.cut, back.anchors, list(back.history)) == (31, anchors, list(left))
    kept = ("earlier", "earlier_users", "earlier_replies", "segment", "stop")
    assert [getattr(back.history, n) for n in kept] == [30, 12, 9, 2, 34]


def test_request_values_keep_their_types_and_signs_in_json():
    facts = {"tide": float("inf"), "depth": 2.5, "lit": True, "tags": ("a", "b"), "at": 3}
    request = a_request(facts=facts, values={"char": "Oren \u2028 \x00"})
    back = ExecutionRequest.from_json(request.to_json())
    assert back.inputs.facts == facts
    assert [type(fact) for fact in back.inputs.facts.values()] == [
        type(fact) for fact in facts.values()
    ]
    assert back.inputs.values == request.inputs.values


# Requests that are refused


@pytest.mark.parametrize("version", [VERSION + 1, 0, "1", True])
def test_request_of_another_version_is_refused(version):
    data = {**sent(a_request()), "version": version, "something": "new"}
    assert refused(data) == (
        f"the request: has version {version!r}, and this program reads version 1; use the same"
        " release of evennia_ai that wrote it"
    )


def test_request_that_names_no_version_is_refused():
    data = sent(a_request())
    del data["version"]
    assert "the request: has no version, and this program reads version 1" in refused(data)


WRITE_AGAIN = "; write the request again with ai/request in the game"


LISTED = ("inputs", "components", "listed")


@pytest.mark.req("S1-05")
@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (("model",), "x", "model: Extra inputs are not permitted"),
        (("inputs", "rules", "budget", "tokens"), 5, ".budget.tokens: there is no such field"),
        (("inputs", "event", "memo"), {}, "inputs.event.memo: is the name of an internal cache"),
        (("inputs", "event", "role"), "god", "inputs.event.role: must be 'system', 'user', "),
        (("inputs", "cut"), "9", "inputs.cut: must be a whole number"),
        (("inputs", "cut"), True, "inputs.cut: must be a whole number"),
        (("inputs", "cut"), 9.5, "inputs.cut: must be a whole number"),
        (("inputs", "rules", "layout"), "odd", "inputs.rules.layout: must be 'cache' or 'classic'"),
        (("inputs", "blocks"), {}, "inputs.blocks: must be a list"),
        (("inputs", "blocks"), [1], "inputs.blocks[0]: must be an object"),
        (("inputs", "values"), [], "inputs.values: must be an object"),
        (("inputs", "facts"), {"tide": None}, "inputs.facts.tide"),
        (("inputs", "anchors"), {"note:0": [1]}, "inputs.anchors.note:0[1]: is missing"),
        (("inputs", "history"), {"earlier": "x"}, "inputs.history.earlier: must be a whole number"),
        (("inputs", "rules", "counter"), {"name": "x"}, "inputs.rules.counter.version: is missing"),
        ((*LISTED, 0, "id"), -1, "inputs.components.listed[0].id: must be greater than or equal"),
        (("metadata",), {}, "metadata.npc_ref: is missing"),
        (("tools",), [{"name": "look"}], "tools[0].description: is missing"),
    ],
)
def test_error_names_the_first_invalid_value_of_a_request_with_its_path(path, value, problem):
    data = sent(with_kb())
    at = data
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    told = refused(data, where="oren.json")
    assert told.startswith("oren.json: ")
    assert problem in told
    assert told.endswith(WRITE_AGAIN)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[1]", "must be an object"),
        ("", "Invalid JSON: EOF while parsing a value at line 1 column 0"),
        ("{", "Invalid JSON: EOF while parsing an object at line 1 column 1"),
        (b"\xff{}", "Invalid JSON: "),
        ("[" * 10_000, "Invalid JSON: recursion limit exceeded"),
    ],
)
def test_request_text_that_is_not_json_is_refused(text, problem):
    with pytest.raises(FormatError) as caught:
        ExecutionRequest.from_json(text)
    assert str(caught.value).startswith(f"the request: {problem}")


def test_request_is_refused_when_the_class_of_a_component_refuses_a_value():
    data = sent(with_kb())
    listed = data["inputs"]["components"]["listed"]
    listed[0]["scope"] = {"kind": "faction", "ref": "1"}
    told = refused(data)
    assert told.startswith("the request: scope ")
    assert told.endswith(WRITE_AGAIN)


def test_request_with_an_unknown_token_counter_is_refused_by_name():
    counter = TokenCounter("exact", "2", estimate_tokens)
    rules = replace(a_request().inputs.rules, counter=counter)
    request = a_request(rules=rules)
    assert "the token counter exact 2 is unknown here (estimate 1)" in refused(sent(request))
    back = received(sent(request), counters=[counter])
    assert back.inputs.rules.counter is counter


@pytest.mark.parametrize("value", [object(), "half a pair \ud800"])
def test_request_that_json_cannot_express_is_an_error(value):
    request = a_request(values={"char": value})
    with pytest.raises(FormatError, match="the request cannot be written: "):
        request.to_json()


def test_similarity_of_memories_gives_the_same_prompt_after_json():
    memories = tuple(a_memory(f"Fact {number}.", id=number) for number in (1, 2))
    request = a_request(memories=memories, near=((1, 0.25), (2, 0.75)))
    back = received(sent(request))
    assert back.inputs.near == request.inputs.near
    assert back.composed().prompt.sha256 == request.composed().prompt.sha256


WORDS = st.lists(st.sampled_from(["fog", "lamp", "rope", "{{char}}", "tide", "ä🜂"]), max_size=6)
TEXTS = WORDS.map(" ".join)
ROLES = st.sampled_from(["system", "user", "assistant"])


@st.composite
def scenarios(draw):
    """Draw a scenario with components, notes, all sorts of lore entries, facts and a history."""
    entries = [
        {
            "keys": draw(st.lists(st.sampled_from(["fog", "lamp", "tide"]), min_size=1)),
            "content": draw(st.sampled_from(["", "@@depth 2\n", "@@role user\n"])) + draw(TEXTS),
            "constant": draw(st.booleans()),
            "enabled": True,
            "insertion_order": draw(st.integers(-5, 200) | st.floats(0, 100)),
            "extensions": {},
        }
        for _ in range(draw(st.integers(0, 4)))
    ]
    return {
        "lorebooks": [{"name": "harbour", "book": {"name": "harbour", "entries": entries}}],
        "components": [
            {
                "key": f"c{number}",
                "id": draw(st.integers(0, 5)) * 1000 + 101 + number,
                "content": draw(TEXTS),
                "role": draw(ROLES),
                "injection_depth": draw(st.integers(0, 12)),
                "injection_order": draw(st.integers(-3, 300)),
                "volatile": draw(st.booleans()),
            }
            for number in range(draw(st.integers(0, 5)))
        ],
        "notes": [
            {"content": draw(TEXTS), "depth": draw(st.integers(0, 6)), "role": draw(ROLES)}
            for _ in range(draw(st.integers(0, 2)))
        ],
        "dynamic_context": draw(st.lists(TEXTS.filter(str.strip), max_size=3)),
        "history": [
            {"role": draw(st.sampled_from(["user", "assistant"])), "content": draw(TEXTS) or "hm"}
            for _ in range(draw(st.integers(0, 12)))
        ],
        "event": {"name": "Anna", "content": draw(TEXTS) or "hm"},
        "settings": {
            "layout": draw(st.sampled_from(["cache", "classic"])),
            "seed": draw(st.integers(0, 99)),
            "reply_tokens": draw(st.integers(100, 3000)),
        },
    }


COMPOSING = """
import sys
from evennia_ai.engine.execution_request import ExecutionRequest

for line in sys.stdin:
    print(ExecutionRequest.from_json(line).composed().prompt.sha256)
"""


@pytest.mark.long
@pytest.mark.req("S1-03", "S1-05")
@settings(max_examples=2, phases=[Phase.generate])
@given(st.lists(scenarios(), min_size=12, max_size=12))
def test_random_requests_give_equal_bytes_in_another_process(given_scenarios):
    made = [
        turn
        for scenario in given_scenarios
        for turn in composed_turns(read_scenario(scenario, folder=Path("scenarios")))
    ]
    lines = [
        execution_request(turn.inputs, npc_ref="1", conversation=1, event="1").to_json()
        for turn in made
    ]
    told = subprocess.run(
        [sys.executable, "-c", COMPOSING],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=False,
        encoding="utf-8",
    )
    assert told.stderr == ""
    assert told.stdout.split() == [turn.made.prompt.sha256 for turn in made]
    again = [ExecutionRequest.from_json(line).to_json() for line in lines]
    assert again == lines
