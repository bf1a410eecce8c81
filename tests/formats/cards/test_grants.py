"""The effect of each grant on the texts of a card."""

import pytest

from evennia_ai.engine.compose import compose
from evennia_ai.engine.inputs import ComposeRules, Inputs
from evennia_ai.engine.prompt.budget import BudgetRules
from evennia_ai.engine.prompt.components import (
    ALL_GRANTS,
    ALLOWS,
    NO_GRANTS,
    Grants,
    PromptComponent,
    in_order,
)
from evennia_ai.engine.prompt.expansion import ComponentSet
from evennia_ai.engine.prompt.registry import with_statics
from evennia_ai.formats.cards.components import FIELDS, card_components
from tests.formats.cards.builders import a_card, shown

CARD = a_card(
    personality="Calm.",
    scenario="The lamp room.",
    mes_example="<START>\nMind the stair.",
    system_prompt="You are Marta.",
    post_history_instructions="Stay brief.",
    extensions={"depth_prompt": {"prompt": "The wind rises.", "depth": 2, "role": "system"}},
)


def places_of_texts(grants: Grants) -> dict[str, str]:
    """Return the place of each text of a card in the prompt."""
    return {
        component.key: f"{component.role} depth {component.injection_depth}"
        if component.placement == "history"
        else f"{component.role} at {component.id}"
        for component in card_components(CARD, grants=grants)
    }


TOP = "user depth 1000000000"
CONTAINED = {
    **dict.fromkeys(FIELDS, TOP),
    "card_depth_prompt": "user depth 2",
    "post_history_instructions": "user depth 4",
}


def test_all_texts_are_user_messages_in_the_history_without_grants() -> None:
    assert places_of_texts(NO_GRANTS) == CONTAINED


@pytest.mark.parametrize(
    ("grant", "gives"),
    [
        (
            "fields",
            {
                "char_description": "system at 1020",
                "char_personality": "system at 1030",
                "scenario": "system at 1040",
                "dialogue_examples": "system at 1060",
            },
        ),
        ("system_prompt", {"card_system_prompt": "system at 10"}),
        ("after_history", {"post_history_instructions": "system at 5010"}),
        ("roles", {"card_depth_prompt": "system depth 2"}),
        ("positions", {}),
        ("lore_budget", {}),
        ("regex", {}),
    ],
)
def test_each_grant_changes_only_the_places_of_the_texts_that_it_allows(grant, gives) -> None:
    assert places_of_texts(frozenset({grant})) == {**CONTAINED, **gives}


def test_no_grant_changes_the_games_own_rules() -> None:
    made = card_components(CARD, grants=ALL_GRANTS)
    assert all(component.id != 0 for component in made)
    assert all(component.key != "system_prompt" for component in made)


def test_grants_are_listed_in_a_fixed_order_with_their_effects() -> None:
    assert in_order(frozenset({"regex", "fields"})) == ("fields", "regex")
    assert in_order(ALL_GRANTS) == tuple(ALLOWS)


def test_card_without_grants_never_displaces_the_games_texts() -> None:
    own = PromptComponent(id=9000, key="safety", content="The game's own reminder.")
    cards = card_components(a_card(description="lamp " * 100), grants=NO_GRANTS)
    prompt = compose(
        Inputs(
            components=ComponentSet(with_statics((own, *cards))),
            rules=ComposeRules(budget=BudgetRules(limit_tokens=132), layout="classic"),
        )
    )
    assert shown(prompt) == ["system: The game's own reminder."]
