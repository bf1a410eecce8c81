"""Inputs: everything one prompt depends on, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from evennia_ai.engine.lorebook.activation.timers import NO_STATE, Clock, LoreState
from evennia_ai.engine.lorebook.book import Lorebook
from evennia_ai.engine.lorebook.conditions import Facts
from evennia_ai.engine.lorebook.entry import SourceName
from evennia_ai.engine.lorebook.rules import ActivationRules
from evennia_ai.engine.memory.memories import Memory
from evennia_ai.engine.memory.recalling import Moment, RecallRules
from evennia_ai.engine.prompt.assembly import PLAIN, AssemblyRules
from evennia_ai.engine.prompt.blocks import DynamicBlock
from evennia_ai.engine.prompt.budget import BudgetRules
from evennia_ai.engine.prompt.compiled import Layout
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.expansion import ComponentSet
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.memo import typed_frozen
from evennia_ai.engine.prompt.messages import Message
from evennia_ai.engine.prompt.notes import Notes
from evennia_ai.engine.prompt.placement import Anchors
from evennia_ai.engine.prompt.staying import BlocksMode
from evennia_ai.engine.prompt.tokens import ESTIMATE, TokenCounter

NO_HISTORY: Final = History()
NO_NOTES: Final = Notes()
START: Final = Clock()
NOW: Final = Moment()


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposeRules:
    """How to compose."""

    budget: BudgetRules
    layout: Layout = "cache"
    blocks: BlocksMode = "latest"
    """Whether the facts of a request stay in the history."""

    counter: TokenCounter = ESTIMATE
    assembly: AssemblyRules = PLAIN
    """How the texts are put together."""

    lore: ActivationRules = field(default_factory=ActivationRules)
    memory: RecallRules = field(default_factory=RecallRules)
    dice: Dice = field(default_factory=lambda: Dice(turn="0", conversation="0"))


@typed_frozen
class Inputs:
    """What `compose` makes one prompt of; equal inputs give equal bytes."""

    components: ComponentSet
    rules: ComposeRules
    history: History = NO_HISTORY
    event: Message | None = None
    tools: tuple[Message, ...] = ()
    """The messages of this turn's own tool calls and results."""

    notes: Notes = NO_NOTES
    books: tuple[Lorebook, ...] = ()
    blocks: tuple[DynamicBlock, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    """What templates may name."""

    cut: int = 0
    """The index the history was last cut at; `anchors` are where anchored notes stood then."""
    anchors: Anchors = field(default_factory=dict)
    lore_state: LoreState = NO_STATE
    """What the turn before left of lore; its timers count `clock`, its conditions ask `facts`."""

    now: str = ""
    """The time of the game, ISO 8601 with the offset of its zone; "" if there is no clock."""

    clock: Clock = START
    facts: Facts = field(default_factory=dict)

    sources: Mapping[SourceName, str] = field(default_factory=dict)
    """What entries of lore may have scanned beside the conversation."""

    memories: tuple[Memory, ...] = ()
    moment: Moment = NOW
    """When it is, and with whom the NPC speaks: what it may be reminded of are the `memories`."""

    near: tuple[tuple[int, float], ...] = ()
    """The ids of memories whose meaning is known, each with how near it lies to the event."""

    guidance: str = ""
    """What is told of the client the conversation was opened from, "" for nothing."""
