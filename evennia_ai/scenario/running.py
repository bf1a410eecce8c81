"""A scenario's turns, composed one after the other.

Nothing is carried from turn to turn but the cut of the history: lore of this version has no state.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from evennia_ai.cards.card import macro_values, opening_message
from evennia_ai.cards.components import card_components
from evennia_ai.compose import ComposeRules, Composition, Inputs, compose_with_lore
from evennia_ai.prompt.budget import BudgetRules
from evennia_ai.prompt.components import (
    PLUGGABLE_IDS,
    STATIC_COMPONENTS,
    PromptComponent,
    Trust,
)
from evennia_ai.prompt.dice import Dice
from evennia_ai.prompt.expansion import ComponentSet
from evennia_ai.prompt.history import History
from evennia_ai.prompt.messages import Message
from evennia_ai.prompt.notes import Notes
from evennia_ai.scenario.components import component_set
from evennia_ai.scenario.reading import Scenario, TurnText


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposedTurn:
    """One turn of a scenario: what went in and what came out."""

    scenario: Scenario
    inputs: Inputs
    made: Composition


def composed_turns(scenario: Scenario) -> Iterator[ComposedTurn]:
    """Every turn of the scenario, in order. BudgetError: what a turn requires does not fit."""
    components = ComponentSet(_components(scenario))
    notes = Notes(scenario.notes)
    values = macro_values(scenario.card, user=_user(scenario))
    greeting = _greeting(scenario, values)
    cut = 0
    for number, text in enumerate(scenario.turns):
        dice = _dice(scenario, number)
        history = History((*greeting, *text.history))
        inputs = Inputs(
            components=components,
            rules=_rules(scenario, dice),
            history=history,
            event=text.event,
            notes=notes,
            books=scenario.books,
            blocks=scenario.blocks,
            values=values,
            cut=cut if cut <= history.stop else 0,
        )
        made = compose_with_lore(inputs)
        cut = made.prompt.cut
        yield ComposedTurn(scenario=scenario, inputs=inputs, made=made)


def _rules(scenario: Scenario, dice: Dice) -> ComposeRules:
    settings = scenario.settings
    return ComposeRules(
        budget=BudgetRules(limit_tokens=settings.limit_tokens),
        layout=settings.layout,
        counter=settings.counter,
        lore=settings.lore,
        dice=dice,
    )


def _dice(scenario: Scenario, number: int) -> Dice:
    seed = scenario.settings.seed
    return Dice(turn=f"{seed}:{number}", conversation=str(seed))


def _components(scenario: Scenario) -> tuple[PromptComponent, ...]:
    settings = scenario.settings
    own: list[PromptComponent] = []
    if settings.system_prompt:
        own.append(STATIC_COMPONENTS[0].changed(content=settings.system_prompt, trust="author"))
    return component_set(scenario.components, settings=own, card=_plugged(scenario))


def _plugged(scenario: Scenario) -> Sequence[PromptComponent]:
    """The components of the card and the partner's description, at their own IDs."""
    settings = scenario.settings
    plugged: list[PromptComponent] = []
    if scenario.persona is not None and scenario.persona.description:
        text = scenario.persona.description
        plugged.append(_pluggable("persona_description", text, trust="imported"))
    if scenario.card is not None:
        plugged += card_components(
            scenario.card,
            trust=settings.card_trust,
            default_system_prompt=settings.card_system_prompt,
            default_post_history=settings.post_history_instructions,
        )
        return plugged
    for key, text in (
        ("card_system_prompt", settings.card_system_prompt),
        ("post_history_instructions", settings.post_history_instructions),
    ):
        if text:
            plugged.append(_pluggable(key, text, trust="author"))
    return plugged


def _pluggable(key: str, text: str, *, trust: Trust) -> PromptComponent:
    return PromptComponent(id=PLUGGABLE_IDS[key], key=key, content=text, trust=trust)


def _user(scenario: Scenario) -> str:
    """The partner's name, one for all turns.

    As the settings say, else the persona, else who spoke last in the first turn in which somebody
    has a name, else "".
    """
    persona = scenario.persona.name if scenario.persona else None
    named = scenario.settings.user or persona
    if named:
        return named
    return next((name for text in scenario.turns if (name := _speaker(text))), "")


def _speaker(text: TurnText) -> str:
    """Who spoke last, "" where nobody has a name."""
    if text.event is not None and text.event.name:
        return text.event.name
    speakers = (m.name for m in reversed(text.history) if m.role == "user" and m.name)
    return next(speakers, "")


def _greeting(scenario: Scenario, values: Mapping[str, str]) -> tuple[Message, ...]:
    """The character's greeting as the first message, where the scenario asks for it.

    It was said once, before the first turn: its macros are rolled for all turns alike.
    """
    settings, card = scenario.settings, scenario.card
    if card is None or not settings.greeting:
        return ()
    opening = opening_message(
        card,
        index=settings.greeting_index,
        group=settings.group,
        values=values,
        dice=_dice(scenario, 0),
    )
    return (opening,) if opening is not None else ()
