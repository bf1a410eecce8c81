"""A scenario's turns, composed one after the other.

Carried from turn to turn: the cut of the history, where anchored notes stand, the texts that stay
in the history, and what lore remembers.

Beside the conversation lore may ask about facts (`character.tags`) and look for its keys in texts
of the card and the persona; neither is part of what was said.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from evennia_ai.engine.compose import Composition, compose_with_lore
from evennia_ai.engine.inputs import ComposeRules, Inputs
from evennia_ai.engine.lorebook.activation.timers import NO_STATE, Clock, LoreState
from evennia_ai.engine.lorebook.conditions import (
    CHARACTER_NAME,
    CHARACTER_TAGS,
    GENERATION_KIND,
    NORMAL,
    Fact,
    Facts,
)
from evennia_ai.engine.lorebook.entry import SourceName
from evennia_ai.engine.prompt.assembly.formats import apply_formats
from evennia_ai.engine.prompt.budget import BudgetRules
from evennia_ai.engine.prompt.cache_account import Sent
from evennia_ai.engine.prompt.components import (
    ALL_GRANTS,
    PLUGGABLE_IDS,
    STATIC_COMPONENTS,
    PromptComponent,
)
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.expansion import ComponentSet
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import Message, Trust
from evennia_ai.engine.prompt.notes import Notes
from evennia_ai.engine.prompt.persistent_texts import texts_left_in_history
from evennia_ai.engine.prompt.placement import Anchors
from evennia_ai.engine.prompt.templates.clock import clock_values
from evennia_ai.engine.prompt.templates.template import Template, compile_template, fill_each
from evennia_ai.engine.prompt.templates.work import SCANNED_WORK, Meter
from evennia_ai.formats.cards.card import Card, macro_values, opening_message
from evennia_ai.formats.cards.components import card_components
from evennia_ai.formats.presets.mapping import keys_left_out, place_texts, replaceable_texts
from evennia_ai.formats.scenario.parts import component_set
from evennia_ai.formats.scenario.reading import Scenario, TurnText

# The components of the card and the persona that hold a text for scanning, by key.
_HOLDERS: Final[Mapping[str, SourceName]] = MappingProxyType(
    {
        "persona_description": "persona",
        "char_description": "char_description",
        "char_personality": "char_personality",
        "card_depth_prompt": "char_depth_prompt",
        "scenario": "scenario",
    }
)


def facts_of(card: Card | None, *, given: Facts) -> Facts:
    """The facts of a scenario: who the character is, and what its author says, which wins."""
    known: dict[str, Fact] = {GENERATION_KIND: NORMAL}
    if card is not None:
        known |= {CHARACTER_NAME: card.name, CHARACTER_TAGS: card.tags}
    return {**known, **given}


class ScannedSources:
    """Texts for scanning, compiled once: `plugged` are the components of the card and persona."""

    def __init__(self, plugged: Iterable[PromptComponent], card: Card | None) -> None:
        texts: dict[SourceName, str] = {
            _HOLDERS[component.key]: component.content
            for component in plugged
            if component.key in _HOLDERS
        }
        if card is not None and card.creator_notes:
            texts["creator_notes"] = card.creator_notes
        self._templates: dict[SourceName, Template] = {
            name: compile_template(text, trust="imported") for name, text in texts.items()
        }

    def expanded(self, values: Mapping[str, str], dice: Dice) -> dict[SourceName, str]:
        """Each text as it reads in this turn, its macros expanded."""
        return fill_each(self._templates, values, dice, Meter(SCANNED_WORK))


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposedTurn:
    """One turn of a scenario: what went in, what came out, and what was sent in the turn before."""

    inputs: Inputs
    made: Composition
    before: Sent | None = None
    notices: tuple[str, ...] = ()
    """What the author of the scenario should know of its files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Carried:
    """What one turn leaves to the next.

    `staying` are the texts that stay, each with the number of messages that were said before it.
    """

    cut: int = 0
    anchors: Anchors = field(default_factory=dict)
    staying: tuple[tuple[int, Message], ...] = ()
    lore: LoreState = NO_STATE
    sent: Sent | None = None


def composed_turns(scenario: Scenario) -> Iterator[ComposedTurn]:
    """Every turn of the scenario, in order. BudgetError: what a turn requires does not fit."""
    stage = _Stage(scenario)
    carried = _Carried()
    for number, text in enumerate(scenario.turns):
        inputs = stage.inputs(text, number=number, carried=carried)
        made = compose_with_lore(inputs)
        yield ComposedTurn(inputs=inputs, made=made, before=carried.sent, notices=scenario.notices)
        carried = _left(made, carried, said=stage.said_before(text))


def _left(made: Composition, carried: _Carried, *, said: int) -> _Carried:
    """What the next turn begins with, after this one was asked with so many messages `said`."""
    prompt = made.prompt
    kept = (one for one in carried.staying if one[0] <= said)
    fresh = ((said, message) for message in texts_left_in_history(prompt.messages))
    return _Carried(
        cut=prompt.cut,
        anchors=prompt.anchors,
        staying=(*kept, *fresh),
        lore=made.lore.after,
        sent=prompt.sent,
    )


