"""What a prompt was made from is written down as JSON, and which records it held."""

import json
from dataclasses import replace

from evennia_ai.compose import ComposeRules, Inputs
from evennia_ai.history.projection import project
from evennia_ai.history.records import canonical_json
from evennia_ai.lorebook.rules import ActivationRules
from evennia_ai.minds.turn_sources import recorded_inputs
from evennia_ai.prompt.blocks import DynamicBlock
from evennia_ai.prompt.budget import BudgetRules
from evennia_ai.prompt.expansion import ComponentSet
from tests.history.builders import a_conversation

SAID = a_conversation(5)
PLAIN = Inputs(
    components=ComponentSet([]),
    rules=ComposeRules(budget=BudgetRules(limit_tokens=4000)),
    history=project(SAID[:4]),
)


def told(inputs: Inputs, *, event=SAID[4], now=SAID) -> dict:
    """What is written down, as it comes back."""
    made = recorded_inputs(inputs, event=event, now=project(now), reply_tokens=400)
    return json.loads(canonical_json(made))


def test_the_small_values_are_written_down():
    inputs = replace(
        PLAIN,
        values={"char": "Oren"},
        cut=7,
        blocks=(DynamicBlock(key="place", text="The quay."),),
    )

    values = told(inputs)
    assert (values["values"], values["cut"], values["event"]) == ({"char": "Oren"}, 7, "105")
    assert values["blocks"] == [["place", "The quay."]]
    assert (values["limit_tokens"], values["reply_tokens"]) == (4000, 400)


def test_the_history_is_told_by_its_ends():
    assert told(PLAIN)["history"] == {
        "segment": 0,
        "first": "101",
        "last": "104",
        "left_out": [],
        "earlier": [0, 0, 0],
    }


def test_what_waited_for_an_answer_of_its_own_is_told_as_left_out():
    held = replace(PLAIN, history=project([*SAID[:1], *SAID[2:3]]))

    history = told(held, event=SAID[4])["history"]
    assert (history["first"], history["last"]) == ("101", "103")
    assert history["left_out"] == ["102", "104"]


def test_a_conversation_that_begins_has_no_ends():
    history = told(replace(PLAIN, history=project([])), event=SAID[0], now=SAID[:1])["history"]

    assert (history["first"], history["last"], history["left_out"]) == (None, None, [])


def test_only_rules_of_lore_that_were_changed_are_told():
    rules = replace(PLAIN.rules, lore=ActivationRules(scan_depth=9))

    assert told(PLAIN)["lore"] == {}
    assert told(replace(PLAIN, rules=rules))["lore"] == {"scan_depth": 9}


def test_facts_of_every_kind_can_be_written_down():
    facts = {"npc.tags": ("a", "b"), "tide": 2.5, "falls": True, "depth": float("nan")}

    assert told(replace(PLAIN, facts=facts))["facts"] == {
        "npc.tags": ["a", "b"],
        "tide": 2.5,
        "falls": True,
        "depth": "nan",
    }


def test_the_room_is_told_in_words_and_the_card_by_hash():
    sources = told(replace(PLAIN, sources={"room": "A quay.", "scenario": "Long."}))["sources"]

    assert sources["room"] == "A quay."
    assert list(sources["scenario"]) == ["sha256"]
