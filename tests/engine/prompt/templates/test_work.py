"""Work of templates is counted the same with and without caches, and limited for each turn."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal

import pytest

from evennia_ai.engine.compose import compose
from evennia_ai.engine.errors import TemplateError
from evennia_ai.engine.inputs import ComposeRules, Inputs
from evennia_ai.engine.prompt.budget import BudgetRules
from evennia_ai.engine.prompt.components import CONTAINED_PRIORITY, PromptComponent
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.expansion import ComponentSet
from evennia_ai.engine.prompt.templates.chunks import work_of
from evennia_ai.engine.prompt.templates.macros import MAX_MACROS, count_macros, split_macros
from evennia_ai.engine.prompt.templates.template import compile_template, expand_imported, fill_each
from evennia_ai.engine.prompt.templates.work import (
    COUNTED_A_UNIT,
    MAX_WORK,
    PLACED_WORK,
    Meter,
    OutOfWorkError,
)

DICE = Dice(turn="1", conversation="1")
VALUES = {"char": "Oren", "user": "Anna", "long": "x" * 1_000, "lastmessage": "y" * 1_500}

# Macros that need much more work than their few characters suggest. Tests repeat each of them.
DEAR = {
    "a die": "{{roll:1d6}}",
    "a hundred dice": "{{roll:100d6}}",
    "dice as SillyTavern writes them": "{{roll 20d20+3}}",
    "random": "{{random:a,b}}",
    "random of many": "{{random:" + "a," * 40 + "}}",
    "random of macros": "{{random::{{roll:6}}::{{roll:6}}::{{roll:6}}}}",
    "pick": "{{pick::a::b}}",
    "pick in random in pick": "{{pick::{{random::{{pick::a::b}}::c}}::d}}",
    "a counted variable": "{{incvar::a}}",
    "a counted global variable": "{{decglobalvar::a}}",
    "a variable that is set": "{{setvar::a::b}}",
    "a variable whose name is made": "{{setvar::{{char}}::{{user}}}}",
    "a variable that grows": "{{addvar::a::{{long}}}}",
    "a variable that doubles": "{{setvar::a::{{getvar::a}}{{getvar::a}}x}}",
    "a long variable that is read": "{{setvar::a::{{long}}}}" + "{{getvar::a}}" * 9,
    "a text turned round": "{{reverse:" + "abc" * 100 + "}}",
    "what was said last": "{{lastMessage}}",
    "a long value": "{{long}}",
    "trim": "\n{{trim}}\n",
    "remarks": "{{// a}}{{comment: b}}{{hidden_key: c}}",
    "names": "{{char}} and {{user}}, ",
    "names of version 1": "<USER> and <BOT>, ",
    "unknown names": "{{nobody}}",
    "macros that are none": "{{nobody: a}}",
    "new lines": "{{newline}}{{noop}}",
}


def a_meter(work: int = 10**9) -> Meter:
    return Meter(work)


@pytest.mark.parametrize("macro", DEAR.values(), ids=DEAR.keys())
def test_template_that_repeats_a_macro_stops_at_the_work_limit(macro: str) -> None:
    meter = a_meter(1_000)
    template = compile_template(macro * (MAX_MACROS // count_macros(macro)), trust="imported")
    with pytest.raises(OutOfWorkError, match="more work than is left for the texts of this turn"):
        template.render(VALUES, DICE, meter=meter)
    assert meter.ran_out
    assert 0 <= meter.left <= meter.limit


@pytest.mark.parametrize("name", [name for name in DEAR if "variable that" not in name])
def test_template_work_is_proportional_to_the_number_of_macros(name: str) -> None:
    costs = []
    for times in (1, 10, 100):
        meter = a_meter()
        compile_template(DEAR[name] * times, trust="imported").render(VALUES, DICE, meter=meter)
        costs.append(meter.spent)
    assert costs[1] <= 10 * costs[0] + 10
    assert costs[2] <= 10 * costs[1] + 10
    assert costs[2] >= 5 * costs[1]


def test_many_dice_macros_need_more_work_than_one_dice_macro() -> None:
    one, many = (
        work_of(split_macros(f"{{{{roll:{n}d6}}}}", imported=False).chunks) for n in (1, 100)
    )
    assert many > 5 * one


def test_work_of_a_template_is_not_charged_when_refused() -> None:
    meter = Meter(100)
    meter.pay(60)
    with pytest.raises(OutOfWorkError):
        meter.pay(41)
    assert (meter.left, meter.spent, meter.ran_out) == (40, 60, True)
    meter.pay(40)


@pytest.mark.parametrize(
    ("work", "at_least", "left"),
    [(40, 0, 60), (101, 101, 100), (101, 100, 0), (500, 1, 0)],
    ids=["paid", "macros alone too much", "stopped in the middle", "stopped soon"],
)
def test_cached_template_is_charged_as_much_work_as_a_new_one(
    work: int, at_least: int, left: int
) -> None:
    meter = Meter(100)
    if work > 100:
        with pytest.raises(OutOfWorkError):
            meter.pay_whole(work, at_least=at_least)
    else:
        meter.pay_whole(work, at_least=at_least)
    assert meter.left == left


def test_template_rendered_outside_a_turn_has_a_separate_work_limit() -> None:
    text = "{{roll:100d6}}" * 500
    assert compile_template(text, trust="imported").render(VALUES, DICE) == text
    assert expand_imported(text, values={}, dice=DICE) == text
    with pytest.raises(OutOfWorkError):
        compile_template(text, trust="builder").render(VALUES, DICE)


def test_texts_for_key_search_stay_as_written_beyond_their_work_limit() -> None:
    texts = ["{{char}}", "{{roll:100d6}}" * 400, "{{user}}"]
    templates = dict(enumerate(compile_template(text, trust="imported") for text in texts))
    made = fill_each(templates, VALUES, DICE, Meter(1_000))
    assert made == {0: "Oren", 1: texts[1], 2: "Anna"}


def test_template_logic_is_charged_for_macros_syntax_and_values() -> None:
    def spent(text: str) -> int:
        meter = a_meter()
        compile_template(text, trust="builder").render(VALUES, DICE, meter=meter)
        return meter.spent

    plain = spent("{% if user %}x{% endif %}")
    dice = work_of(split_macros("{{roll:6}}", imported=False).chunks)
    assert spent("{% if user %}x{% endif %}" + "{{roll:6}}" * 9) > plain + 9 * dice
    assert spent("{% if user %}x{% endif %}" * 9) > plain + 9 * 5
    assert spent("{% if long | upper | lower == 'x' %}x{% endif %}") > plain + 3 * 1_000 // 7
    text = compile_template("\n{% if user %}{{setvar::a::{{long}}}}{% endif %}", trust="builder")
    with pytest.raises(TemplateError, match="line 2: its macros and logic need more work"):
        text.render(VALUES, DICE, meter=a_meter(text.work + 1))


# Tests of the work of a whole turn


def the_inputs(components: Iterable[PromptComponent], turn: str = "1", **fields: Any) -> Inputs:
    rules = ComposeRules(
        budget=BudgetRules(limit_tokens=10**6), dice=Dice(turn=turn, conversation="1")
    )
    values = {"char": "Oren", "user": "Anna", "speaker": "Anna"}
    given = {"rules": rules, "values": values, **fields}
    return Inputs(components=ComponentSet(components, context="conversation"), **given)


def several(
    text: str, count: int, trust: Literal["imported", "builder"] = "imported", **fields: Any
) -> list[PromptComponent]:
    return [
        PromptComponent(
            id=1201 + at,
            key=f"c{at}",
            name=f"c{at}",
            role="system",
            content=text,
            trust=trust,
            **fields,
        )
        for at in range(count)
    ]


class _CountingDice(Dice):
    """Dice that count how often they are thrown."""

    thrown = 0

    def roll(self, *what: object) -> float:
        _CountingDice.thrown += 1
        return super().roll(*what)

    def rolls(self, count: int, *what: object) -> list[float]:
        _CountingDice.thrown += count
        return super().rolls(count, *what)


@pytest.mark.parametrize("trust", ["imported", "builder"])
@pytest.mark.parametrize("macro", ["{{roll:1d6}}", "{{roll:100d6}}", "{{random::a::b}}"])
def test_all_texts_of_a_turn_share_one_work_limit_for_random_macros(
    macro: str, trust: Literal["imported", "builder"]
) -> None:
    per_text = min(MAX_MACROS, 40_000 // len(macro))
    inputs = the_inputs(several(macro * per_text, 40, trust))
    dice = _CountingDice(turn="1", conversation="1")
    inputs = replace(inputs, rules=replace(inputs.rules, dice=dice))
    _CountingDice.thrown = 0
    compose(inputs)
    assert _CountingDice.thrown <= 2 * MAX_WORK // 7


def test_text_that_needs_more_work_than_is_left_is_left_out_with_a_reason() -> None:
    dear = several("{{roll:1d6}}" * 300, 40)
    cheap = PromptComponent(
        id=1300, key="cheap", name="cheap", role="system", content="I am {{char}}."
    )
    prompt = compose(the_inputs([*dear, cheap]))
    reasons = {v.item: v.reason for v in prompt.verdicts if v.item.startswith("component:")}
    out = [key for key, reason in reasons.items() if "more work than is left" in reason]
    assert 0 < len(out) < 40
    assert out == sorted(out, key=lambda key: int(key.rpartition("c")[2]))
    assert "component:cheap" in {verdict.item for verdict in prompt.verdicts if verdict.kept}


def test_contained_texts_leave_enough_work_for_the_games_texts() -> None:
    of_a_card = several("{{incvar::a}}" * 250, 60)
    stands = {"role": "user", "placement": "history", "priority": CONTAINED_PRIORITY}
    hostile = [one.changed(**stands) for one in of_a_card]
    assert all(one.is_contained for one in hostile)
    own = several("{{char}} " * 300, 20, "builder")
    own = [one.changed(id=1400 + at, key=f"own{at}") for at, one in enumerate(own)]
    prompt = compose(the_inputs([*hostile, *own]))
    kept = {verdict.item for verdict in prompt.verdicts if verdict.kept}
    assert {f"component:own{at}" for at in range(20)} <= kept
    assert any("more work than is left" in verdict.reason for verdict in prompt.verdicts)


def test_prompt_near_the_work_limit_does_not_depend_on_caches() -> None:
    parts = several("{{roll:1d6}} of {{char}}" * 100, 20) + [
        one.changed(id=2000 + at, key=f"late{at}")
        for at, one in enumerate(several("{{user}} {{random::a::b}}" * 40, 20))
    ]
    kept = the_inputs(parts)
    for turn in ("1", "2", "1"):
        fresh = the_inputs(parts, turn)
        now = compose(replace(kept, rules=fresh.rules))
        assert now.sha256 == compose(fresh).sha256
        assert now.verdicts == compose(fresh).verdicts


def test_expanded_text_has_a_limited_length() -> None:
    texts = several("{{lastMessage}}" * 30, 100)
    prompt = compose(the_inputs(texts, values={**VALUES, "speaker": "Anna"}))
    made = sum(len(message.content) for message in prompt.messages)
    assert made <= PLACED_WORK * COUNTED_A_UNIT
