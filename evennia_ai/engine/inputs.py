"""Everything on which one prompt depends, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from evennia_ai.engine.lorebook.activation.timers import NO_STATE, Clock, LoreState
from evennia_ai.engine.lorebook.book import Lorebook
from evennia_ai.engine.lorebook.entry import SourceName
from evennia_ai.engine.lorebook.rules import ActivationRules
from evennia_ai.engine.memory.memories import Memory
from evennia_ai.engine.memory.recalling import Moment, RecallRules
from evennia_ai.engine.prompt.assembly.rules import PLAIN, AssemblyRules
from evennia_ai.engine.prompt.blocks import DynamicBlock
from evennia_ai.engine.prompt.budget import BudgetRules
from evennia_ai.engine.prompt.conditions import Facts
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.expansion import ComponentSet
from evennia_ai.engine.prompt.fragments import Layout
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.memo import typed_frozen
from evennia_ai.engine.prompt.messages import Message
from evennia_ai.engine.prompt.notes import Notes
from evennia_ai.engine.prompt.persistent_texts import BlocksMode
from evennia_ai.engine.prompt.placement import Anchors
from evennia_ai.engine.prompt.tokens import ESTIMATE, TokenCounter
from evennia_ai.engine.regex_scripts import RegexScript

NO_HISTORY: Final = History()
NO_NOTES: Final = Notes()
START: Final = Clock()
NOW: Final = Moment()


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposeRules:
    """The rules by which a prompt is composed: its budget, its layout, and those of each stage."""

    budget: BudgetRules
    layout: Layout = "cache"
    blocks: BlocksMode = "latest"
    """Which blocks with facts stay in the history for later prompts."""

    counter: TokenCounter = ESTIMATE
    """The counter for the tokens of texts."""
    assembly: AssemblyRules = PLAIN
    """The rules by which texts become messages: this engine's own, or SillyTavern's."""

    lore: ActivationRules = field(default_factory=ActivationRules)
    memory: RecallRules = field(default_factory=RecallRules)
    dice: Dice = field(default_factory=lambda: Dice(turn="0", conversation="0"))


@typed_frozen
class Inputs:
    """Everything on which one prompt depends. Equal inputs give equal bytes."""

    components: ComponentSet
    rules: ComposeRules
    history: History = NO_HISTORY
    event: Message | None = None
    """The message that the NPC answers."""
    tools: tuple[Message, ...] = ()
    """The tool calls of this turn so far and their results, as messages."""

    notes: Notes = NO_NOTES
    books: tuple[Lorebook, ...] = ()
    blocks: tuple[DynamicBlock, ...] = ()
    """The blocks with facts of the moment."""
    values: Mapping[str, str] = field(default_factory=dict)
    """The values that templates may name."""

    cut: int = 0
    """The absolute index of the oldest history message in the previous prompt."""
    anchors: Anchors = field(default_factory=dict)
    """The places of anchored notes in the previous prompt."""
    lore_state: LoreState = NO_STATE
    """The timers and active entries of lore after the previous turn."""

    now: str = ""
    """The time of the game, in ISO 8601 with the offset of its zone; "" if there is no clock."""

    clock: Clock = START
    """The current turn, message count and game time, which the timers of lore entries use."""
    facts: Facts = field(default_factory=dict)
    """The facts that conditions of lore entries read."""

    sources: Mapping[SourceName, str] = field(default_factory=dict)
    """Texts besides the conversation that lore entries may search for their keys, by name."""

    memories: tuple[Memory, ...] = ()
    """The memories of the NPC that may enter the prompt."""
    moment: Moment = NOW
    """The time of the turn and the partner of a private conversation, for choosing memories."""

    near: tuple[tuple[int, float], ...] = ()
    """Ids of memories, each with its similarity in meaning to the event where that is known."""

    scripts: tuple[RegexScript, ...] = ()
    """The regex scripts that may run, in their order: the game's, the preset's, the card's."""

    guidance: str = ""
    """Text about the client in which the conversation began, for the NPC; "" for none."""
