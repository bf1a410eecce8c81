"""Gather: reads the world and the store for a turn. A prompt depends on nothing else.

It makes no query once the caches are filled, because view, history and company are in memory.
"""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from evennia.utils import gametime

from evennia_ai.engine.execution_request import ExecutionRequest, execution_request
from evennia_ai.engine.history.projection import minute_in
from evennia_ai.engine.history.records import NewRecord
from evennia_ai.engine.history.role_markup import neutralize_markup
from evennia_ai.engine.inputs import ComposeRules, Inputs
from evennia_ai.engine.lorebook.activation.timers import NO_STATE, Clock
from evennia_ai.engine.lorebook.entry import SourceName
from evennia_ai.engine.prompt.blocks import DynamicBlock, guidance_for
from evennia_ai.engine.prompt.contexts import PromptContext, context_for
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.language import VALUE as LANGUAGE_VALUE
from evennia_ai.engine.prompt.messages import Message, ToolSpec, event_message, with_time_line
from evennia_ai.engine.prompt.names import spoken_name
from evennia_ai.engine.prompt.personas import NotePlace, Persona, persona_block
from evennia_ai.engine.prompt.templates.clock import clock_values
from evennia_ai.npc.inputs.facts import (
    candidates,
    moment,
    passing_facts,
)
from evennia_ai.npc.inputs.meanings import Near
from evennia_ai.npc.inputs.mind import Mind
from evennia_ai.npc.inputs.providers import blocks_of
from evennia_ai.npc.recording.heard import (
    CommittedEvent,
    ConversationKey,
    find_conversation,
    game_moment,
    key_of,
    minute_of,
)
from evennia_ai.npc.senses.events import Event
from evennia_ai.npc.senses.languages import language_spoken
from evennia_ai.npc.senses.presence import NPC, bystanders, is_npc, known_ref
from evennia_ai.npc.senses.text import one_line, person_name, plain_name, strip_markup
from evennia_ai.npc.views.greeting import greeting_record
from evennia_ai.npc.views.view import CardTexts, NPCView, books_with, scanned_texts
from evennia_ai.services.settings.npc import NPCSettings
from evennia_ai.store.authored import contexts
from evennia_ai.store.authored.notes import NOTE
from evennia_ai.store.authored.personas import persona_of
from evennia_ai.store.history import conversations, turns
from evennia_ai.store.history.record_rows import ConversationRef
from evennia_ai.store.history.windows import GREETING, Window, empty_window, lore_states, windows

VISITOR: Final = "the visitor"
"""The value of `{{user}}` in a room, where the NPC has no fixed partner."""

NAMES: Final = frozenset({"char", "user", "speaker"})
"""The macros of the game. `make_inputs` sets the values of the first two; composing sets
"speaker"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """Everything that a turn needs.

    It stays the same until the turn ends, also if somebody edits it.
    """

    view: NPCView
    """The components, card, books and notes of the NPC."""

    settings: NPCSettings
    """The settings of the NPC."""

    context: str
    """The name of the turn's context, such as "whisper"."""

    request: ExecutionRequest
    """The inputs of the prompt, and the tools to offer."""

    def after(self, messages: Sequence[Message]) -> "Gathered":
        """Return a copy for the next round, with tool calls and their results added."""
        return replace(self, request=self.request.after(messages))

    def reminded(self, reminder: str) -> "Gathered":
        """Return a copy with a reminder of how to answer, as a fact of the moment."""
        inputs = self.request.inputs
        blocks = (*inputs.blocks, replace(_hint_block("the game", reminder), key="reminder"))
        return replace(self, request=replace(self.request, inputs=replace(inputs, blocks=blocks)))

    def within(self, limit_tokens: int) -> "Gathered":
        """Return a copy for a prompt of at most so many tokens."""
        inputs = self.request.inputs
        budget = replace(inputs.rules.budget, limit_tokens=limit_tokens)
        bounded = replace(inputs, rules=replace(inputs.rules, budget=budget))
        return replace(self, request=replace(self.request, inputs=bounded))