def _with_staying(
    said: Sequence[Message], staying: Sequence[tuple[int, Message]]
) -> Iterator[Message]:
    """What was said, and in it what stays; a history that became shorter lost what came later."""
    at = 0
    for place, message in staying:
        if place <= len(said):
            yield from said[at:place]
            yield message
            at = place
    yield from said[at:]


class _Stage:
    """What all turns of a scenario share, worked out once."""

    def __init__(self, scenario: Scenario) -> None:
        plugged = _plugged(scenario)
        self.scenario = scenario
        components = apply_formats(_components(scenario, plugged), scenario.assembly)
        self.components = ComponentSet(components)
        self.notes = Notes(scenario.notes)
        self.values = macro_values(scenario.card, user=_user(scenario))
        self.clocked = {**self.values, **clock_values(scenario.settings.moment)}
        self.greeting = _greeting(scenario, self.clocked)
        self.sources = ScannedSources(plugged, scenario.card)
        self.facts = facts_of(scenario.card, given=scenario.settings.facts)

    def inputs(self, text: TurnText, *, number: int, carried: _Carried) -> Inputs:
        """What the prompt of the turn `number`, from 0, depends on."""
        scenario = self.scenario
        dice = _dice(scenario, number)
        said = (*self.greeting, *text.history)
        history = History(_with_staying(said, carried.staying))
        is_shorter = carried.cut > history.stop
        return Inputs(
            components=self.components,
            rules=_rules(scenario, dice),
            history=history,
            event=text.event,
            notes=self.notes,
            books=scenario.books,
            blocks=text.blocks,
            values=self.values,
            cut=0 if is_shorter else carried.cut,
            anchors={} if is_shorter else carried.anchors,
            lore_state=carried.lore,
            now=scenario.settings.moment,
            clock=_clock(number, history, text.event),
            facts=self.facts,
            sources=self.sources.expanded(self.clocked, dice),
        )

    def said_before(self, text: TurnText) -> int:
        """How many messages stand before the event of this turn."""
        return len(self.greeting) + len(text.history)


def _clock(number: int, history: History, event: Message | None) -> Clock:
    """The turn's own number from 1, and what was heard up to it; no time passes in a scenario."""
    heard = history.counted(history.earlier) + (event is not None)
    return Clock(turns=number + 1, messages=heard)


def _rules(scenario: Scenario, dice: Dice) -> ComposeRules:
    settings = scenario.settings
    return ComposeRules(
        budget=BudgetRules(limit_tokens=settings.limit_tokens),
        layout=settings.layout,
        blocks=settings.blocks,
        counter=settings.counter,
        assembly=scenario.assembly,
        lore=settings.lore,
        dice=dice,
    )


def _dice(scenario: Scenario, number: int) -> Dice:
    seed = scenario.settings.seed
    return Dice(turn=f"{seed}:{number}", conversation=str(seed))


def _components(
    scenario: Scenario, plugged: Sequence[PromptComponent]
) -> tuple[PromptComponent, ...]:
    settings = scenario.settings
    own: list[PromptComponent] = []
    if settings.system_prompt:
        own.append(STATIC_COMPONENTS[0].changed(content=settings.system_prompt, trust="author"))
    return component_set(scenario.components, settings=own, card=plugged)


def _plugged(scenario: Scenario) -> Sequence[PromptComponent]:
    """The components of the card, the partner's description and the preset.

    They have their own IDs, or those of the preset.
    """
    preset = scenario.preset
    if preset is None:
        return _texts(scenario, {})
    texts = _texts(scenario, replaceable_texts(preset, grants=ALL_GRANTS))
    off = keys_left_out(preset, "normal")
    return [
        one.changed(enabled=False) if one.key in off else one
        for one in place_texts(preset, texts, grants=ALL_GRANTS)
    ]


def _texts(scenario: Scenario, defaults: Mapping[str, str]) -> Sequence[PromptComponent]:
    """The components of the card and the partner's description, at their own IDs.

    `defaults` are those of a preset for texts of the card that the settings do not give.
    """
    settings = scenario.settings
    system_prompt = settings.card_system_prompt or defaults.get("card_system_prompt", "")
    post_history = settings.post_history_instructions or defaults.get(
        "post_history_instructions", ""
    )
    plugged: list[PromptComponent] = []
    if scenario.persona is not None and scenario.persona.description:
        text = scenario.persona.description
        plugged.append(_pluggable("persona_description", text, trust="imported"))
    if scenario.card is not None:
        plugged += card_components(
            scenario.card,
            grants=settings.grants,
            default_system_prompt=system_prompt,
            default_post_history=post_history,
            post_history_depth=settings.post_history_depth,
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
