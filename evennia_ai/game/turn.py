"""The turn: an event that is to be answered becomes a reply, or leaves a trace of why not.

gather -> compose -> commit the prompt -> ask the model -> clean -> commit the reply -> speak.
Where the prompt is nearly full, the history is compacted first and the prompt composed again.
What the turn needs of the moment it was heard travels with it, so a second speaker changes
nothing. A failure ends the turn: it is committed, logged, and covered by the NPC's fallback line.
"""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

from evennia.utils import logger
from twisted.internet.defer import CancelledError, Deferred, maybeDeferred
from twisted.python.failure import Failure

from evennia_ai.compose import Composition, Inputs, compose_with_lore
from evennia_ai.game import gather
from evennia_ai.game.compacting import Outcome, Wanted
from evennia_ai.game.fullness import Fullness, fullness_of
from evennia_ai.game.gather import Heard
from evennia_ai.game.made_of import made_of
from evennia_ai.game.output import pose, speak, whisper
from evennia_ai.game.perception import bystanders
from evennia_ai.game.recorded_inputs import recorded_inputs
from evennia_ai.game.retrying import DATABASE_ERRORS, until_written
from evennia_ai.game.runtime import runtime
from evennia_ai.game.speech import speech
from evennia_ai.game.text import plain_name
from evennia_ai.game.view import NPCView, revisions_with
from evennia_ai.history.drafts import Draft, draft_of
from evennia_ai.history.records import NewRecord, RecordKind
from evennia_ai.history.sending import storable_messages
from evennia_ai.llm.chat import (
    ChatMessage,
    ChatReply,
    ChatRequest,
    Passage,
    chat_messages,
    sent_sha256,
)
from evennia_ai.llm.errors import ModelRubbish
from evennia_ai.llm.resilience import Clock
from evennia_ai.llm.roles import adapt
from evennia_ai.prompt.breakpoints import CacheAccount, account
from evennia_ai.prompt.breaks import Sent
from evennia_ai.prompt.errors import BudgetError
from evennia_ai.prompt.messages import Message
from evennia_ai.prompt.prompt import Prompt
from evennia_ai.store import conversations, turns
from evennia_ai.store.conversations import ConversationRef
from evennia_ai.store.errors import HistoryConflictError, StoreError
from evennia_ai.store.turns import StoredTurn

RETRY_SECONDS: Final = 5.0
MOST_TRIES: Final = 3
"""How often a turn is begun whose prompt cannot be made or committed."""

_ACTION: Final = re.compile(r"\*([^*\n]+)\*")


class Mind(Protocol):
    """What a turn needs of the NPC whose turn it is; the hooks tell it how the turn goes."""

    npc: Any
    ref: str

    @property
    def enabled(self) -> bool: ...

    @property
    def fallback_line(self) -> str: ...

    @property
    def waiting_records(self) -> Collection[str]: ...

    def view(self) -> NPCView: ...

    def started(self, turn: "Turn") -> None: ...

    def sent_before(self, conversation: ConversationRef) -> Sent | None: ...

    def prompted(self, stored: StoredTurn, prompt: Prompt, sent: Sent) -> None: ...

    def answered(self, turn: "Turn") -> None: ...

    def rested(self, conversation: ConversationRef, prompt: Prompt) -> None: ...

    def put_back(self, turn: "Turn", *, delay_seconds: float) -> None: ...


