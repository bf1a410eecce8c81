"""Compose the turns of a scenario one after the other.

Each turn passes state to the next: the index of the oldest message in the prompt, the places of
anchored notes, texts that stay in the history, and the timers of lore entries.

Lore entries may also test facts (`character.tags`), and their keys may be searched in texts of the
card and the persona.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from evennia_ai.engine.compose import Composition, compose_with_lore
from evennia_ai.engine.inputs import ComposeRules, Inputs
from evennia_ai.engine.lorebook.activation.timers import NO_STATE, Clock, LoreState
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
from evennia_ai.engine.prompt.conditions import (
    CHARACTER_NAME,
    CHARACTER_TAGS,
    GENERATION_KIND,
    NORMAL,
    Fact,
    Facts,
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
from evennia_ai.engine.regex_scripts import RegexScript
from evennia_ai.formats.cards.card import Card, macro_values, opening_message
from evennia_ai.formats.cards.components import card_components
from evennia_ai.formats.presets.mapping import keys_left_out, place_texts, replaceable_texts
from evennia_ai.formats.regex_scripts import preset_scripts, running_scripts, scripts_in
from evennia_ai.formats.scenario.parts import component_set
from evennia_ai.formats.scenario.reading import Scenario, TurnText

# Maps keys of components to the name of their text, for texts that are scanned for keys of lore
# entries.
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
    """Return the facts of a scenario: `given`, and those of the card that are not in it."""
    known: dict[str, Fact] = {GENERATION_KIND: NORMAL}
    if card is not None:
        known |= {CHARACTER_NAME: card.name, CHARACTER_TAGS: card.tags}
    return {**known, **given}


class ScannedSources:
    """The texts of card and persona that are scanned for keys of lore entries, compiled once."""

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
        """Return the scanned texts by name, with their macros expanded for one turn."""
        return fill_each(self._templates, values, dice, Meter(SCANNED_WORK))


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposedTurn:
    """One turn of a scenario with its prompt."""

    inputs: Inputs
    made: Composition
    before: Sent | None = None
    """The prompt that was sent in the previous turn."""
    notices: tuple[str, ...] = ()
    """Notices on the files of the scenario, for its author."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _TurnState:
    """The state that one turn of a scenario passes to the next."""

    cut: int = 0
    anchors: Anchors = field(default_factory=dict)
    staying: tuple[tuple[int, Message], ...] = ()
    """Texts that stay in the history, each with the number of messages that precede it."""
    lore: LoreState = NO_STATE
    sent: Sent | None = None


def composed_turns(scenario: Scenario) -> Iterator[ComposedTurn]:
    """Compose every turn of a scenario, in order.

    Raises:
        BudgetError: the required texts of a turn do not fit.
    """
    shared = _SharedInputs(scenario)
    state = _TurnState()
    for number, text in enumerate(scenario.turns):
        inputs = shared.turn_inputs(text, number=number, state=state)
        made = compose_with_lore(inputs)
        yield ComposedTurn(inputs=inputs, made=made, before=state.sent, notices=scenario.notices)
        prompt = made.prompt
        said = len(shared.greeting) + len(text.history)
        kept = (one for one in state.staying if one[0] <= said)
        fresh = ((said, message) for message in texts_left_in_history(prompt.messages))
        state = _TurnState(
            cut=prompt.cut,
            anchors=prompt.anchors,
            staying=(*kept, *fresh),
            lore=made.lore.after,
            sent=prompt.sent,
        )


def _with_staying(
    said: Sequence[Message], staying: Sequence[tuple[int, Message]]
) -> Iterator[Message]:
    """Yield the messages of a history, with texts that stay in it inserted.

    Texts whose place is after the end of the history are left out.
    """
    at = 0
    for place, message in staying:
        if place <= len(said):
            yield from said[at:place]
            yield message
            at = place
    yield from said[at:]


