"""The execution request: what is sent comes back, and what does not belong is refused."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from evennia_ai.compose import compose
from evennia_ai.errors import EvenniaAIError
from evennia_ai.execution_request import VERSION, ExecutionRequest, execution_request
from evennia_ai.plain_values import ExecutionRequestError
from evennia_ai.prompt.blocks import DynamicBlock
from evennia_ai.prompt.history import History
from evennia_ai.prompt.messages import ToolSpec
from evennia_ai.prompt.placement import Anchor
from evennia_ai.prompt.tokens import TokenCounter, estimate
from evennia_ai.scenario.reading import read_scenario
from evennia_ai.scenario.running import composed_turns
from tests.memory.builders import a_memory
from tests.prompt.builders import a_component, a_history, a_record, a_tool_pair, the_inputs
from tests.scenario.test_golden_cases import CASES

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
    """The request as it comes out of a transport that keeps no order of keys."""
    return json.loads(json.dumps(request.to_dict(), sort_keys=True))


def refused(data, **options) -> str:
    with pytest.raises(ExecutionRequestError) as caught:
        ExecutionRequest.from_dict(data, **options)
    return str(caught.value)


@pytest.mark.req("S0-14", "S1-03")
def test_every_field_beside_the_inputs_comes_back_as_it_was():
    request = with_kb()
    back = ExecutionRequest.from_dict(sent(request))
    assert back.kb_meta_prompt == request.kb_meta_prompt == KB
    assert (back.npc_ref, back.conversation, back.event) == ("7", 3, "41")
    assert back.tools == TOOLS
    assert back.inputs.blocks == request.inputs.blocks


@pytest.mark.req("S0-14", "S1-03")
def test_the_text_about_bases_is_carried_in_the_metadata_alone():
    data = sent(with_kb())
    assert data["metadata"]["kb_meta_prompt"] == KB
    assert KB not in json.dumps(data["inputs"])


@pytest.mark.req("S1-03")
def test_metadata_without_a_text_about_bases_has_an_empty_one():
    data = sent(with_kb())
    del data["metadata"]["kb_meta_prompt"]
    back = ExecutionRequest.from_dict(data)
    assert back.kb_meta_prompt == ""
    assert KB not in str(back.composed().prompt.messages)


@pytest.mark.req("S1-05")
def test_a_text_about_bases_from_elsewhere_stands_where_the_game_would_put_its_own():
    data = sent(with_kb())
    data["metadata"]["kb_meta_prompt"] = "Knowledge bases at hand: none of yours"
    prompt = ExecutionRequest.from_dict(data).composed().prompt
    (facts,) = [m.content for m in prompt.messages if m.block == "dynamic"]
    assert facts.split("\n\n")[1] == "Knowledge bases at hand: none of yours"


def test_a_text_about_bases_without_a_place_for_it_is_refused():
    data = sent(a_request())
    data["metadata"]["kb_meta_prompt"] = KB
    assert "metadata.kb_meta_prompt: there is a text, and no block" in refused(data)


def test_a_field_that_says_other_than_its_block_is_refused():
    with pytest.raises(ExecutionRequestError, match="is not that of the block"):
        replace(with_kb(), kb_meta_prompt="Another.")


def test_the_request_after_a_call_of_a_tool_ends_with_it():
    request = a_request().after(a_tool_pair(1))
    back = ExecutionRequest.from_dict(sent(request))
    assert [message.role for message in back.inputs.tools] == ["assistant", "tool"]
    assert back.composed().prompt.sha256 == request.composed().prompt.sha256


def turns_of(case):
    try:
        return list(composed_turns(read_scenario(case["given"], folder=Path("scenarios"))))
    except EvenniaAIError:  # a case about an error
        return []


def _told(made):
    """The bytes, the decisions and what lore remembers of them."""
    return made.prompt.sha256, made.prompt.verdicts, made.lore.after


@pytest.mark.req("S1-05")
def test_every_golden_scenario_gives_the_same_prompt_from_what_was_sent():
    played, other = 0, []
    for name, case in CASES.items():
        for turn in turns_of(case):
            played += 1
            request = execution_request(turn.inputs, npc_ref="1", conversation=1, event="1")
            counters = [turn.inputs.rules.counter]
            back = ExecutionRequest.from_dict(sent(request), counters=counters).composed()
            if _told(back) != _told(turn.made):
                other.append(name)
    assert other == []
    assert played > 60


def test_memories_and_bookkeeping_give_the_same_prompt():
    request = a_request(memories=(a_memory("The ferry was late.", about="Anna"),))
    history = request.inputs.history.appended(a_record(), *a_tool_pair(2))
    request = replace(request, inputs=replace(request.inputs, history=history))
    back = ExecutionRequest.from_dict(sent(request))
    assert back.inputs.memories == request.inputs.memories
    assert list(back.inputs.history) == list(history)
    assert back.composed().prompt.sha256 == compose(request.inputs).sha256


def test_a_history_keeps_what_was_left_behind_before_it():
    left = History(a_history(4), earlier=30, earlier_users=12, earlier_replies=9, segment=2)
    anchors = {"note:0": Anchor(31, "abc")}
    request = a_request(history=left, cut=31, anchors=anchors)
    back = ExecutionRequest.from_dict(sent(request)).inputs
    assert (back.cut, back.anchors, list(back.history)) == (31, anchors, list(left))
    kept = ("earlier", "earlier_users", "earlier_replies", "segment", "stop")
    assert [getattr(back.history, n) for n in kept] == [30, 12, 9, 2, 34]


def test_what_json_has_no_words_for_comes_back():
    facts = {"tide": float("inf"), "depth": 2.5, "lit": True, "tags": ("a", "b"), "at": 3}
    request = a_request(facts=facts, values={"char": "Oren \ud800 \u2028 \x00"})
    back = ExecutionRequest.from_dict(json.loads(json.dumps(request.to_dict(), allow_nan=False)))
    assert back.inputs.facts == facts
    assert [type(fact) for fact in back.inputs.facts.values()] == [
        type(fact) for fact in facts.values()
    ]
    assert back.inputs.values == request.inputs.values


# What is refused


@pytest.mark.parametrize("version", [VERSION + 1, 0, "1", True, None])
def test_another_version_is_refused(version):
    data = {**sent(a_request()), "version": version, "something": "new"}
    assert refused(data) == (
        f"execution request, version: version {version!r}; this program reads version 1: run the"
        " same release of evennia_ai on both sides"
    )


def test_a_request_that_names_no_version_is_refused():
    data = sent(a_request())
    del data["version"]
    assert "no version; this program reads version 1" in refused(data)


def test_unknown_keys_are_named_with_their_place():
    data = sent(a_request())
    assert refused({**data, "model": "x", "asap": 1}) == (
        "execution request: unknown key asap, model; known are version, metadata, inputs, tools"
    )
    data["inputs"]["rules"]["budget"]["tokens"] = 5
    assert refused(data).startswith(
        "execution request, inputs.rules.budget: unknown key tokens; known are limit_tokens,"
    )


def test_what_is_missing_is_named():
    data = sent(a_request())
    del data["metadata"]["npc_ref"], data["metadata"]["event"]
    assert refused(data) == "execution request, metadata: npc_ref, event is missing"


LISTED = ("inputs", "components", "listed")


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (("inputs", "cut"), "9", "inputs.cut: must be int, not '9'"),
        (("inputs", "cut"), True, "inputs.cut: must be int, not True"),
        (("inputs", "rules", "layout"), "odd", "must be one of cache, classic, not 'odd'"),
        (("inputs", "blocks"), {}, "inputs.blocks: must be a list, not dict"),
        (("inputs", "values"), [], "inputs.values: must be an object, not list"),
        (("inputs", "facts"), {"tide": None}, "inputs.facts.tide: must be str or int or float"),
        (("inputs", "anchors"), {"note:0": [1]}, "inputs.anchors.note:0: must have 2 values"),
        ((*LISTED, 0, "id"), -1, "inputs.components.listed[0]: id -1 is not allowed"),
    ],
)
def test_a_value_of_another_kind_is_named_with_its_place(path, value, problem):
    data = sent(with_kb())
    at = data
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    assert problem in refused(data)


def test_what_is_no_object_is_refused():
    assert refused([1]) == "execution request: must be an object, not list"


def test_a_counter_that_is_not_known_where_it_is_read_is_named():
    counter = TokenCounter("exact", "2", estimate)
    rules = replace(a_request().inputs.rules, counter=counter)
    request = a_request(rules=rules)
    assert "the token counter exact 2 is not known here (estimate 1)" in refused(sent(request))
    back = ExecutionRequest.from_dict(sent(request), counters=[counter])
    assert back.inputs.rules.counter is counter


def test_what_cannot_be_sent_is_named_with_its_place():
    request = a_request(values={"char": object()})
    with pytest.raises(ExecutionRequestError, match=r"inputs\.values\.char: a object cannot"):
        request.to_dict()


def test_how_near_memories_lie_gives_the_same_prompt():
    memories = tuple(a_memory(f"Fact {number}.", id=number) for number in (1, 2))
    request = a_request(memories=memories, near=((1, 0.25), (2, 0.75)))
    back = ExecutionRequest.from_dict(sent(request))
    assert back.inputs.near == request.inputs.near
    assert back.composed().prompt.sha256 == request.composed().prompt.sha256
