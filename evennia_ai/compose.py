"""The pipeline on one page: Inputs -> Prompt.

Pure: no clock, disk, database, random source or setting is read; equal inputs give equal bytes.
Each stage judges everything it saw; the verdicts of the stages are the trace.

    1  notes     each author's note as it goes in                 evennia_ai.prompt.notes
    2  lore      which entries of the books are active            evennia_ai.lorebook
    3  recall    which memories the NPC is reminded of            evennia_ai.memory
    4  expand    texts of components, notes, entries, blocks      evennia_ai.prompt.expansion
    5  fixed     the event and the tools' messages                evennia_ai.prompt.placement
    6  budget    what of them and of the history fits             evennia_ai.prompt.budget
    7  anchors   where anchored notes stand                       evennia_ai.prompt.placement
    8  place     where each message stands                        evennia_ai.prompt.placement
    9  shown     which of the memories are in the prompt          evennia_ai.memory.recalling

What stays in the history (`evennia_ai.prompt.blocks`) and where anchored notes stand
(`evennia_ai.prompt.placement`) is given back with the next turn's inputs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, NamedTuple

from evennia_ai.lorebook.activation.activation import Activation, activate
from evennia_ai.lorebook.activation.candidate import ActiveEntry
from evennia_ai.lorebook.activation.placed_entries import (
    NotePlace,
    around_note,
    lore_pieces,
    outlet_values,
    outlet_verdicts,
)
from evennia_ai.lorebook.activation.timers import NO_STATE, Clock, LoreState
from evennia_ai.lorebook.book import Lorebook
from evennia_ai.lorebook.conditions import Facts
from evennia_ai.lorebook.entry import SourceName
from evennia_ai.lorebook.rules import ActivationRules
from evennia_ai.lorebook.scan.window import Scan
from evennia_ai.memory.memories import Memory
from evennia_ai.memory.recalling import (
    NOTHING,
    Moment,
    Recalled,
    RecallRules,
    needs_memories,
    no_place,
    recalled,
    refused,
    shown,
    with_memories,
    words_said,
)
from evennia_ai.prompt.blocks import (
    FILLED,
    BlocksMode,
    DynamicBlock,
    Filling,
    Standing,
    blocks_alone,
    fit_beside,
    with_filled,
    with_guidance,
    with_staying_facts,
)
from evennia_ai.prompt.budget import BudgetRules, Fitted
from evennia_ai.prompt.components import EVENT_ID, TOOL_ID
from evennia_ai.prompt.dice import Dice
from evennia_ai.prompt.expansion import DYNAMIC, CompiledComponents, ComponentSet, Layout
from evennia_ai.prompt.history import History
from evennia_ai.prompt.memo import typed_frozen
from evennia_ai.prompt.messages import OF_LORE, Message
from evennia_ai.prompt.names import in_system
from evennia_ai.prompt.notes import Notes, not_due
from evennia_ai.prompt.pieces import Piece
from evennia_ai.prompt.placement import NO_ANCHORS, NO_SLOTS, Anchors, Slots, Stand, anchored, place
from evennia_ai.prompt.prompt import Prompt
from evennia_ai.prompt.tokens import ESTIMATE, TokenCounter
from evennia_ai.prompt.trace import Verdict

NO_HISTORY: Final = History()
NO_NOTES: Final = Notes()
NO_LORE: Final = Activation()
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
    lore: ActivationRules = field(default_factory=ActivationRules)
    memory: RecallRules = field(default_factory=RecallRules)
    dice: Dice = field(default_factory=lambda: Dice(turn="0", conversation="0"))


@typed_frozen
class Inputs:
    """Everything one prompt depends on, as values."""

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

    clock: Clock = START
    facts: Facts = field(default_factory=dict)

    sources: Mapping[SourceName, str] = field(default_factory=dict)
    """What entries of lore may have scanned beside the conversation."""

    memories: tuple[Memory, ...] = ()
    moment: Moment = NOW
    """When it is, and with whom the NPC speaks: what it may be reminded of are the `memories`."""

    guidance: str = ""
    """What is told of the client the conversation was opened from, "" for nothing."""


class Composition(NamedTuple):
    """A prompt, the activation of lore it was made with, and what was recalled for it."""

    prompt: Prompt
    lore: Activation
    recalled: Recalled = NOTHING


class _Expanded(NamedTuple):
    """Pieces and the verdicts on what gave none."""

    pieces: list[Piece]
    refused: list[Verdict]


def compose(inputs: Inputs) -> Prompt:
    """The prompt for `inputs`, with a verdict on everything that was or was not taken.

    BudgetError: what is required does not fit the limit.
    """
    return compose_with_lore(inputs).prompt


def compose_with_lore(inputs: Inputs) -> Composition:
    """The same, and the entries of lore that were active in it."""
    rules, history = inputs.rules, _shown_history(inputs)
    values = {**inputs.values, "speaker": _speaker(inputs)}
    notes = _notes(inputs, values)  # 1
    lore = _lore(inputs, notes, values)  # 2
    reminded = _recalled(inputs)  # 3
    pieces, refused = _expand(inputs, notes, lore.entries, reminded, values)  # 4
    stands, fixed = _fixed(inputs)  # 5
    fitted, standing = fit_beside(  # 6
        history,
        pieces,
        blocks=rules.blocks,
        rules=rules.budget,
        counter=rules.counter,
        fixed=fixed,
        cut=inputs.cut,
    )
    anchors, slots = _anchors(inputs, fitted, history)  # 7
    messages = place(fitted.pieces, history, first=fitted.first, fixed=stands, slots=slots)  # 8
    reminded = _shown(reminded, fitted, standing)  # 9
    prompt = Prompt(
        messages=messages if rules.blocks == "latest" else with_staying_facts(messages),
        components=inputs.components,
        values=values,
        dice=rules.dice,
        limit_tokens=rules.budget.limit_tokens,
        layout=rules.layout,
        blocks=rules.blocks,
        counter=rules.counter,
        history=history,
        fitted=fitted,
        fixed=fixed,
        lore=lore,
        memories=reminded,
        earlier=(refused, _switched_off(inputs)),
        anchors=anchors,
        standing=standing,
    )
    return Composition(prompt, lore, reminded)


def _shown(reminded: Recalled, fitted: Fitted, standing: Sequence[Standing]) -> Recalled:
    """The memories, and whether they stand in the prompt after all."""
    if reminded is NOTHING:
        return NOTHING
    placed = chain(fitted.pieces, *(one.pieces for one in standing))
    return shown(reminded, placed)


def _shown_history(inputs: Inputs) -> History:
    """The history, where its component takes part."""
    return inputs.history if inputs.components.is_on("conversation_history") else NO_HISTORY


def _anchors(inputs: Inputs, fitted: Fitted, history: History) -> tuple[Anchors, Slots]:
    """Where the anchored notes stand."""
    if not inputs.notes.anchored:
        return NO_ANCHORS, NO_SLOTS
    return anchored(
        fitted.pieces,
        history,
        first=fitted.first,
        cut=inputs.cut,
        origins=inputs.notes.anchored,
        before=inputs.anchors,
    )


def _lore(
    inputs: Inputs, notes: Sequence[Piece | Verdict], values: Mapping[str, str]
) -> Activation:
    """The entries that are active; without books nothing is activated and nothing forgotten."""
    if not inputs.books:
        return NO_LORE if inputs.lore_state is NO_STATE else Activation(after=inputs.lore_state)
    rules = inputs.rules
    scanned = tuple(
        made.message.content
        for note, made in zip(inputs.notes.notes, notes, strict=True)
        if note.scanned and isinstance(made, Piece)
    )
    return activate(
        inputs.books,
        Scan(history=inputs.history, event=inputs.event, texts=scanned, sources=inputs.sources),
        rules=rules.lore,
        limit_tokens=rules.budget.limit_tokens,
        counter=rules.counter,
        values=in_system(values),  # a text may stand in a message of role system
        dice=rules.dice,
        state=inputs.lore_state,
        clock=inputs.clock,
        facts=inputs.facts,
    )


def _recalled(inputs: Inputs) -> Recalled:
    """The memories that the NPC is reminded of."""
    if not inputs.memories:
        return NOTHING
    rules = inputs.rules
    if problem := no_place(inputs.components):
        return refused(inputs.memories, problem)
    return recalled(
        inputs.memories,
        rules=rules.memory,
        moment=inputs.moment,
        said=words_said(inputs.history, inputs.event, messages=rules.memory.scan_messages),
        limit_tokens=rules.budget.limit_tokens,
        counter=rules.counter,
    )


def _expand(
    inputs: Inputs,
    notes: Sequence[Piece | Verdict],
    entries: Sequence[ActiveEntry],
    reminded: Recalled,
    values: Mapping[str, str],
) -> _Expanded:
    counter, components = inputs.rules.counter, inputs.components
    outlets = outlet_values(entries) if entries else None
    if outlets:
        values = {**values, **outlets}
    made = [*_all(components.compiled, inputs.rules, values)]
    if inputs.guidance:
        made = with_guidance(made, inputs.guidance, components=components, counter=counter)
    if inputs.memories or needs_memories(components):
        made = with_memories(
            made, reminded.kept, components=components, rules=inputs.rules, values=values
        )
    if inputs.blocks or any(components.reads(name) for name in FILLED.values()):
        filling = Filling(
            dice=inputs.rules.dice, counter=counter, layout=inputs.rules.layout, values=values
        )
        made = with_filled(made, inputs.blocks, components=components, filling=filling)
    if entries:
        made += _with_lore(inputs, notes, entries)
        made += lore_pieces(
            entries, components=components, layout=inputs.rules.layout, counter=counter
        )
        made += outlet_verdicts(entries, components=components) if outlets else ()
    else:
        made += notes
    made += blocks_alone(inputs.blocks, counter=counter)
    if not inputs.components.is_on(DYNAMIC.key):
        made = [_without_dynamic(result) for result in made]
    pieces = [result for result in made if isinstance(result, Piece)]
    if len(pieces) == len(made):
        return _Expanded(pieces, [])
    return _Expanded(pieces, [result for result in made if isinstance(result, Verdict)])


def _notes(inputs: Inputs, values: Mapping[str, str]) -> list[Piece | Verdict]:
    """Each note as it goes in; only what goes in is scanned for lore."""
    if not inputs.notes.notes:
        return []
    made = _all(inputs.notes.compiled, inputs.rules, values)
    return [_not_due(i, inputs) or made[i] for i in range(len(made))]


def _not_due(index: int, inputs: Inputs) -> Verdict | None:
    return not_due(
        inputs.notes.notes[index],
        index,
        history=_shown_history(inputs),
        said=inputs.history.user_messages + (inputs.event is not None),
        cut=inputs.cut,
    )


def _with_lore(
    inputs: Inputs, notes: Sequence[Piece | Verdict], entries: Sequence[ActiveEntry]
) -> Sequence[Piece | Verdict]:
    """The notes, the first one with the lore around it."""
    if not any(entry.position in ("note_top", "note_bottom") for entry in entries):
        return notes
    rules = inputs.rules
    place = NotePlace()
    if notes:
        first = inputs.notes.notes[0]
        place = NotePlace(
            made=notes[0],
            depth=0 if first.mode == "tail" else first.depth,
            role=first.role,
            is_due=_not_due(0, inputs) is None,
        )
    keeps_blank = rules.lore.flags.blank_notes_stay
    around = around_note(place, entries, keeps_blank=keeps_blank, counter=rules.counter)
    return [*around, *notes[1:]]


def _all(
    components: CompiledComponents, rules: ComposeRules, values: Mapping[str, str]
) -> Sequence[Piece | Verdict]:
    return components.expand(values, dice=rules.dice, counter=rules.counter, layout=rules.layout)


def _without_dynamic(made: Piece | Verdict) -> Piece | Verdict:
    if isinstance(made, Verdict):
        return made
    if made.claim.joint is not DYNAMIC and not made.claim.stays.startswith(OF_LORE):
        return made
    reason = "component dynamic_context is disabled"
    return Verdict(stage="expand", item=made.claim.origin, kept=False, reason=reason)


def _fixed(inputs: Inputs) -> tuple[list[Stand], list[tuple[str, int]]]:
    """The event and tool messages at their places, and what they cost."""
    stands: list[Stand] = []
    costs: list[tuple[str, int]] = []
    counter = inputs.rules.counter
    if inputs.event is not None and inputs.components.is_on("pending_event"):
        stands.append((EVENT_ID, "~event", inputs.event))
        costs.append(("event", inputs.event.tokens(counter)))
    if inputs.tools and inputs.components.is_on("tool_result"):
        stands += [(TOOL_ID, f"~tool{i:04}", message) for i, message in enumerate(inputs.tools)]
        costs.append(("tools", sum(message.tokens(counter) for message in inputs.tools)))
    return stands, costs


def _switched_off(inputs: Inputs) -> list[Verdict]:
    """Verdicts on the history, the event and the tools where their component is disabled."""
    given = (
        ("conversation_history", "history", len(inputs.history) > 0),
        ("pending_event", "event", inputs.event is not None),
        ("tool_result", "tools", bool(inputs.tools)),
    )
    return [
        Verdict(stage="expand", item=item, kept=False, reason=f"component {key} is disabled")
        for key, item, is_there in given
        if is_there and not inputs.components.is_on(key)
    ]


def _speaker(inputs: Inputs) -> str:
    """Who speaks in the message at hand: the event's, else the newest one's that is not ours."""
    if inputs.event is not None and inputs.event.name:
        return inputs.event.name
    newest = inputs.history.newest_user()
    return (newest and newest.name) or inputs.values.get("user", "")