class _SharedInputs:
    """The inputs that all turns of a scenario share; they are computed only once."""

    def __init__(self, scenario: Scenario) -> None:
        settings = scenario.settings
        plugged = _pluggable_components(scenario)
        own: list[PromptComponent] = []
        if settings.system_prompt:
            own.append(STATIC_COMPONENTS[0].changed(content=settings.system_prompt, trust="author"))
        self.scenario = scenario
        components = apply_formats(
            component_set(scenario.components, settings=own, card=plugged), scenario.assembly
        )
        self.components = ComponentSet(components)
        self.notes = Notes(scenario.notes)
        self.values = macro_values(scenario.card, user=_user_name(scenario))
        self.clocked = {**self.values, **clock_values(settings.moment)}
        self.greeting = _greeting(scenario, self.clocked)
        self.sources = ScannedSources(plugged, scenario.card)
        self.facts = facts_of(scenario.card, given=settings.facts)
        self.scripts = _scripts(scenario)

    def turn_inputs(self, text: TurnText, *, number: int, state: _TurnState) -> Inputs:
        """Return the inputs for the prompt of one turn; the first turn has the number 0."""
        scenario, settings = self.scenario, self.scenario.settings
        dice = _dice(scenario, number)
        said = (*self.greeting, *text.history)
        history = History(_with_staying(said, state.staying))
        is_shorter = state.cut > history.stop  # then the previous cut is meaningless
        heard = history.counted(history.earlier) + (text.event is not None)
        return Inputs(
            components=self.components,
            rules=ComposeRules(
                budget=BudgetRules(limit_tokens=settings.limit_tokens),
                layout=settings.layout,
                blocks=settings.blocks,
                counter=settings.counter,
                assembly=scenario.assembly,
                lore=settings.lore,
                dice=dice,
            ),
            history=history,
            event=text.event,
            notes=self.notes,
            books=scenario.books,
            blocks=text.blocks,
            values=self.values,
            cut=0 if is_shorter else state.cut,
            anchors={} if is_shorter else state.anchors,
            lore_state=state.lore,
            now=settings.moment,
            # no time passes between the turns of a scenario, so its clock counts turns and messages
            clock=Clock(turns=number + 1, messages=heard),
            facts=self.facts,
            sources=self.sources.expanded(self.clocked, dice),
            scripts=self.scripts,
        )


def _scripts(scenario: Scenario) -> tuple[RegexScript, ...]:
    """Return the regex scripts of a scenario's preset, and of its card if the grant allows them."""
    preset, card = scenario.preset, scenario.card
    made: list[RegexScript] = []
    if preset is not None:
        made += running_scripts(preset_scripts(preset.source), "preset")
    if card is not None and "regex" in scenario.settings.grants:
        made += running_scripts(scripts_in(card.extensions), "card")
    return tuple(made)


def _dice(scenario: Scenario, number: int) -> Dice:
    seed = scenario.settings.seed
    return Dice(turn=f"{seed}:{number}", conversation=str(seed))


def _pluggable_components(scenario: Scenario) -> Sequence[PromptComponent]:
    """Return the components of a scenario's card, persona and preset, in their places."""
    preset = scenario.preset
    if preset is None:
        return _card_and_persona(scenario, {})
    texts = _card_and_persona(scenario, replaceable_texts(preset, grants=ALL_GRANTS))
    off = keys_left_out(preset, str(scenario.settings.facts.get(GENERATION_KIND, NORMAL)))
    return [
        one.changed(enabled=False) if one.key in off else one
        for one in place_texts(preset, texts, grants=ALL_GRANTS)
    ]


def _card_and_persona(scenario: Scenario, defaults: Mapping[str, str]) -> Sequence[PromptComponent]:
    """Return the components of the card and the persona, with their own IDs.

    Args:
        defaults: texts of the preset by component key, used if the settings have no text.
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


def _user_name(scenario: Scenario) -> str:
    """Return the name of the user in all turns of a scenario; "" if nobody has a name.

    The name in the settings comes first, then the persona's. Without both, the first turn in which
    somebody has a name decides: the speaker of its event, or else of its newest user message.
    """
    persona = scenario.persona.name if scenario.persona else None
    if name := scenario.settings.user or persona:
        return name
    for text in scenario.turns:
        if text.event is not None and text.event.name:
            return text.event.name
        for message in reversed(text.history):
            if message.role == "user" and message.name:
                return message.name
    return ""


def _greeting(scenario: Scenario, values: Mapping[str, str]) -> tuple[Message, ...]:
    """Return the character's greeting as the first message, if the scenario has one.

    Its macros are expanded once, before the first turn, so the text is the same in all turns.
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