class Turn:
    """One answer of one NPC to one event; `run` may be called again only by the turn itself."""

    def __init__(self, mind: Mind, heard: Heard) -> None:
        self.heard: Final = heard
        self._mind: Final = mind
        self._npc_ref: Final = mind.ref
        self._tries = 0
        self._greeting = heard.greeting

    def run(self) -> "Deferred[None] | None":
        """Take the turn; a Deferred that fires when it has ended, None where it ended at once."""
        self._mind.started(self)
        return self._tried(self._with_room)

    def _tried(self, step: "Callable[[], Deferred[None] | None]") -> "Deferred[None] | None":
        """Take a step up to the call of the model, if anybody still waits for it."""
        try:
            if self._is_stale():
                return None
            self.greet()
            return step()
        except BudgetError as error:
            self._log(f"the prompt does not fit: {error}")
            self._unanswered()
        except DATABASE_ERRORS as error:
            self._again(error)
        return None

    def _with_room(self) -> "Deferred[None] | None":
        """Send the prompt, after compacting where it is nearly full."""
        inputs, composed = self._composed()
        fullness = fullness_of(composed.prompt, cut=inputs.cut)
        compactor = runtime().compactor
        if not compactor.is_due(fullness, "turn"):
            return self._sent_off(inputs, composed)
        wanted = self._wanted(fullness)

        def compacted(outcome: Outcome) -> "Deferred[None] | None":
            if outcome.stopped:
                return None
            return self._tried(lambda: self._sent_after(outcome, wanted))

        return compactor.compact(wanted).addCallback(compacted)

    def _wanted(self, fullness: Fullness) -> Wanted:
        """The compaction without which the turn would have too little room."""
        return Wanted(
            conversation=self.heard.conversation,
            npc_name=self._mind.view().char_name,
            asked_by=f"turn {turns.next_number(self._npc_ref)}",
            is_pressing=True,
            fullness=fullness,
            unanswered={*self._mind.waiting_records, self.heard.record.id},
        )

    def _sent_after(self, outcome: Outcome, wanted: Wanted) -> "Deferred[None]":
        """Send the prompt as it is now; one after a compaction is looked at like any other."""
        inputs, composed = self._composed()
        if outcome.record is not None:
            runtime().compactor.look_again(composed.prompt, wanted)
        return self._sent_off(inputs, composed)

    def _sent_off(self, inputs: Inputs, composed: Composition) -> "Deferred[None]":
        stored, request = self._begun(inputs, composed)
        answered = self._asked(stored, request)
        where = self.heard.conversation
        return answered.addCallback(lambda _: self._mind.rested(where, composed.prompt))

    def greet(self) -> None:
        """Say the greeting that the event was recorded with, once."""
        if self._greeting and not self._is_stale():
            greeting, self._greeting = self._greeting, ""
            self._say(greeting)

    def _composed(self) -> tuple[Inputs, Composition]:
        mind = self._mind
        inputs = gather.inputs_for(mind.npc, mind.view(), self.heard, waiting=mind.waiting_records)
        return inputs, compose_with_lore(inputs)

    def _begun(self, inputs: Inputs, composed: Composition) -> tuple[StoredTurn, ChatRequest]:
        """Commit the prompt: after this, and only after this, the model may be asked."""
        mind, heard = self._mind, self.heard
        draft = self._draft(composed, inputs)
        begun = turns.begin(
            heard.conversation, draft=draft, event=heard.record, lore=composed.lore.after
        )
        mind.prompted(begun.turn, composed.prompt, self._sent(composed.prompt))
        return begun.turn, self._request(composed, begun.messages)

    def _draft(self, composed: Composition, inputs: Inputs) -> Draft:
        prompt, heard, live = composed.prompt, self.heard, runtime()
        return draft_of(
            prompt,
            event=heard.record,
            account=self._account(prompt),
            model=live.access.model_id or live.access.name,
            revisions=revisions_with(self._mind.view(), player_ref=heard.event.speaker_ref),
            sent_sha256=sent_sha256(_outgoing(storable_messages(prompt.messages))),
            silent=composed.lore.silent,
            inputs=self._recorded(inputs),
        )

    def _account(self, prompt: Prompt) -> CacheAccount | None:
        """What the prompt shares with the one before it, None where that is not known."""
        older = self._mind.sent_before(self.heard.conversation)
        if older is None:
            return None
        newer = self._sent(prompt)
        return account(older, newer, counter=prompt.counter, components=prompt.components)

    def _sent(self, prompt: Prompt) -> Sent:
        """What is remembered of the prompt until the next one."""
        return replace(prompt.sent, revisions=self._mind.view().revisions)

    def _recorded(self, inputs: Inputs) -> dict[str, Any]:
        """What the prompt is made from, for its manifest."""
        where = self.heard.conversation
        values = recorded_inputs(
            inputs,
            event=self.heard.record,
            now=conversations.history(where),
            reply_tokens=runtime().conf.reply_tokens,
        )
        newest_record = conversations.newest_record(where)
        sources = made_of(self._mind.view(), inputs, newest_record=newest_record)
        return {**values, "made_of": sources}

    def _asked(self, stored: StoredTurn, request: ChatRequest) -> "Deferred[None]":
        asked = maybeDeferred(runtime().access.model.complete, request)
        asked.addCallback(self._spoken)
        answered: Deferred[None] = asked.addCallbacks(
            self._answered, self._failed, callbackArgs=(stored,), errbackArgs=(stored,)
        )
        return answered.addErrback(self._unwritten, stored, runtime().clock)

    def _request(self, composed: Composition, messages: Sequence[Message]) -> ChatRequest:
        live = runtime()
        return ChatRequest(
            messages=_outgoing(messages),
            model=live.access.model_id,
            max_tokens=live.conf.reply_tokens,
            timeout_seconds=live.conf.model_timeout_seconds,
            passages=_passages(composed),
            speaker=self._mind.view().char_name,
            question=self.heard.event.text,
            cache_key=f"npc-{self._npc_ref}",
        )

    def _spoken(self, reply: ChatReply) -> str:
        """What of the reply is said; ModelRubbish where that is nothing."""
        npc = self._mind.npc
        text = speech(
            reply.text,
            own_names=(self._mind.view().char_name, plain_name(npc.key)),
            other_names=[plain_name(other.key) for other in bystanders(npc)],
        )
        if not text:
            raise ModelRubbish(reply.model, "nothing of it can be said aloud")
        return text

    def _answered(self, text: str, stored: StoredTurn) -> None:
        stale = self._is_stale()
        if stale:
            turns.fail(stored, f"dropped: {stale}")
            return
        self._end(lambda: turns.finish(stored, [_said(text)]))
        self._mind.answered(self)
        self._say(text)

    def _failed(self, failure: Failure, stored: StoredTurn) -> None:
        """Commit the failure and say the fallback line, unless nobody waits for it any more."""
        why = failure.getErrorMessage()
        stale = self._is_stale()
        if failure.check(CancelledError) or stale:
            turns.fail(stored, f"dropped: {stale or why}")
            return
        self._log(f"turn {stored.number}: {why}")
        line = self._mind.fallback_line
        self._end(lambda: turns.fail(stored, why, new=[_said(line, fallback=True)]))
        self._say(line)

    def _end(self, end: Callable[[], object]) -> None:
        """Commit the end, after what another process may have written while the model thought."""
        try:
            end()
        except HistoryConflictError as error:
            self._log(f"the end of a turn is written again: {error}")
            end()

    def _unwritten(self, failure: Failure, stored: StoredTurn, clock: Clock) -> None:
        """The end of the turn could not be committed: what is not in the history is not said."""
        failure.trap(*DATABASE_ERRORS)
        why = f"the end of the turn was not written, nothing is said: {failure.value}"
        self._log(f"turn {stored.number}: {why}")
        doing = f"NPC {self._npc_ref}: turn {stored.number} is not closed"
        until_written(lambda: turns.fail(stored, why), doing, clock=clock)

    def _unanswered(self) -> None:
        """Say the fallback line where there is no turn to end."""
        line = self._mind.fallback_line
        try:
            conversations.append(self.heard.conversation, [_said(line, fallback=True)])
        except StoreError as error:
            self._log(f"the fallback line was not written, nothing is said: {error}")
            return
        self._say(line)

    def _again(self, error: Exception) -> None:
        """Try later: the event is committed, the model was not asked."""
        self._tries += 1
        if self._tries >= MOST_TRIES:
            self._log(f"given up, the prompt cannot be made or committed: {error}")
            return
        self._log(f"the prompt cannot be made or committed, no model is asked: {error}")
        self._mind.put_back(self, delay_seconds=RETRY_SECONDS)

    def _say(self, text: str) -> None:
        event, npc = self.heard.event, self._mind.npc
        hops = event.hops + 1
        action = _ACTION.fullmatch(text)
        if event.private:
            whisper(npc, self._partner(), text, hops=hops)
        elif action:
            pose(npc, action[1].strip(), hops=hops)
        else:
            speak(npc, text, hops=hops)

    def _partner(self) -> Any:
        here = bystanders(self._mind.npc)
        return next((who for who in here if str(who.id) == self.heard.event.speaker_ref), None)

    def _is_stale(self) -> str:
        """Why nobody waits for this turn any more, "" while somebody does."""
        npc, event = self._mind.npc, self.heard.event
        if npc.pk is None:
            return "the NPC is gone"
        if not self._mind.enabled:
            return "the NPC was switched off"
        if (str(npc.location.id) if npc.location else "") != event.room_ref:
            return "the NPC is somewhere else now"
        if event.private and self._partner() is None:
            return f"{event.speaker_name} is not here any more"
        return ""

    def _log(self, problem: str) -> None:
        logger.log_err(f"evennia_ai: NPC {self._npc_ref}: {problem}")


def _said(text: str, *, fallback: bool = False) -> NewRecord:
    meta = {"fallback": True} if fallback else {}
    return NewRecord(kind=RecordKind.ASSISTANT, role="assistant", body=text, meta=meta)


def _outgoing(messages: Sequence[Message]) -> tuple[ChatMessage, ...]:
    """The messages as the model's provider takes them."""
    return adapt(chat_messages(messages), profile=runtime().access.roles)


def _passages(composed: Composition) -> tuple[Passage, ...]:
    """The lore that was kept, for a responder that quotes."""
    kept = {piece.claim.origin for piece in composed.prompt.pieces}
    return tuple(
        Passage(
            label=entry.origin,
            text=entry.text,
            score=float(entry.priority),
            constant=entry.constant,
        )
        for entry in composed.lore.entries
        if entry.origin in kept
    )
