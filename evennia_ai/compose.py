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
from dataclasses import replace
from typing import Final, NamedTuple

from evennia_ai.inputs import NO_HISTORY, Inputs
from evennia_ai.lorebook.activation.activation import Activation, activate
from evennia_ai.lorebook.activation.entry_variables import variables_of
from evennia_ai.lorebook.activation.placed_entries import (
    around_note,
    lore_pieces,
    outlet_values,
    outlet_verdicts,
)
from evennia_ai.lorebook.activation.timers import NO_STATE
from evennia_ai.lorebook.rules import PRESET_FLAGS
from evennia_ai.lorebook.scan.window import Scan
from evennia_ai.memory.recalling import (
    NOTHING,
    Recalled,
    no_place,
    recalled,
    refused,
    shown,
    with_memories,
)
from evennia_ai.memory.scenes import words_said
from evennia_ai.prompt.blocks import (
    blocks_alone,
    fit_beside,
    with_filled,
    with_guidance,
    with_staying_facts,
    without_facts,
)
from evennia_ai.prompt.compiled import DYNAMIC, Filling
from evennia_ai.prompt.history import History
from evennia_ai.prompt.messages import Message
from evennia_ai.prompt.notes import ExpandedNote, expanded_notes, with_variables
from evennia_ai.prompt.pieces import Piece
from evennia_ai.prompt.placement import anchored, fixed_stands, place
from evennia_ai.prompt.prompt import Prompt
from evennia_ai.prompt.trace import Verdict, not_expanded
from evennia_ai.prompt.whole_texts import said_last

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
    rules, cut = inputs.rules, inputs.cut
    history, event, tools, off = _taking_part(inputs)
    filling = _filling(inputs)
    notes = _notes(inputs, history, filling)  # 1
    lore = _lore(inputs, notes, filling)  # 2
    reminded = _recalled(inputs)  # 3
    pieces, refused = _expanded(inputs, notes, lore, reminded, filling)  # 4
    stands, fixed = fixed_stands(event, tools, counter=rules.counter)  # 5
    fitted, standing = fit_beside(  # 6
        history,
        pieces,
        blocks=rules.blocks,
        rules=rules.budget,
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
    messages = place(fitted.pieces, history, first=fitted.first, fixed=stands, slots=slots)  # 8
    reminded = shown(reminded, fitted.pieces, standing)  # 9
    prompt = Prompt(
        messages=messages if rules.blocks == "latest" else with_staying_facts(messages),
        components=inputs.components,
        values=_values_read(inputs, filling),
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
        earlier=(refused, [*off, *inputs.notes.off, *_of_books(inputs)]),
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
    said = said_last(inputs.history, inputs.event)
    return Filling(
        dice=rules.dice,
        counter=rules.counter,
        layout=rules.layout,
        values={**alone, **said, **inputs.values, "speaker": speaker},
        fields=inputs.components.fields,
    )


def _values_read(inputs: Inputs, filling: Filling) -> Mapping[str, str]:
    """The values that were given, and of the others those that some component names."""
    given, reads = inputs.values.keys() | {"speaker"}, inputs.components.compiled.reads
    values = filling.all_values
    return {name: value for name, value in values.items() if name in given or reads(name)}


def _notes(inputs: Inputs, history: History, filling: Filling) -> list[ExpandedNote]:
    said = inputs.history.user_messages + (inputs.event is not None)
    return expanded_notes(inputs.notes, filling, history=history, said=said, cut=inputs.cut)


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
) -> tuple[list[Piece], list[Verdict]]:
    """The texts of all that may stand in the prompt, and the verdicts on what gives none."""
    components, counter, entries = inputs.components, filling.counter, lore.entries
    if outlets := outlet_values(entries) if entries else {}:
        filling = filling.with_values(outlets)
    if entries:
        values = filling.values_for("system")
        carried = variables_of(entries, inputs.books, values=values, dice=filling.dice)
        filling = replace(filling, carried=carried)
    expanded = components.compiled.expand(filling)
    filling = replace(filling, carried=expanded.left)
    notes = with_variables(notes, inputs.notes, filling)
    made = [*expanded.made]
    if inputs.guidance:
        made = with_guidance(made, inputs.guidance, components=components, counter=counter)
    made = with_memories(made, reminded.kept, components=components, filling=filling)
    made = with_filled(made, inputs.blocks, components=components, filling=filling)
    if entries:
        keeps_blank = PRESET_FLAGS[inputs.rules.lore.rules].blank_notes_stay
        made += around_note(notes, entries, keeps_blank=keeps_blank, counter=counter)
        made += lore_pieces(entries, components=components, layout=filling.layout, counter=counter)
        made += outlet_verdicts(entries, components=components) if outlets else ()
    else:
        made += [one.made for one in notes]
    made += blocks_alone(inputs.blocks, counter=counter)
    if not components.is_on(DYNAMIC.key):
        made = without_facts(made)
    pieces = [one for one in made if isinstance(one, Piece)]
    if len(pieces) == len(made):
        return pieces, []
    return pieces, [one for one in made if isinstance(one, Verdict)]