def context_of(event: Event | None) -> PromptContext:
    """Return the context of a turn that answers `event`, with the switches of builders."""
    if event is None:
        return context_for("", contexts.contexts())
    return context_for(event.kind, contexts.contexts(), private=event.private)


def opening_greeting(
    npc: NPC, view: NPCView, talk: ConversationKey, event: Event | None
) -> NewRecord | None:
    """Return the greeting with which the NPC opens this conversation, None for none.

    Its dice depend only on the conversation, so a preview shows the same greeting.
    """
    greeting = view.greetings.of_kind.get(talk.kind)
    if greeting is None:
        return None
    seed, there = f"{npc.id}/{talk.seed}", bystanders(npc)
    user = spoken_name(_partner(npc, talk, event))
    speaker = spoken_name(event.speaker_name) if event and event.speaker_name else user
    text = greeting.spoken(
        npc_name=plain_name(npc.key),
        values={
            **clock_values(game_moment()),
            "char": view.char_name,
            "user": user,
            "speaker": speaker,
        },
        dice=Dice(turn=seed, conversation=seed),
        other_names=[plain_name(other.key) for other in there],
    )
    people = (
        [known_ref(npc, who) for who in there if not is_npc(who)] if talk.kind == "room" else []
    )
    return greeting_record(greeting, text, heard_by=people) if text else None


def said_and_before(
    heard: CommittedEvent, now: History, *, waiting: Collection[str] = ()
) -> tuple[Message, History]:
    """Return the event as a message, and the history that the turn answers.

    The history has everything except the event itself and the records in `waiting`, which will get
    turns of their own. Lines that the turn answers as well are its newest messages, also if the NPC
    spoke after them. If the event is in the history, the message comes from there, so that tokens
    and keys found in it are computed once.
    """
    before, record = heard.before, heard.record
    at = now.stop - 1
    while at >= now.earlier and now[at].record != record.id:
        at -= 1
    if at < now.earlier:  # the event itself was summarised
        text = with_time_line(record.body, minute_in(record))
        said = event_message(
            text, name=record.name or None, record=record.id, kind=heard.event.kind
        )
        return said, _without_records(now, waiting)
    said = replace(now[at], block="event", origin="event")
    if heard.joined:
        lines = {one.id for one in heard.lines}
        joined = [message for message in now if message.record in lines - {record.id}]
        return said, _without_records(now, {*waiting, *lines}).appended(*joined)
    if before.segment == now.segment and before.stop == at:
        later = [m for m in now.between(at + 1, now.stop) if m.record not in waiting]
        return said, before.appended(*later) if later else before
    return said, _without_records(now, {*waiting, record.id})


def _without_records(history: History, records: Collection[str]) -> History:
    """Return the history without these records."""
    kept = [message for message in history if message.record not in records]
    if len(kept) == len(history):
        return history
    return History(
        kept,
        earlier=history.earlier,
        earlier_users=history.earlier_users,
        earlier_replies=history.earlier_replies,
        segment=history.segment,
    )


def gather_turn(
    mind: Mind,
    heard: CommittedEvent,
    *,
    settings: NPCSettings,
    tools: Sequence[ToolSpec],
    near: Near = (),
    waited_for: Collection[str] = (),
) -> Gathered:
    """Gather what the turn that answers `heard` needs. After this, the turn reads nothing more.

    Args:
        near: How close memories are in meaning to what was said.
        waited_for: The names of books for which the turn waited, for the trace.
    """
    npc, view, event = mind.npc, mind.view(settings), heard.event
    context, window = context_of(event), windows(heard.conversation.id)
    waiting = mind.waiting_records()
    said, history = said_and_before(heard, window.history, waiting=waiting)
    made = make_inputs(
        npc,
        view,
        key_of(event),
        context=context,
        conversation=heard.conversation,
        window=window,
        event=event,
        said=said,
        history=history,
        greeting=window.greeting,
        settings=settings,
    )
    if heard.hint:
        made = replace(made, blocks=(*made.blocks, _hint_block("the game master", heard.hint)))
    request = execution_request(
        _mark_waited_books(replace(made, near=near) if near else made, waited_for),
        npc_ref=mind.ref,
        conversation=heard.conversation.id,
        event=heard.record.id,
        tools=tools,
    )
    return Gathered(view=view, settings=settings, context=context.name, request=request)


