"""The pipeline on one page: Inputs -> Prompt.

Pure: no clock, disk, database, random source or setting is read; equal inputs give equal bytes, on
a busy machine as on an idle one. Work that might not end, such as a pattern's, is bounded by steps.
Each stage judges everything it saw; the verdicts of the stages are the trace.

    1  notes     each author's note as it goes in                 evennia_ai.engine.prompt.notes
    2  lore      which entries of the books are active            evennia_ai.engine.lorebook
    3  recall    which memories the NPC is reminded of            evennia_ai.engine.memory
    4  expand    texts of components, notes, entries, blocks      evennia_ai.engine.prompt.expansion
    5  fixed     the event and the tools' messages                evennia_ai.engine.prompt.placement
    6  budget    what of them and of the history fits             evennia_ai.engine.prompt.budget
    7  anchors   where anchored notes stand                       evennia_ai.engine.prompt.placement
    8  place     where each message stands                        evennia_ai.engine.prompt.placement
    9  shown     which of the memories are in the prompt          evennia_ai.engine.memory.recalling

What stays in the history (`evennia_ai.engine.prompt.blocks`) and where anchored notes stand
(`evennia_ai.engine.prompt.placement`) is given back with the next turn's inputs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from evennia_ai.engine.inputs import NO_HISTORY, ComposeRules, Inputs
from evennia_ai.engine.lorebook.activation.activation import Activation
from evennia_ai.engine.lorebook.activation.entry_variables import said_sources, variables_of
from evennia_ai.engine.lorebook.activation.passes import activate
from evennia_ai.engine.lorebook.activation.placed_entries import (
    around_note,
    lore_pieces,
    outlet_values,
    outlet_verdicts,
)
from evennia_ai.engine.lorebook.activation.timers import NO_STATE
from evennia_ai.engine.lorebook.rules import PRESET_FLAGS
from evennia_ai.engine.lorebook.scan.window import Scan
from evennia_ai.engine.memory.recalling import (
    NOTHING,
    Recalled,
    no_place,
    recalled,
    refused,
    shown,
    with_memories,
)
from evennia_ai.engine.memory.scenes import words_said
from evennia_ai.engine.prompt.assembly import PLAIN
from evennia_ai.engine.prompt.blocks import blocks_alone, with_filled, with_guidance, without_facts
from evennia_ai.engine.prompt.budget import BudgetRules
from evennia_ai.engine.prompt.carried import Store
from evennia_ai.engine.prompt.compiled import DYNAMIC, Filling
from evennia_ai.engine.prompt.components import HISTORY_ID
from evennia_ai.engine.prompt.examples import with_examples_apart
from evennia_ai.engine.prompt.formats import format_verdicts, lore_joints
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.joining import RoleTies, squashed
from evennia_ai.engine.prompt.messages import Message
from evennia_ai.engine.prompt.notes import ExpandedNote, expanded_notes, with_variables
from evennia_ai.engine.prompt.pieces import Piece
from evennia_ai.engine.prompt.placement import Slots, Stand, anchored, fixed_stands, place
from evennia_ai.engine.prompt.prompt import Prompt
from evennia_ai.engine.prompt.said_last import said_last
from evennia_ai.engine.prompt.settled import SaidSources, settle_pieces
from evennia_ai.engine.prompt.shown_history import STAND_IN, shown_event, shown_history, stand_in
from evennia_ai.engine.prompt.staying import fit_beside, with_staying_facts
from evennia_ai.engine.prompt.templates.clock import clock_values
from evennia_ai.engine.prompt.trace import Verdict, not_expanded

NO_LORE: Final = Activation()
_PLACES: Final = {
    "conversation_history": "history",
    "pending_event": "event",
    "tool_result": "tools",
}


class Composition(NamedTuple):
    """A prompt, the activation of lore it was made with, and what was recalled for it."""

    prompt: Prompt
    lore: Activation
    recalled: Recalled = NOTHING


def compose(inputs: Inputs) -> Prompt:
    """The prompt for `inputs`, with a verdict on everything that was or was not taken.

    BudgetError: what is required does not fit the limit.
    """
    return compose_with_lore(inputs).prompt


def compose_with_lore(inputs: Inputs) -> Composition:
    """The same, and the entries of lore that were active in it."""
    rules, assembly = inputs.rules, inputs.rules.assembly
    history, event, tools, off = _taking_part(inputs)
    if assembly is not PLAIN:
        history, event = shown_history(history, assembly), shown_event(event, assembly)
    cut = inputs.cut if assembly.history_cut == "steps" else 0
    filling = _filling(inputs)
    said = said_sources(inputs.books)
    notes, filling = _notes(inputs, history, filling, said)  # 1
    lore = _lore(inputs, notes, filling)  # 2
    reminded = _recalled(inputs)  # 3
    pieces, refused = _expanded(inputs, notes, lore, reminded, filling, said=said)  # 4
    stands, fixed = fixed_stands(event, tools, counter=rules.counter)  # 5
    if assembly.stand_in:
        stands, fixed = _with_stand_in(stands, fixed, pieces, history, rules)
    fitted, standing = fit_beside(  # 6
        history,
        pieces,
        blocks=rules.blocks,
        rules=rules.budget if assembly is PLAIN else _budget(rules),
        counter=rules.counter,
        fixed=fixed,
        cut=cut,
    )
    anchors, slots = anchored(  # 7
        fitted.pieces,
        history,
        first=fitted.first,
        cut=cut,
        origins=inputs.notes.anchored,
        before=inputs.anchors,
    )
    messages = place(  # 8
        fitted.pieces,
        history,
        first=fitted.first,
        fixed=stands,
        slots=slots,
        ties=None if assembly is PLAIN else _ties(inputs, slots),
    )
    if rules.blocks != "latest":
        messages = with_staying_facts(messages)
    reminded = shown(reminded, fitted.pieces, standing)  # 9
    formats = () if assembly is PLAIN else tuple(format_verdicts(inputs.components, assembly))
    prompt = Prompt(
        messages=squashed(messages) if assembly.squash else messages,
        components=inputs.components,
        values=_values_read(inputs, filling),
        dice=rules.dice,
        limit_tokens=rules.budget.limit_tokens,
        layout=rules.layout,
        blocks=rules.blocks,
        assembly=assembly,
        counter=rules.counter,
        history=history,
        fitted=fitted,
        fixed=fixed,
        lore=lore,
        memories=reminded,
        earlier=(formats, refused, [*off, *inputs.notes.off, *_of_books(inputs)]),
        anchors=anchors,
        standing=standing,
    )
    return Composition(prompt, lore, reminded)


def _taking_part(
    inputs: Inputs,
) -> tuple[History, Message | None, tuple[Message, ...], list[Verdict]]:
    """History, event and tools where their component takes part, and verdicts where it does not."""
    off = [key for key in _PLACES if not inputs.components.is_on(key)]
    if not off:
        return inputs.history, inputs.event, inputs.tools, []
    given = (len(inputs.history) > 0, inputs.event is not None, bool(inputs.tools))
    told = zip(_PLACES.items(), given, strict=True)
    return (
        NO_HISTORY if "conversation_history" in off else inputs.history,
        None if "pending_event" in off else inputs.event,
        () if "tool_result" in off else inputs.tools,
        [
            not_expanded(item, f"component {key} is disabled")
            for (key, item), is_given in told
            if is_given and key in off
        ],
    )


def _budget(rules: ComposeRules) -> BudgetRules:
    """What the prompt may cost, how much of the history a cut leaves, what goes in before it."""
    assembly = rules.assembly
    keep = 100 if assembly.history_cut == "messages" else rules.budget.keep_percent
    return replace(rules.budget, keep_percent=keep, pin_examples=assembly.pin_examples)


def _with_stand_in(
    stands: list[Stand],
    fixed: list[tuple[str, int]],
    pieces: Sequence[Piece],
    history: History,
    rules: ComposeRules,
) -> tuple[list[Stand], list[tuple[str, int]]]:
    """The event and the tools, and what ends the history where the character spoke last."""
    added = stand_in(rules.assembly, history, pieces, answers=bool(stands))
    if added is None:
        return stands, fixed
    stand = (HISTORY_ID + 1, "", added)
    return [*stands, stand], [*fixed, (STAND_IN, added.tokens(rules.counter))]


def _ties(inputs: Inputs, slots: Slots) -> RoleTies | None:
    """How ties are broken where that goes by role."""
    if inputs.rules.assembly.ties != "role":
        return None
    return RoleTies(note=inputs.notes.first_origin, apart=slots.keys())


def _of_books(inputs: Inputs) -> list[Verdict]:
    """Which books count in the place of newer ones, and which were waited for."""
    return [
        Verdict(stage="activate", item=f"book:{book.label}", kept=True, reason=book.told)
        for book in inputs.books
        if book.told
    ]


def _filling(inputs: Inputs) -> Filling:
    """The values of templates and who speaks: the event's speaker, else the newest not of ours."""
    speaker = inputs.event.name if inputs.event is not None else None
    if not speaker:
        newest = inputs.history.newest_user()
        speaker = (newest and newest.name) or inputs.values.get("user", "")
    rules, char = inputs.rules, inputs.values.get("char")
    alone = {} if char is None else {"charifnotgroup": char, "group": char}
    moment: dict[str, str] = {}
    if _may_name_moment(inputs):
        moment = said_last(inputs.history, inputs.event)
        moment |= clock_values(inputs.now) if inputs.now else {}
    return Filling(
        dice=rules.dice,
        counter=rules.counter,
        layout=rules.layout,
        values={**alone, **moment, **inputs.values, "speaker": speaker},
        fields=inputs.components.fields,
    )


