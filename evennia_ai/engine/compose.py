"""The composition of a prompt: nine stages from `Inputs` to a `Prompt`, on one page.

Pure: no clock, disk, database, random source or setting is read. Equal inputs give equal bytes on
every machine, because slow work, such as matching a pattern, is limited by steps and never by time.
Each stage returns a verdict for each item it considered: whether the item was used, and why.
Together these verdicts are the trace.

    1  show      the history, the event and the tools' messages   evennia_ai.engine.compose
                 (regex scripts may change their words)           evennia_ai.engine.regex_scripts
    2  notes     author's notes that are due                      evennia_ai.engine.prompt.notes
    3  lore      active entries of the lorebooks                  evennia_ai.engine.lorebook
    4  recall    memories that fit the moment                     evennia_ai.engine.memory
    5  expand    texts of components, notes, entries, facts       evennia_ai.engine.prompt.expansion
    6  fix       messages that are always kept                    evennia_ai.engine.prompt.placement
    7  budget    texts and history messages that fit              evennia_ai.engine.prompt.budget
    8  anchor    places of anchored notes                         evennia_ai.engine.prompt.placement
    9  place     the order of all messages                        evennia_ai.engine.prompt.placement

SillyTavern assembles a prompt in another way. If the rules ask for SillyTavern's assembly, some
stages hand their result to `evennia_ai.engine.prompt.assembly`. With the rules `PLAIN` no stage
uses that package.

The next turn receives two results of this turn in its `Inputs`: the texts that stay in the history
(`evennia_ai.engine.prompt.persistent_texts`), and the anchors of notes.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from evennia_ai.engine.inputs import NO_HISTORY, ComposeRules, Inputs
from evennia_ai.engine.lorebook.activation.activation import Activation
from evennia_ai.engine.lorebook.activation.entry_variables import speech_sources, variables_of
from evennia_ai.engine.lorebook.activation.passes import activate_lore
from evennia_ai.engine.lorebook.activation.placed_entries import (
    lore_fragments,
    note_fragments,
    outlet_values,
    outlet_verdicts,
)
from evennia_ai.engine.lorebook.activation.timers import NO_STATE
from evennia_ai.engine.lorebook.rules import PRESET_FLAGS
from evennia_ai.engine.lorebook.scan.window import Scan
from evennia_ai.engine.memory.recalling import (
    NOTHING_RECALLED,
    RecallResult,
    insert_memories,
    mark_shown,
    recall_memories,
    refuse_memories,
    why_no_place,
)
from evennia_ai.engine.memory.scenes import words_said
from evennia_ai.engine.prompt.assembly.examples import split_examples
from evennia_ai.engine.prompt.assembly.formats import format_lore_messages, format_verdicts
from evennia_ai.engine.prompt.assembly.history_format import (
    STAND_IN,
    format_event,
    format_history,
    stand_in_message,
)
from evennia_ai.engine.prompt.assembly.merging import RoleTies, squash_system_messages
from evennia_ai.engine.prompt.assembly.rules import PLAIN
from evennia_ai.engine.prompt.blocks import (
    add_guidance,
    block_fragments,
    drop_facts,
    fill_components,
)
from evennia_ai.engine.prompt.budget import BudgetRules
from evennia_ai.engine.prompt.components import HISTORY_ID
from evennia_ai.engine.prompt.filling import Filling, MacroStore, last_message_values
from evennia_ai.engine.prompt.fragments import DYNAMIC, Fragment
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import Message
from evennia_ai.engine.prompt.notes import ExpandedNote, expand_notes, expand_notes_again
from evennia_ai.engine.prompt.persistent_texts import fit_unsent, mark_facts_as_staying
from evennia_ai.engine.prompt.placement import (
    PlacedMessage,
    anchor_notes,
    place_fixed,
    place_messages,
)
from evennia_ai.engine.prompt.prefix_rules import SpeechSources, restrict_fragments
from evennia_ai.engine.prompt.prompt import Prompt
from evennia_ai.engine.prompt.templates.clock import clock_values
from evennia_ai.engine.prompt.trace import Verdict, not_expanded
from evennia_ai.engine.regex_scripts import ScriptRun, without_emptied

NO_LORE: Final = Activation()


class Composition(NamedTuple):
    """A composed prompt, with the active lore entries and the memories that went into it."""

    prompt: Prompt
    lore: Activation
    recalled: RecallResult = NOTHING_RECALLED


class _Conversation(NamedTuple):
    """The parts of a conversation that a prompt may show, and verdicts on the other parts."""

    history: History
    event: Message | None
    tools: tuple[Message, ...]
    off: list[Verdict]


def compose(inputs: Inputs) -> Prompt:
    """Compose the prompt for `inputs`, with a verdict on each text that was considered.

    Raises:
        BudgetError: the required texts do not fit the limit.
    """
    return compose_with_lore(inputs).prompt


def compose_with_lore(inputs: Inputs) -> Composition:
    """Compose the prompt; return it with the lore entries and memories that went into it.

    Raises:
        BudgetError: the required texts do not fit the limit.
    """
    rules, assembly, counter = inputs.rules, inputs.rules.assembly, inputs.rules.counter
    cut, budget = _history_limits(inputs)
    scripts = None
    if inputs.scripts:
        inputs, scripts = _run_scripts(inputs, cut)
    # 1: the parts of the conversation that the prompt may show
    conversation = _shown_conversation(inputs)
    history = conversation.history
    filling = _make_filling(inputs)
    sources = speech_sources(inputs.books)
    notes, filling = expand_notes(  # 2: author's notes that are due
        inputs.notes,
        filling,
        components=inputs.components,
        lore=sources,
        history=history,
        said=inputs.history.user_messages + (inputs.event is not None),
        cut=inputs.cut,
    )
    lore = _activate_lore(inputs, notes, filling)  # 3: active lore entries
    if scripts is not None:
        lore = scripts.lore(lore)
    memories = _recall_memories(inputs)  # 4: memories that fit the moment
    # 5: texts of components, notes, lore entries and facts
    made = _expand_texts(inputs, notes, lore, memories, filling, sources=sources)
    fragments = [one for one in made if isinstance(one, Fragment)]
    not_made: list[Verdict] = []
    if len(fragments) < len(made):
        not_made = [one for one in made if isinstance(one, Verdict)]
    # 6: messages that are always kept
    placed, costs = _fixed_messages(conversation, fragments, rules)
    fitted, already_sent = fit_unsent(  # 7: texts and history messages that fit the budget
        history,
        fragments,
        blocks=rules.blocks,
        rules=budget,
        counter=counter,
        fixed=costs,
        cut=cut,
    )
    anchors, slots = anchor_notes(  # 8: places of anchored notes
        fitted.fragments,
        history,
        first=fitted.first,
        cut=cut,
        origins=inputs.notes.anchored,
        before=inputs.anchors,
    )
    ties = None
    if assembly.ties == "role":
        ties = RoleTies(note=inputs.notes.first_origin, apart=slots.keys())
    messages = place_messages(  # 9: the order of all messages
        fitted.fragments,
        history,
        first=fitted.first,
        fixed=placed,
        slots=slots,
        ties=ties,
    )
    if rules.blocks != "latest":
        messages = mark_facts_as_staying(messages)
    if assembly.squash:
        messages = squash_system_messages(messages)
    if scripts is not None:
        messages = without_emptied(messages)
    memories = mark_shown(memories, fitted.fragments, already_sent)
    prompt = Prompt(
        messages=messages,
        components=inputs.components,
        # The next prompt compares its own values with these to explain why its text differs.
        values=filling.values_named((*inputs.values, "speaker", *inputs.components.compiled.names)),
        dice=rules.dice,
        limit_tokens=rules.budget.limit_tokens,
        layout=rules.layout,
        blocks=rules.blocks,
        assembly=assembly,
        counter=counter,
        history=history,
        fitted=fitted,
        fixed=costs,
        lore=lore,
        memories=memories,
        earlier=_earlier_verdicts(inputs, conversation, not_made, scripts),
        anchors=anchors,
        already_sent=already_sent,
    )
    return Composition(prompt, lore, memories)


def _run_scripts(inputs: Inputs, cut: int) -> tuple[Inputs, ScriptRun]:
    """Return the inputs with the words that regex scripts make of the conversation, and the run."""
    values = {**(clock_values(inputs.now) if inputs.now else {}), **inputs.values}
    run = ScriptRun(inputs.scripts, "prompt", values=values, dice=inputs.rules.dice)
    history, event = run.conversation(
        inputs.history, inputs.event, first=cut, counter=inputs.rules.counter
    )
    return replace(inputs, history=history, event=event), run


def _shown_conversation(inputs: Inputs) -> _Conversation:
    """Return history, event and tool messages, each left out if its component is disabled."""
    disabled, off = inputs.components.disabled, list[Verdict]()
    history, event, tools = inputs.history, inputs.event, inputs.tools
    if "conversation_history" in disabled:
        if len(history):
            off.append(not_expanded("history", "component conversation_history is disabled"))
        history = NO_HISTORY
    if "pending_event" in disabled:
        if event is not None:
            off.append(not_expanded("event", "component pending_event is disabled"))
        event = None
    if "tool_result" in disabled:
        if tools:
            off.append(not_expanded("tools", "component tool_result is disabled"))
        tools = ()
    if inputs.rules.assembly is not PLAIN:
        history = format_history(history, inputs.rules.assembly)
        event = format_event(event, inputs.rules.assembly)
    return _Conversation(history, event, tools, off)


def _history_limits(inputs: Inputs) -> tuple[int, BudgetRules]:
    """Return the index at which the history may start, and the token budget."""
    assembly, budget = inputs.rules.assembly, inputs.rules.budget
    if assembly is PLAIN:
        return inputs.cut, budget
    budget = replace(budget, pin_examples=assembly.pin_examples)
    if assembly.history_cut == "steps":
        return inputs.cut, budget
    # SillyTavern does not remember where it cut the history last. Each turn keeps every message
    # that fits, so the history may start at index 0 and the budget may be filled to 100 percent.
    return 0, replace(budget, keep_percent=100)


def _make_filling(inputs: Inputs) -> Filling:
    """Return the values that templates may name.

    The value `speaker` is the name of the event's speaker. Without an event it is the name on the
    newest message of role user.
    """
    rules, char = inputs.rules, inputs.values.get("char")
    speaker = inputs.event.name if inputs.event is not None else None
    if not speaker:
        newest = inputs.history.newest_user()
        speaker = (newest and newest.name) or inputs.values.get("user", "")
    # For SillyTavern's macros of group chats, an NPC is a group of one: both macros give its name.
    group = {} if char is None else {"charifnotgroup": char, "group": char}
    moment: dict[str, str] = {}
    # Values of the moment need a search of the history and differ each turn, so compute them only
    # if a template may use one. The texts of books and formats are not compiled yet, so assume that
    # they use some.
    if (
        inputs.books
        or rules.assembly is not PLAIN
        or inputs.components.names_moment
        or inputs.notes.compiled.names_moment
    ):
        moment = last_message_values(inputs.history, inputs.event)
        moment |= clock_values(inputs.now) if inputs.now else {}
    return Filling(
        dice=rules.dice,
        counter=rules.counter,
        layout=rules.layout,
        values={**group, **moment, **inputs.values, "speaker": speaker},
        facts=inputs.facts,
        fields=inputs.components.fields,
    )


def _activate_lore(inputs: Inputs, notes: list[ExpandedNote], filling: Filling) -> Activation:
    """Return the active lore entries. Without books, keep the timers of the last turn."""
    if not inputs.books:
        return NO_LORE if inputs.lore_state is NO_STATE else Activation(after=inputs.lore_state)
    rules = inputs.rules
    scanned = tuple(
        one.made.message.content
        for one in notes
        if one.note.scanned and isinstance(one.made, Fragment)
    )
    return activate_lore(
        inputs.books,
        Scan(history=inputs.history, event=inputs.event, texts=scanned, sources=inputs.sources),
        rules=rules.lore,
        limit_tokens=rules.budget.limit_tokens,
        counter=rules.counter,
        work=filling.state.left_for_lore,
        # An entry may be placed in a system message, so its macros read only the values that are
        # allowed in messages of that role.
        values=filling.values_for("system"),
        dice=rules.dice,
        state=inputs.lore_state,
        clock=inputs.clock,
        facts=inputs.facts,
    )


def _recall_memories(inputs: Inputs) -> RecallResult:
    """Return the memories that fit the moment, or none if the prompt has no place for them."""
    if not inputs.memories:
        return NOTHING_RECALLED
    if problem := why_no_place(inputs.components, inputs.facts):
        return refuse_memories(inputs.memories, problem)
    rules = inputs.rules
    return recall_memories(
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


def _expand_texts(
    inputs: Inputs,
    notes: list[ExpandedNote],
    lore: Activation,
    memories: RecallResult,
    filling: Filling,
    *,
    sources: SpeechSources,
) -> list[Fragment | Verdict]:
    """Expand each text that the prompt may hold to a fragment, or return the verdict why not.

    The order matters: each text can read the variables that earlier texts set.
    """
    components, entries = inputs.components, lore.entries
    assembly, layout, counter = inputs.rules.assembly, filling.layout, filling.counter
    outlets = outlet_values(entries) if entries else {}
    if outlets:
        filling = filling.with_values(outlets)
    if entries:
        state = variables_of(
            entries,
            inputs.books,
            filling.state._replace(work_of_lore=lore.work),
            values=filling.values_for("system"),
            dice=filling.dice,
        )
        filling = replace(filling, state=state)
    expanded = components.compiled.expand(filling)
    store = MacroStore(expanded.left)
    again: Sequence[ExpandedNote] = notes
    if notes:
        again = expand_notes_again(
            notes, inputs.notes, filling, store, components=components, lore=sources
        )
    dependences = components.dependences(sources).members
    made = restrict_fragments(expanded.made, dependences, layout=layout, counter=counter)
    if inputs.guidance:
        made = add_guidance(made, inputs.guidance, components=components, counter=counter)
    made = insert_memories(made, memories, components=components, filling=filling, store=store)
    made = fill_components(made, inputs.blocks, components=components, filling=filling, store=store)
    if entries:
        places = components.lore_messages
        if assembly.lore_format:
            places = format_lore_messages(places, assembly, filling, store)
        made += note_fragments(
            again,
            entries,
            components=components,
            keeps_blank=PRESET_FLAGS[inputs.rules.lore.rules].blank_notes_stay,
            layout=layout,
            counter=counter,
        )
        made += lore_fragments(
            entries, components=components, shared_messages=places, layout=layout, counter=counter
        )
        made += (
            outlet_verdicts(entries, components=components, notes=inputs.notes) if outlets else ()
        )
    else:
        made += [one.made for one in again]
    if assembly.examples == "messages":
        made = split_examples(made, assembly, components=components, filling=filling, store=store)
    made += block_fragments(inputs.blocks, counter=counter)
    return drop_facts(made) if DYNAMIC.key in components.disabled else made


def _fixed_messages(
    conversation: _Conversation, fragments: list[Fragment], rules: ComposeRules
) -> tuple[list[PlacedMessage], list[tuple[str, int]]]:
    """Return the messages that are always kept, with their places and their token counts."""
    placed, costs = place_fixed(conversation.event, conversation.tools, counter=rules.counter)
    if rules.assembly.stand_in:
        added = stand_in_message(
            rules.assembly, conversation.history, fragments, answers=bool(placed)
        )
        if added is not None:
            placed.append((HISTORY_ID + 1, "", added))
            costs.append((STAND_IN, added.tokens(rules.counter)))
    return placed, costs


def _earlier_verdicts(
    inputs: Inputs,
    conversation: _Conversation,
    not_made: list[Verdict],
    scripts: ScriptRun | None,
) -> tuple[list[Verdict], ...]:
    """Return the verdicts of the stages before the budget, except those on lore and memories."""
    formats: list[Verdict] = []
    if inputs.rules.assembly is not PLAIN:
        formats = list(format_verdicts(inputs.components, inputs.rules.assembly))
    books = [
        Verdict(stage="activate", item=f"book:{book.label}", kept=True, reason=book.told)
        for book in inputs.books
        # `told` explains to builders why an older version of the book is used, or that the turn
        # waited until the book was read.
        if book.told
    ]
    of_scripts = [] if scripts is None else [*scripts.verdicts()]
    return formats, not_made, [*conversation.off, *inputs.notes.off, *books], of_scripts
