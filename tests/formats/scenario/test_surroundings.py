"""Facts and texts, other than the conversation, that lore entries test or scan."""

from typing import Any

import pytest

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.formats.cards.card import read_card
from evennia_ai.formats.cards.components import card_components
from evennia_ai.formats.scenario import read_scenario
from evennia_ai.formats.scenario.running import ScannedSources, facts_of
from tests.formats.scenario.builders import a_card

DICE = Dice(turn="0", conversation="0")


def sources_of(**fields: Any) -> dict[str, str]:
    card = read_card(a_card(**fields))
    made = ScannedSources(card_components(card), card)
    return dict(made.expanded({"user": "Anna", "char": "Tilda"}, DICE))


def test_texts_of_a_card_can_be_scanned_with_their_macros_expanded() -> None:
    note = {"prompt": "{{char}} limps.", "depth": 4, "role": "system"}
    assert sources_of(
        description="Knows {{user}}.",
        personality="Calm.",
        scenario="A quay.",
        creator_notes="Slow burn.",
        extensions={"depth_prompt": note},
    ) == {
        "char_description": "Knows Anna.",
        "char_personality": "Calm.",
        "scenario": "A quay.",
        "creator_notes": "Slow burn.",
        "char_depth_prompt": "Tilda limps.",
    }


def test_empty_card_field_is_not_scanned_for_lore_keys() -> None:
    assert sources_of(description="") == {}
    assert ScannedSources((), None).expanded({}, DICE) == {}


def test_cards_name_and_tags_are_facts() -> None:
    card = read_card(a_card(tags=["harbour", "old"]))
    assert facts_of(card, given={"weather": "rain"}) == {
        "character.name": "Tilda",
        "character.tags": ("harbour", "old"),
        "generation.kind": "normal",
        "weather": "rain",
    }


def test_fact_of_the_scenario_overrides_the_cards() -> None:
    card = read_card(a_card())
    assert facts_of(card, given={"character.name": "The lamplighter"})["character.name"] == (
        "The lamplighter"
    )
    assert facts_of(None, given={}) == {"generation.kind": "normal"}


def test_facts_of_a_scenario_keep_their_types() -> None:
    facts = {"weather": "rain", "hour": 23, "tide": 1.5, "night": True, "room.zones": ["quay", ""]}
    read = read_scenario({"settings": {"facts": facts}}).settings.facts
    assert read == {**facts, "room.zones": ("quay", "")}


@pytest.mark.parametrize(
    ("facts", "problem"),
    [
        (["rain"], r"settings\.facts: \['rain'\] is not allowed: it must be a mapping of names"),
        ({"hour": None}, r"settings\.facts\.hour: None is not allowed: it must be text, a number"),
        ({"tags": ["a", 1]}, r"settings\.facts\.tags: \['a', 1\] is not allowed: it must be text"),
        ({"sky": {"is": "grey"}}, r"settings\.facts\.sky: .* or a list of texts"),
    ],
)
def test_scenario_fact_of_an_invalid_type_is_refused(facts: object, problem: str) -> None:
    with pytest.raises(FormatError, match=problem):
        read_scenario({"settings": {"facts": facts}})