def _may_name_moment(inputs: Inputs) -> bool:
    """True if a text may name the time or what was said last; books and formats always may."""
    return (
        bool(inputs.books)
        or inputs.rules.assembly is not PLAIN
        or inputs.components.names_moment
        or inputs.notes.compiled.names_moment
    )


def _values_read(inputs: Inputs, filling: Filling) -> Mapping[str, str]:
    """The values that were given, and of the others those that some component names."""
    values, read = filling.all_values, inputs.components.compiled.names
    shown = {*inputs.values, "speaker", *read}
    return {name: value for name, value in values.items() if name in shown}


def _notes(
    inputs: Inputs, history: History, filling: Filling, lore: SaidSources
) -> tuple[list[ExpandedNote], Filling]:
    said = inputs.history.user_messages + (inputs.event is not None)
    return expanded_notes(
        inputs.notes,
        filling,
        components=inputs.components,
        lore=lore,
        history=history,
        said=said,
        cut=inputs.cut,
    )


def _lore(inputs: Inputs, notes: Sequence[ExpandedNote], filling: Filling) -> Activation:
    """The entries that are active; without books nothing is activated and nothing forgotten."""
    if not inputs.books:
        return NO_LORE if inputs.lore_state is NO_STATE else Activation(after=inputs.lore_state)
    rules = inputs.rules
    scanned = tuple(
        one.made.message.content
        for one in notes
        if one.note.scanned and isinstance(one.made, Piece)
    )
    return activate(
        inputs.books,
        Scan(history=inputs.history, event=inputs.event, texts=scanned, sources=inputs.sources),
        rules=rules.lore,
        limit_tokens=rules.budget.limit_tokens,
        counter=rules.counter,
        work=filling.carried.left_for_lore,
        values=filling.values_for("system"),  # a text may stand in a message of that role
        dice=rules.dice,
        state=inputs.lore_state,
        clock=inputs.clock,
        facts=inputs.facts,
    )


