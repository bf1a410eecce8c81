"""Expansion of components: what is cached from turn to turn, and what is expanded again."""

from typing import Any

import pytest

from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.expansion import ComponentSet
from evennia_ai.engine.prompt.filling import Filling
from evennia_ai.engine.prompt.fragments import Fragment
from evennia_ai.engine.prompt.tokens import TokenCounter, ratio_counter
from tests.engine.prompt.builders import DICE, a_component

ASKED: dict[str, Any] = {"dice": DICE, "counter": ratio_counter(1), "layout": "cache"}


def expanded(components: ComponentSet, values: dict[str, str], **changed: Any) -> list[Fragment]:
    made = components.compiled.expand(Filling(values=values, **{**ASKED, **changed})).made
    return [fragment for fragment in made if isinstance(fragment, Fragment)]


def test_only_texts_that_name_a_changed_value_are_rendered_again() -> None:
    components = ComponentSet(
        [
            a_component("The tide is {{tide}}.", id=1201),
            a_component("{{char}} waits.", id=1202),
        ]
    )
    first = expanded(components, {"tide": "low", "char": "Oren"})
    second = expanded(components, {"tide": "high", "char": "Oren"})
    assert [fragment.message.content for fragment in second] == ["The tide is high.", "Oren waits."]
    assert second[1] is first[1]


def test_template_value_counts_as_changed_when_it_appears_or_disappears() -> None:
    components = ComponentSet([a_component("{{tide}}")])
    assert expanded(components, {})[0].message.content == "{{tide}}"
    assert expanded(components, {"tide": "low"})[0].message.content == "low"
    assert expanded(components, {})[0].message.content == "{{tide}}"


def test_tokens_of_a_component_are_counted_again_with_another_counter() -> None:
    components = ComponentSet([a_component("x" * 12)])
    one = expanded(components, {})[0]
    other = expanded(components, {}, counter=ratio_counter(3))[0]
    assert (one.tokens, other.tokens) == (4 + 12, 4 + 4)


def test_component_moves_when_the_layout_changes() -> None:
    components = ComponentSet([a_component("Fog.", volatile=True)])
    assert expanded(components, {})[0].claim.shared is not None
    assert expanded(components, {}, layout="classic")[0].claim.shared is None


def test_only_texts_with_random_macros_are_rendered_again_when_the_dice_differ() -> None:
    components = ComponentSet(
        [a_component("{{roll:1000000}}", id=1201), a_component("Calm.", id=1202)]
    )
    first = expanded(components, {})
    again = expanded(components, {}, dice=Dice(turn="1:1", conversation="1"))
    assert first[0].message.content != again[0].message.content
    assert again[1] is first[1]


@pytest.mark.parametrize("turns", [2, 5])
def test_tokens_of_a_component_are_counted_once(turns: int) -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text)

    counter = TokenCounter("telling", "1", count)
    counted.clear()
    components = ComponentSet([a_component("Calm.")])
    for _ in range(turns):
        expanded(components, {"user": "Anna"}, counter=counter)
    assert counted == ["Calm."]


@pytest.mark.req("S2-15")
def test_component_text_that_several_npcs_share_is_counted_and_compiled_once() -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text)

    counter = TokenCounter("counted", "1", count)
    counted.clear()  # creating a counter calls `count` for a separator
    sets = [ComponentSet([a_component("The tide is low.")]) for _ in range(3)]
    made = [expanded(components, {}, counter=counter)[0] for components in sets]

    assert counted == ["The tide is low."]
    assert [fragment.tokens for fragment in made] == [16 + counter.per_message] * 3
    templates = {id(one.compiled.members[0].template) for one in sets}
    assert len(templates) == 1
