"""Gather: the only reader of world and store for a turn; what it returns is all a prompt knows.

Warm, it makes no query: the view, the history and the company come from memory.
"""

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from evennia.utils import gametime

from evennia_ai.execution_request import ExecutionRequest, execution_request
from evennia_ai.game.inputs.facts import (
    candidates,
    moment,
    passing_facts,
    scanned_sources,
)
from evennia_ai.game.inputs.mind import Mind
from evennia_ai.game.inputs.providers import blocks_of
from evennia_ai.game.recording.heard import (
    CommittedEvent,
    ConversationKey,
    found,
    key_of,
    minute_of,
)
from evennia_ai.game.senses.events import Event
from evennia_ai.game.senses.presence import NPC, bystanders
from evennia_ai.game.senses.text import person_name, plain_name
from evennia_ai.history.projection import minute_in, with_time_line
from evennia_ai.history.records import NewRecord, Record
from evennia_ai.inputs import ComposeRules, Inputs
from evennia_ai.lorebook.activation.timers import NO_STATE, Clock
from evennia_ai.minds.greeting import greeting_record
from evennia_ai.minds.view import NPCView, books_with
from evennia_ai.prompt.blocks import guidance_for
from evennia_ai.prompt.dice import Dice
from evennia_ai.prompt.history import History
from evennia_ai.prompt.messages import Message, ToolSpec, pending
from evennia_ai.prompt.names import spoken
from evennia_ai.prompt.registry import PromptContext, context_for
from evennia_ai.settings.npc import NPCSettings
from evennia_ai.store.authored import components
from evennia_ai.store.history import conversations, lore_state, turns
from evennia_ai.store.history.record_rows import ConversationRef
from evennia_ai.store.history.windows import GREETING, Window, empty, windows

VISITOR: Final = "the visitor"
"""What `{{user}}` is in a room, where no one partner is fixed."""

NAMES: Final = frozenset({"char", "user", "speaker"})
"""What templates may name in the game: `inputs` gives the first two, composing the speaker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What a turn was begun with; it counts to the turn's end, whatever is edited meanwhile."""

    view: NPCView
    """What the NPC is made of."""

    settings: NPCSettings
    """What is set for the NPC alone."""

    request: ExecutionRequest
    """What is composed and asked from."""

    def after(self, messages: Sequence[Message]) -> "Gathered":
        """The same after `messages`: calls of tools and what came of them."""
        return replace(self, request=self.request.after(messages))


def context_of(event: Event | None) -> PromptContext:
    """The context of a turn that answers `event`, with what builders switched off in it."""
    if event is None:
        return context_for("", components.contexts())
    return context_for(event.kind, components.contexts(), private=event.private)


def opening(
    npc: NPC, view: NPCView, talk: ConversationKey, event: Event | None
) -> NewRecord | None:
    """The greeting the NPC opens this conversation with, None where it opens with none.

    Its dice are those of the conversation, so a preview shows what will be said.
    """
    greeting = view.greetings.of_kind.get(talk.kind)
    if greeting is None:
        return None
    seed = f"{npc.id}/{talk.seed}"
    user = spoken(_partner(npc, talk, event))
    speaker = spoken(event.speaker_name) if event and event.speaker_name else user
    text = greeting.spoken(
        npc_name=plain_name(npc.key),
        values={"char": view.char_name, "user": user, "speaker": speaker},
        dice=Dice(turn=seed, conversation=seed),
        other_names=[plain_name(other.key) for other in bystanders(npc)],
    )
    return greeting_record(greeting, text) if text else None


def history_for(heard: CommittedEvent, now: History, *, waiting: Collection[str] = ()) -> History:
    """The history that answers `heard`: all of `now` but the event and what is still `waiting`.

    `waiting` are ids of records that get an answer of their own later.
    """
    before = heard.before
    at = _index_of(heard.record, now)
    if at is None:
        return _without(now, waiting)
    if before.segment == now.segment and before.stop == at:
        later = [m for m in now.between(at + 1, now.stop) if m.record not in waiting]
        return before.appended(*later) if later else before
    return _without(now, {*waiting, heard.record.id})


def pending_message(heard: CommittedEvent, now: History) -> Message:
    """The event as the message being answered.

    It is the message of the history as it is now, so what is known about it (its tokens, its lore)
    is worked out once.
    """
    record = heard.record
    at = _index_of(record, now)
    if at is not None:
        return replace(now[at], block="event", origin="event")
    text = with_time_line(record.body, minute_in(record))
    kind = heard.event.kind
    return pending(text, name=record.name or None, record=record.id, kind=kind)


def _index_of(record: Record, history: History) -> int | None:
    """Where a record stands, looked for from the newest; None where it was left behind."""
    at = history.stop - 1
    while at >= history.earlier and history[at].record != record.id:
        at -= 1
    return at if at >= history.earlier else None


def _without(history: History, records: Collection[str]) -> History:
    """The history without these records."""
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


def gathered(
    mind: Mind, heard: CommittedEvent, *, settings: NPCSettings, tools: Sequence[ToolSpec]
) -> Gathered:
    """What the turn that answers `heard` needs; no later part of it asks world or store again."""
    view = mind.view(settings)
    waiting = mind.waiting_records()
    request = request_for(mind.npc, view, heard, tools=tools, waiting=waiting)
    return Gathered(view=view, settings=settings, request=request)