def _recalled(inputs: Inputs) -> Recalled:
    """The memories that the NPC is reminded of."""
    if not inputs.memories:
        return NOTHING
    if problem := no_place(inputs.components):
        return refused(inputs.memories, problem)
    rules = inputs.rules
    return recalled(
        inputs.memories,
        rules=rules.memory,
        moment=inputs.moment,
        said=words_said(
            inputs.history,
            inputs.event,
            messages=rules.memory.scan_messages,
            languages=rules.memory.languages,
        ),
        limit_tokens=rules.budget.limit_tokens,
        counter=rules.counter,
        near=dict(inputs.near),
    )


def _expanded(
    inputs: Inputs,
    notes: Sequence[ExpandedNote],
    lore: Activation,
    reminded: Recalled,
    filling: Filling,
    *,
    said: SaidSources,
) -> tuple[list[Piece], list[Verdict]]:
    """The texts of all that may stand in the prompt, and the verdicts on what gives none."""
    components, counter, entries = inputs.components, filling.counter, lore.entries
    assembly = inputs.rules.assembly
    if outlets := outlet_values(entries) if entries else {}:
        filling = filling.with_values(outlets)
    if entries:
        values = filling.values_for("system")
        carried = filling.carried._replace(work_of_lore=lore.work)
        carried = variables_of(entries, inputs.books, carried, values=values, dice=filling.dice)
        filling = replace(filling, carried=carried)
    expanded = components.compiled.expand(filling)
    store = Store(expanded.left)
    notes = with_variables(notes, inputs.notes, filling, store, components=components, lore=said)
    unsettled = components.unsettled(said).members
    made = settle_pieces(expanded.made, unsettled, layout=filling.layout, counter=counter)
    if inputs.guidance:
        made = with_guidance(made, inputs.guidance, components=components, counter=counter)
    made = with_memories(made, reminded.kept, components=components, filling=filling, store=store)
    made = with_filled(made, inputs.blocks, components=components, filling=filling, store=store)
    if entries:
        joints = components.joints
        keeps_blank = PRESET_FLAGS[inputs.rules.lore.rules].blank_notes_stay
        made += around_note(
            notes,
            entries,
            components=components,
            keeps_blank=keeps_blank,
            layout=filling.layout,
            counter=counter,
        )
        made += lore_pieces(
            entries,
            components=components,
            joints=lore_joints(joints, assembly, filling, store)
            if assembly.lore_format
            else joints,
            layout=filling.layout,
            counter=counter,
        )
        made += outlet_verdicts(entries, components=components) if outlets else ()
    else:
        made += [one.made for one in notes]
    if assembly is not PLAIN and assembly.examples == "messages":
        made = with_examples_apart(
            made, assembly, components=components, filling=filling, store=store
        )
    made += blocks_alone(inputs.blocks, counter=counter)
    if not components.is_on(DYNAMIC.key):
        made = without_facts(made)
    pieces = [one for one in made if isinstance(one, Piece)]
    if len(pieces) == len(made):
        return pieces, []
    return pieces, [one for one in made if isinstance(one, Verdict)]