def _hint_block(whose: str, hint: str) -> DynamicBlock:
    """Return an instruction for this answer as a block, so that the manifest keeps it."""
    return DynamicBlock(key="hint", text=f"How you answer this time ({whose}): {hint}")


def _mark_waited_books(made: Inputs, waited_for: Collection[str]) -> Inputs:
    """Return the inputs with a remark on each lorebook that the turn had to wait for."""
    if not waited_for:
        return made
    told = "the turn waited until it was parsed"
    books = [replace(b, told=told) if b.label in waited_for else b for b in made.books]
    return replace(made, books=tuple(books))


def foreseen_inputs(
    npc: NPC, view: NPCView, talk: ConversationKey, *, event: Event | None
) -> Inputs:
    """Return the inputs of a turn that would answer `event` now. Write nothing.

    If the NPC would open the conversation with a greeting, the history contains it.
    """
    conversation = find_conversation(str(npc.id), talk)
    window = windows(conversation.id) if conversation else empty_window()
    history, greeting = window.history, window.greeting
    first = opening_greeting(npc, view, talk, event) if window.first_reply is None else None
    if first is not None:
        history = history.appended(Message(role="assistant", content=first.body))
        greeting = first.meta[GREETING]
    return make_inputs(
        npc,
        view,
        talk,
        context=context_of(event),
        conversation=conversation,
        window=window,
        event=event,
        said=_foreseen_message(event, view) if event else None,
        history=history,
        greeting=greeting,
    )


def _foreseen_message(event: Event, view: NPCView) -> Message:
    """Return the event as the message that the turn would answer."""
    minute = minute_of(view.sources.conf.time_suffix)
    text = with_time_line(event.text, minute)
    return event_message(text, name=event.speaker_name, kind=event.kind)


def make_inputs(
    npc: NPC,
    view: NPCView,
    talk: ConversationKey,
    *,
    context: PromptContext,
    conversation: ConversationRef | None,
    window: Window,
    event: Event | None,
    said: Message | None,
    history: History,
    greeting: int | None = None,
    settings: NPCSettings | None = None,
) -> Inputs:
    """Return the inputs of a turn in the conversation `talk`.

    The dice are those of the NPC's next turn, so a preview has the same results as the turn.

    Args:
        conversation: None if the conversation was never opened.
        said: The event as a message, None without an event.
        greeting: The index of the greeting that opened the conversation.
        settings: The settings of the NPC, if the caller has already read them.
    """
    npc_ref = str(npc.id)
    dice = Dice(
        turn=f"{npc_ref}/{turns.next_number(npc_ref)}", conversation=f"{npc_ref}/{talk.seed}"
    )
    values = {"char": view.char_name, "user": _partner(npc, talk, event)}
    private = event if talk.kind == "private" else None
    if language := language_spoken(settings or npc.ai.settings, private):
        values[LANGUAGE_VALUE] = language
    now = game_moment()
    clocked = {**values, **clock_values(now)} if view.texts else values
    conf = view.sources.conf
    return Inputs(
        components=view.components_in(context, values),
        rules=_rules(view.rules, dice=dice, greeting=greeting),
        history=history,
        event=said,
        notes=view.notes,
        books=books_with(view, player_ref=event.known_ref if event else ""),
        blocks=(
            *blocks_of(npc, event, conversation, conf=conf, tools=view.sources.tools),
            *persona_blocks(view, event),
        ),
        values=values,
        cut=window.cut,
        anchors=window.anchors,
        lore_state=lore_states(conversation.id) if conversation else NO_STATE,
        now=now,
        clock=_clock(conversation, history, event),
        facts={**view.facts, **passing_facts(npc, event, paths=conf.lore_facts)},
        sources={
            **scanned_sources(npc, view.texts, values=clocked, dice=dice),
            **persona_sources(view, event),
        },
        memories=candidates(npc, event) if conf.memory.enabled else (),
        moment=moment(event),
        scripts=view.scripts,
        guidance=guidance_for(_origin(conversation, event)),
    )


