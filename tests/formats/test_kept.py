"""Files of kept cases: what is read and refused, and which conditions hold of a prompt."""

import pytest

from evennia_ai.engine.compose import compose_with_lore
from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.documents import read_yaml
from evennia_ai.engine.inputs import ComposeRules, Inputs
from evennia_ai.engine.lorebook.book import names_of
from evennia_ai.engine.prompt.budget import BudgetRules
from evennia_ai.engine.prompt.components import PromptComponent
from evennia_ai.engine.prompt.expansion import ComponentSet
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import event_message, said
from evennia_ai.formats.kept import (
    Expectation,
    KeptCase,
    Named,
    accepted,
    case_text,
    change_lines,
    expected_prompt,
    judge,
    kept_inputs,
    parse_case,
)
from evennia_ai.formats.lorebooks.books import read_book
from tests.formats.scenario.builders import an_entry

FERRY = an_entry("The ferry crosses twice a day.", "ferry", name="the ferry")
FOG = an_entry("Fog hides the quay.", "fog", name="fog")


def composed(*entries, mood="Calm.", line="When does the ferry run?"):
    book = read_book({"entries": [*entries]}, label="harbour")
    inputs = Inputs(
        components=ComponentSet([PromptComponent(id=1201, key="mood", content=mood)]),
        rules=ComposeRules(budget=BudgetRules(limit_tokens=4000)),
        history=History([said("user", "Hello.", name="Pim", record="r1")]),
        event=event_message(line, name="Pim", record="r2"),
        books=(book,),
    )
    return inputs, compose_with_lore(inputs), names_of(inputs.books)


def a_case(expect=None):
    inputs, composition, _ = composed(FERRY)
    return KeptCase(
        npc=Named(name="Oren", ref="4"),
        conversation="room",
        context="conversation",
        scopes=(),
        reply="At dusk.\n  Or later: ask again.",
        expect=expect or expected_prompt(composition),
        inputs=kept_inputs(inputs),
    )


def test_case_is_read_back_equal_from_its_own_text():
    text = case_text(a_case())
    assert case_text(parse_case(text, where="a.yaml")) == text
    assert text.startswith("kept: 1\nnpc:\n  name: Oren\n")
    assert "reply: |-\n  At dusk.\n    Or later: ask again.\n" in text
    assert "r1" not in text


GOOD = case_text(a_case())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is not the file of a kept answer"),
        ("- 1\n", "is not the file of a kept answer"),
        ("kept: 1\nabout: &a x\nreply: *a\n", "alias '*a' is not allowed"),
        ("kept: 1\nreply: !!python/name:os.system ''\n", "line 2"),
        ("kept: 1\nreply: !!python/object/apply:os.system [ls]\n", "line 2"),
        ("kept: 1\nkept: 1\n", "'kept' occurs twice"),
        ("kept: 1\nreply: [\n", "a.yaml: is not YAML"),
        ("npc: {}\n", "line 1: has no format version"),
        ("kept: true\n", "line 1: has format version True"),
        ("kept: '1'\n", "line 1: has format version '1'"),
        (GOOD.replace("kept: 1", "kept: 2"), "reads version 1; keep the answer again"),
        (GOOD.replace("context: conversation", "context: 7"), "line 6: context: must be text"),
        (GOOD.replace("  name: Oren", "  nome: Oren"), "line 3: npc.name: is missing"),
        (GOOD.replace("role: user", "role: wizard", 1), "role"),
        (GOOD.partition("expect:")[0] + "expect: {}\n" + "inputs:" + GOOD.rpartition("inputs:")[2],
         "expect says nothing that must hold"),
        (f"{GOOD}shell: rm -rf /\n", "there is no such field"),
    ],
)  # fmt: skip
def test_bad_case_is_refused_with_file_and_line(text, told):
    with pytest.raises(FormatError) as caught:
        parse_case(text, where="a.yaml")
    assert str(caught.value).startswith("a.yaml: ")
    assert told in str(caught.value)


def test_kept_answer_reports_no_change_when_the_prompt_is_the_same():
    _, composition, names = composed(FERRY)
    assert judge(expected_prompt(composition), composition, names=names) is None


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (
            {"entries": (FERRY, FOG), "line": "Is there fog at the ferry?"},
            ["entered lore:harbour#1 (fog), +", "+ Fog hides the quay."],
        ),
        ({"entries": ()}, ["left lore:harbour#0, -", "- The ferry crosses twice a day."]),
        (
            {"entries": (FERRY,), "mood": "Calm. It rains."},
            ["changed component:mood, +", "+ It rains."],
        ),
    ],
)
def test_change_says_what_entered_left_and_changed(changed, told):
    _, before, _ = composed(FERRY)
    _, now, names = composed(*changed.pop("entries"), **changed)
    change = judge(expected_prompt(before), now, names=names)
    lines = [line.strip() for line in change_lines(change)]
    for wanted in told:
        assert any(line.startswith(wanted) for line in lines), lines
    assert lines[0].startswith(f"{before.prompt.tokens} -> {now.prompt.tokens} tokens (")


@pytest.mark.parametrize(
    ("expect", "told"),
    [
        ({"active": ("the ferry",)}, ""),
        ({"active": ("lore:harbour#0", "harbour#0")}, ""),
        ({"active": ("fog",)}, "'fog' must be active and is not: no key in the newest 4 messages"),
        ({"active": ("bells",)}, "'bells' must be active and is not: no entry is called so"),
        ({"in_order": ("Calm.", "Hello.", "ferry run")}, ""),
        ({"in_order": ("Hello.", "Calm.")}, "the text 'Calm.' is before"),
        ({"in_order": ("bells",)}, "the text 'bells' is nowhere in the prompt"),
        ({"at_most_tokens": 4000}, ""),
        ({"at_most_tokens": 5}, "5 are allowed"),
        ({"cached_share": 0.0}, ""),
        ({"cached_share": 1.0}, "at least 1.00 must be"),
    ],
)
def test_condition_of_a_case_is_checked_and_can_be_accepted(expect, told):
    _, composition, names = composed(FERRY, FOG)
    change = judge(Expectation(**expect), composition, names=names)
    assert told in (change.broken[0] if change else "")
    assert bool(change) == bool(told)
    now = accepted(Expectation(**expect), composition, names=names)
    assert judge(now, composition, names=names) is None
    assert now == Expectation(**expect) or told


def test_numbers_and_words_that_look_like_yaml_keep_their_type():
    text = case_text(a_case(Expectation(in_order=("1", "true", "2026-11-30", "- x", "a: b"))))
    read = parse_case(text, where="a.yaml")
    assert read.expect.in_order == ("1", "true", "2026-11-30", "- x", "a: b")
    assert read_yaml(text, kind="kept case", where="a.yaml")["kept"] == 1