def request_for(
    npc: NPC,
    view: NPCView,
    heard: CommittedEvent,
    *,
    tools: Sequence[ToolSpec] = (),
    waiting: Collection[str] = (),
) -> ExecutionRequest:
    """What the turn that answers `heard` is composed and asked from."""
    return execution_request(
        inputs_for(npc, view, heard, waiting=waiting),
        npc_ref=str(npc.id),
        conversation=heard.conversation.id,
        event=heard.record.id,
        tools=tools,
    )


def inputs_for(
    npc: NPC, view: NPCView, heard: CommittedEvent, *, waiting: Collection[str] = ()
) -> Inputs:
    """The inputs of the turn that answers `heard`."""
    window = windows(heard.conversation.id)
    return inputs(
        npc,
        view,
        key_of(heard.event),
        conversation=heard.conversation,
        window=window,
        event=heard.event,
        said=pending_message(heard, window.history),
        history=history_for(heard, window.history, waiting=waiting),
        greeting=window.greeting,
    )


def foreseen_inputs(
    npc: NPC, view: NPCView, talk: ConversationKey, *, event: Event | None
) -> Inputs:
    """The inputs of a turn that would answer `event` now; nothing is written.

    Where the NPC would speak first, its greeting is in the history already.
    """
    conversation = found(str(npc.id), talk)
    window = windows(conversation.id) if conversation else empty()
    history, greeting = window.history, window.greeting
    first = opening(npc, view, talk, event) if window.first_reply is None else None
    if first is not None:
        history = history.appended(Message(role="assistant", content=first.body))
        greeting = first.meta[GREETING]
    return inputs(
        npc,
        view,
        talk,
        conversation=conversation,
        window=window,
        event=event,
        said=_foreseen(event, view) if event else None,
        history=history,
        greeting=greeting,
    )


def _foreseen(event: Event, view: NPCView) -> Message:
    """The event as the message that would be answered."""
    minute = minute_of(view.sources.conf.time_suffix)
    text = with_time_line(event.text, minute)
    return pending(text, name=event.speaker_name, kind=event.kind)


def inputs(
    npc: NPC,
    view: NPCView,
    talk: ConversationKey,
    *,
    conversation: ConversationRef | None,
    window: Window,
    event: Event | None,
    said: Message | None,
    history: History,
    greeting: int | None = None,
) -> Inputs:
    """The inputs of a turn in `talk`; `said` is the event as a message, None where there is none.

    `conversation` is None where it was not opened yet, `greeting` is the index of the one it began
    with. The dice are those of the NPC's next turn, so a preview rolls what the turn will roll.
    """
    npc_ref = str(npc.id)
    dice = Dice(
        turn=f"{npc_ref}/{turns.next_number(npc_ref)}", conversation=f"{npc_ref}/{talk.seed}"
    )
    values = {"char": view.char_name, "user": _partner(npc, talk, event)}
    conf = view.sources.conf
    return Inputs(
        components=view.components_in(context_of(event)),
        rules=_rules(view.rules, dice=dice, greeting=greeting),
        history=history,
        event=said,
        notes=view.notes,
        books=books_with(view, player_ref=event.speaker_ref if event else ""),
        blocks=blocks_of(
            npc, event, conversation, paths=conf.context_providers, tools=view.sources.tools
        ),
        values=values,
        cut=window.cut,
        anchors=window.anchors,
        lore_state=lore_state.states(conversation.id) if conversation else NO_STATE,
        clock=_clock(conversation, history, event),
        facts={**view.facts, **passing_facts(npc, event, paths=conf.lore_facts)},
        sources=scanned_sources(npc, view.texts, values=values, dice=dice),
        memories=candidates(npc, event) if conf.memory.enabled else (),
        moment=moment(event),
        guidance=guidance_for(_origin(conversation, event)),
    )


def _origin(conversation: ConversationRef | None, event: Event | None) -> str:
    """The client of the first who spoke to the NPC there, which may be who does so now."""
    known = conversations.origin(conversation) if conversation is not None else ""
    return known or (event.client if event is not None else "")


def _rules(rules: ComposeRules, *, dice: Dice, greeting: int | None) -> ComposeRules:
    """The rules of one turn; without a greeting lore takes the conversation to begin with 0."""
    if greeting is None:
        return replace(rules, dice=dice)
    return replace(rules, dice=dice, lore=replace(rules.lore, greeting_index=greeting))


def _clock(conversation: ConversationRef | None, history: History, event: Event | None) -> Clock:
    """What time it is in the conversation; game seconds are real ones by Evennia's time factor."""
    heard = history.user_messages + (event is not None)
    real_seconds = max(0.0, time.time() - conversation.opened_at) if conversation else 0.0
    return Clock(
        turns=history.replies + 1, messages=heard, seconds=real_seconds * gametime.TIMEFACTOR
    )


def _partner(npc: NPC, talk: ConversationKey, event: Event | None) -> str:
    """The conversation's fixed partner."""
    if talk.kind == "private" and event is not None:
        return event.speaker_name
    return person_name(npc.ai_partner or VISITOR)
