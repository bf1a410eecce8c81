"""Gather: the only reader of world and store for a turn; what it returns is all a prompt knows.

Warm, it makes no query: the view, the history and the company come from memory.
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
from evennia_ai.engine.inputs import ComposeRules, Inputs
from evennia_ai.engine.lorebook.activation.timers import NO_STATE, Clock
from evennia_ai.engine.lorebook.entry import SourceName
from evennia_ai.engine.prompt.blocks import DynamicBlock, guidance_for
from evennia_ai.engine.prompt.contexts import PromptContext, context_for
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import Message, ToolSpec, event_message
from evennia_ai.engine.prompt.names import spoken_name
from evennia_ai.engine.prompt.templates.clock import clock_values
from evennia_ai.engine.prompt.time_line import with_time_line
from evennia_ai.npc.inputs.facts import (
    candidates,
    moment,
    passing_facts,
)
from evennia_ai.npc.inputs.meanings import Near
from evennia_ai.npc.inputs.mind import Mind
from evennia_ai.npc.inputs.personas import persona_blocks, persona_sources
from evennia_ai.npc.inputs.providers import blocks_of
from evennia_ai.npc.recording.heard import (
    CommittedEvent,
    ConversationKey,
    found,
    game_moment,
    key_of,
    minute_of,
)
from evennia_ai.npc.senses.events import Event
from evennia_ai.npc.senses.presence import NPC, bystanders, is_npc, known_ref
from evennia_ai.npc.senses.text import one_line, person_name, plain_name, unmarked
from evennia_ai.npc.views.greeting import greeting_record
from evennia_ai.npc.views.view import CardTexts, NPCView, books_with, scanned_texts
from evennia_ai.services.settings.npc import NPCSettings
from evennia_ai.store.authored import contexts
from evennia_ai.store.history import conversations, turns
from evennia_ai.store.history.record_rows import ConversationRef
from evennia_ai.store.history.windows import GREETING, Window, empty_window, lore_states, windows

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

    context: str
    """The name of the kind of turn."""

    request: ExecutionRequest
    """What is composed and asked from."""

    def after(self, messages: Sequence[Message]) -> "Gathered":
        """The same after `messages`: calls of tools and what came of them."""
        return replace(self, request=self.request.after(messages))

    def within(self, limit_tokens: int) -> "Gathered":
        """The same for a prompt of at most so many tokens."""
        inputs = self.request.inputs
        budget = replace(inputs.rules.budget, limit_tokens=limit_tokens)
        bounded = replace(inputs, rules=replace(inputs.rules, budget=budget))
        return replace(self, request=replace(self.request, inputs=bounded))


def context_of(event: Event | None) -> PromptContext:
    """The context of a turn that answers `event`, with what builders switched off in it."""
    if event is None:
        return context_for("", contexts.contexts())
    return context_for(event.kind, contexts.contexts(), private=event.private)


def opening(
    npc: NPC, view: NPCView, talk: ConversationKey, event: Event | None
) -> NewRecord | None:
    """The greeting the NPC opens this conversation with, None where it opens with none.

    Its dice are those of the conversation, so a preview shows what will be said.
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
    """The event as the message that is answered, and the history that it answers.

    That history is all but the event itself and the records still `waiting` for an answer of their
    own. The message is the history's own elsewhere, so what is known about it (its tokens, its
    lore) is worked out once.
    """
    before, record = heard.before, heard.record
    at = now.stop - 1
    while at >= now.earlier and now[at].record != record.id:
        at -= 1
    if at < now.earlier:  # it was left behind
        text = with_time_line(record.body, minute_in(record))
        said = event_message(
            text, name=record.name or None, record=record.id, kind=heard.event.kind
        )
        return said, _without(now, waiting)
    said = replace(now[at], block="event", origin="event")
    if before.segment == now.segment and before.stop == at:
        later = [m for m in now.between(at + 1, now.stop) if m.record not in waiting]
        return said, before.appended(*later) if later else before
    return said, _without(now, {*waiting, record.id})


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
    mind: Mind,
    heard: CommittedEvent,
    *,
    settings: NPCSettings,
    tools: Sequence[ToolSpec],
    near: Near = (),
    waited_for: Collection[str] = (),
) -> Gathered:
    """What the turn that answers `heard` needs; no later part of it asks world or store again.

    `near` is what is known of the meanings of memories, `waited_for` are the names of books that
    were read for it.
    """
    npc, view, event = mind.npc, mind.view(settings), heard.event
    context, window = context_of(event), windows(heard.conversation.id)
    waiting = mind.waiting_records()
    said, history = said_and_before(heard, window.history, waiting=waiting)
    made = inputs(
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
    )
    if heard.hint:
        made = replace(made, blocks=(*made.blocks, _hint(heard.hint)))
    request = execution_request(
        _telling_of(replace(made, near=near) if near else made, waited_for),
        npc_ref=mind.ref,
        conversation=heard.conversation.id,
        event=heard.record.id,
        tools=tools,
    )
    return Gathered(view=view, settings=settings, context=context.name, request=request)


def _hint(hint: str) -> DynamicBlock:
    """What a builder asks of one answer, as a fact of the moment; its manifest keeps it."""
    return DynamicBlock(key="hint", text=f"How you answer this time (the game master): {hint}")


def _telling_of(made: Inputs, waited_for: Collection[str]) -> Inputs:
    """The inputs with books that say that the turn waited for them."""
    if not waited_for:
        return made
    told = "it was read for this turn, which waited"
    books = [replace(b, told=told) if b.label in waited_for else b for b in made.books]
    return replace(made, books=tuple(books))


def foreseen_inputs(
    npc: NPC, view: NPCView, talk: ConversationKey, *, event: Event | None
) -> Inputs:
    """The inputs of a turn that would answer `event` now; nothing is written.

    Where the NPC would speak first, its greeting is in the history already.
    """
    conversation = found(str(npc.id), talk)
    window = windows(conversation.id) if conversation else empty_window()
    history, greeting = window.history, window.greeting
    first = opening(npc, view, talk, event) if window.first_reply is None else None
    if first is not None:
        history = history.appended(Message(role="assistant", content=first.body))
        greeting = first.meta[GREETING]
    return inputs(
        npc,
        view,
        talk,
        context=context_of(event),
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
    return event_message(text, name=event.speaker_name, kind=event.kind)


def inputs(
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
    now = game_moment()
    clocked = {**values, **clock_values(now)} if view.texts else values
    conf = view.sources.conf
    return Inputs(
        components=view.components_in(context),
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
        guidance=guidance_for(_origin(conversation, event)),
    )


def _origin(conversation: ConversationRef | None, event: Event | None) -> str:
    """The client of the first who spoke to the NPC there, which may be who does so now."""
    known = conversations.origin_of(conversation) if conversation is not None else ""
    return known or (event.client if event is not None else "")


def scanned_sources(
    npc: NPC, of_card: CardTexts, *, values: Mapping[str, str], dice: Dice
) -> dict[SourceName, str]:
    """The texts beside the conversation that an entry may ask to be scanned, as they are now."""
    return scanned_texts(of_card, values=values, dice=dice, room=_described(npc.location))


def _described(room: Any) -> str:
    described = room.db.desc if room is not None else None
    return _plain(described) if isinstance(described, str) else ""


@lru_cache(maxsize=256)
def _plain(described: str) -> str:
    return one_line(unmarked(described))


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