def _origin(conversation: ConversationRef | None, event: Event | None) -> str:
    """Return the client of the conversation's first speaker.

    Without one, return the current client.
    """
    known = conversations.origin_of(conversation) if conversation is not None else ""
    return known or (event.client if event is not None else "")


def scanned_sources(
    npc: NPC, of_card: CardTexts, *, values: Mapping[str, str], dice: Dice
) -> dict[SourceName, str]:
    """Return the texts of card and room that lore entries may scan now."""
    return scanned_texts(of_card, values=values, dice=dice, room=_room_text(npc.location))


def _room_text(room: Any) -> str:
    described = room.db.desc if room is not None else None
    return _plain_description(described) if isinstance(described, str) else ""


@lru_cache(maxsize=256)
def _plain_description(described: str) -> str:
    return one_line(strip_markup(described))


def _rules(rules: ComposeRules, *, dice: Dice, greeting: int | None) -> ComposeRules:
    """Return the rules of this turn, with its dice and the index of its greeting."""
    if greeting is None:
        return replace(rules, dice=dice)
    return replace(rules, dice=dice, lore=replace(rules.lore, greeting_index=greeting))


def _clock(conversation: ConversationRef | None, history: History, event: Event | None) -> Clock:
    """Return the turns, messages and seconds of game time in the conversation so far."""
    heard = history.user_messages + (event is not None)
    real_seconds = max(0.0, time.time() - conversation.opened_at) if conversation else 0.0
    return Clock(
        turns=history.replies + 1, messages=heard, seconds=real_seconds * gametime.TIMEFACTOR
    )


def _partner(npc: NPC, talk: ConversationKey, event: Event | None) -> str:
    """Return the name of the NPC's partner in the conversation, for `{{user}}`."""
    if talk.kind == "private" and event is not None:
        return event.speaker_name
    return person_name(npc.ai_partner or VISITOR)


def spoken_persona(view: NPCView, event: Event | None) -> Persona | None:
    """Return the persona of the player who caused the event, None if there is none.

    Makes no query once cached.
    """
    if not view.sources.conf.persona_characters or event is None or not event.speaker_ref:
        return None
    if event.speaker_rank == "NPC" or event.known_ref != event.speaker_ref:
        return None
    persona = persona_of(event.speaker_ref)
    return persona if persona is not None and persona.is_read_by_npcs else None


def persona_blocks(view: NPCView, event: Event | None) -> tuple[DynamicBlock, ...]:
    """Return the block with the speaker's persona, an empty tuple without one."""
    persona = spoken_persona(view, event)
    if persona is None or event is None:
        return ()
    block = persona_block(
        replace(persona, text=_plain_persona(persona.text)),
        owner_ref=event.speaker_ref,
        name=event.speaker_name,
        note=_note_place(view),
    )
    return () if block is None else (block,)


@lru_cache(maxsize=256)
def _plain_persona(text: str) -> str:
    """Return a persona on one line, without markup that could imitate facts or messages."""
    return neutralize_markup(one_line(text))


def persona_sources(view: NPCView, event: Event | None) -> dict[SourceName, str]:
    """Return the speaker's persona as a text that lore entries may scan."""
    persona = spoken_persona(view, event)
    return {} if persona is None else {"persona": persona.text}


def _note_place(view: NPCView) -> NotePlace:
    """Return the place of the NPC's author's note, next to which a persona may be placed.

    It is the note with the default key, else the first one.
    """
    notes = [note for note in view.sources.notes if note.enabled and note.content]
    notes.sort(key=lambda note: note.key != NOTE)
    return NotePlace(depth=notes[0].depth, order=notes[0].order) if notes else NotePlace()
