"""Gather: the only reader of world and store for a turn; what it returns is all a prompt knows.

Warm, it makes no query: the view, the history and the company come from memory.
"""

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from evennia.utils import gametime

from evennia_ai.compose import ComposeRules, Inputs
from evennia_ai.execution.request import ExecutionRequest, execution_request
from evennia_ai.game.dates import minute_of
from evennia_ai.game.events import Event
from evennia_ai.game.facts import passing_facts, scanned_sources
from evennia_ai.game.presence import bystanders
from evennia_ai.game.providers.registry import blocks_of
from evennia_ai.game.reminding import candidates, moment
from evennia_ai.game.text import person_name, plain_name
from evennia_ai.history.projection import MINUTE, minute_in, with_time_line
from evennia_ai.history.records import NewRecord, Record, RecordKind
from evennia_ai.lorebook.timers import NO_STATE, Clock
from evennia_ai.minds.speech import greeting_record
from evennia_ai.minds.view import NPCView, books_with
from evennia_ai.prompt.blocks import guidance_for
from evennia_ai.prompt.dice import Dice
from evennia_ai.prompt.history import History
from evennia_ai.prompt.messages import Message, ToolSpec, pending
from evennia_ai.prompt.names import spoken
from evennia_ai.prompt.placement import NO_ANCHORS
from evennia_ai.prompt.registry import PromptContext, context_for
from evennia_ai.store import contexts, conversations, lore_state, turns
from evennia_ai.store.conversations import ConversationKind, ConversationRef

VISITOR: Final = "the visitor"
"""What `{{user}}` is in a room, where no one partner is fixed."""

NAMES: Final = frozenset({"char", "user", "speaker"})
"""What templates may name in the game: `inputs` gives the first two, composing the speaker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """Which conversation is meant, by what tells it apart."""

    kind: ConversationKind
    partner_ref: str = ""
    place_ref: str = ""

    @property
    def seed(self) -> str:
        """What its dice are seeded with, the same before it is opened and after."""
        return f"{self.kind}/{self.partner_ref or self.place_ref}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """An event that is committed: its record, and the history as it was before it.

    `greeting` is what the NPC opened the conversation with because of it, "" where it did not; it
    is committed, the newest message of the history, and not said yet.
    """

    event: Event
    conversation: ConversationRef
    record: Record
    before: History
    greeting: str = ""


def talk_of(event: Event) -> Talk:
    """The conversation an event belongs to: private with its speaker, else that of the room."""
    if event.private:
        return Talk(kind="private", partner_ref=event.speaker_ref)
    return Talk(kind="room", place_ref=event.room_ref or "nowhere")


def context_of(event: Event | None) -> PromptContext:
    """The context of a turn that answers `event`, with what builders switched off in it."""
    if event is None:
        return context_for("", contexts.contexts())
    return context_for(event.kind, contexts.contexts(), private=event.private)


def opened(npc_ref: str, talk: Talk) -> ConversationRef:
    """The conversation, opened when it is new."""
    return conversations.conversation(
        npc_ref,
        kind=talk.kind,
        partner_ref=talk.partner_ref,
        place_ref=talk.place_ref,
    )


def found(npc_ref: str, talk: Talk) -> ConversationRef | None:
    """The conversation if it was ever opened; nothing is written."""
    wanted = (talk.kind, talk.partner_ref, talk.place_ref)
    for known in conversations.conversations_of(npc_ref):
        if (known.kind, known.partner_ref, known.place_ref) == wanted:
            return known
    return None


def record_of(event: Event, *, minute: str = "") -> NewRecord:
    """What is written down of an event: who, and what was said or done, and when if that is told.

    Somebody's own words are a record of kind `user` and of their name. What happened is one of kind
    `event` and of nobody's, so that a prompt shows it without a label: nobody can say it.
    """
    body = f"*{event.text}*" if event.kind == "pose" else event.text
    meta = {"event": event.kind, "speaker": event.speaker_ref, "hops": event.hops}
    told = {
        "to": event.to_ref,
        "language": event.language,
        "volume": event.volume,
        "item": event.item,
        "data": dict(event.data),
        MINUTE: minute,
    }
    return NewRecord(
        kind=RecordKind.EVENT if event.is_happening else RecordKind.USER,
        role="user",
        name="" if event.is_happening else event.speaker_name,
        body=body,
        meta=meta | {name: value for name, value in told.items() if value},
    )


def opening(npc: Any, view: NPCView, talk: Talk, event: Event | None) -> NewRecord | None:
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


def history_for(heard: Heard, *, waiting: Collection[str] = ()) -> History:
    """The history that answers `heard`: all but the event itself and what is still `waiting`.

    `waiting` are ids of records that get an answer of their own later.
    """
    now, before = conversations.history(heard.conversation), heard.before
    at = _index_of(heard.record, now)
    if at is None:
        return _without(now, waiting)
    if before.segment == now.segment and before.stop == at:
        later = [m for m in now.between(at + 1, now.stop) if m.record not in waiting]
        return before.appended(*later) if later else before
    return _without(now, {*waiting, heard.record.id})


def pending_message(heard: Heard) -> Message:
    """The event as the message being answered.

    It is the history's own message elsewhere, so what is known about it (its tokens, its lore) is
    worked out once.
    """
    now, record = conversations.history(heard.conversation), heard.record
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


def request_for(
    npc: Any,
    view: NPCView,
    heard: Heard,
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


def inputs_for(npc: Any, view: NPCView, heard: Heard, *, waiting: Collection[str] = ()) -> Inputs:
    """The inputs of the turn that answers `heard`."""
    return inputs(
        npc,
        view,
        talk_of(heard.event),
        conversation=heard.conversation,
        event=heard.event,
        said=pending_message(heard),
        history=history_for(heard, waiting=waiting),
        greeting=conversations.greeting(heard.conversation),
    )


def foreseen_inputs(npc: Any, view: NPCView, talk: Talk, *, event: Event | None) -> Inputs:
    """The inputs of a turn that would answer `event` now; nothing is written.

    Where the NPC would speak first, its greeting is in the history already.
    """
    conversation = found(str(npc.id), talk)
    history = conversations.history(conversation) if conversation else History()
    greeting = conversations.greeting(conversation) if conversation else None
    has_spoken = conversation is not None and conversations.has_spoken(conversation)
    first = None if has_spoken else opening(npc, view, talk, event)
    if first is not None:
        history = history.appended(Message(role="assistant", content=first.body))
        greeting = first.meta[conversations.GREETING]
    return inputs(
        npc,
        view,
        talk,
        conversation=conversation,
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
    npc: Any,
    view: NPCView,
    talk: Talk,
    *,
    conversation: ConversationRef | None,
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
        blocks=blocks_of(npc, event, conversation, paths=conf.context_providers),
        values=values,
        cut=conversations.cut(conversation) if conversation else 0,
        anchors=conversations.anchors(conversation) if conversation else NO_ANCHORS,
        lore_state=lore_state.read(conversation) if conversation else NO_STATE,
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


def _partner(npc: Any, talk: Talk, event: Event | None) -> str:
    """The conversation's fixed partner."""
    if talk.kind == "private" and event is not None:
        return event.speaker_name
    return person_name(npc.ai_partner or VISITOR)
