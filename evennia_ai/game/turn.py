"""The turn: an event that is to be answered becomes a reply, or leaves a trace of why not.

gather -> compose -> commit the prompt -> ask the model -> act, commit, ask again -> clean ->
commit the reply -> speak. Where the prompt is nearly full, the history is compacted first and the
prompt composed again. What the turn needs of the moment it was heard travels with it, so a second
speaker changes nothing. A failure ends the turn: it is committed, logged, and covered by the NPC's
fallback line.
"""

from collections.abc import Generator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from evennia.utils import logger
from twisted.internet.defer import CancelledError, Deferred, inlineCallbacks, maybeDeferred

from evennia_ai.errors import (
    BudgetError,
    ModelRubbish,
    ModelTimeout,
    ModelUnavailable,
    StoreError,
    ThrashError,
    told,
)
from evennia_ai.game.acting import Acted, Actor, Acts
from evennia_ai.game.calls import Call
from evennia_ai.game.committing import Commits
from evennia_ai.game.composing import Composer, with_room
from evennia_ai.game.endpoints import Access
from evennia_ai.game.events import payer_of
from evennia_ai.game.gather import Heard
from evennia_ai.game.npc_settings import settings_of
from evennia_ai.game.presence import why_gone
from evennia_ai.game.retrying import DATABASE_ERRORS
from evennia_ai.game.rounds import Asking, Round, Rounds
from evennia_ai.game.runtime import runtime
from evennia_ai.game.stopping import ModelStopped
from evennia_ai.game.text import plain_name
from evennia_ai.game.tools.toolbox import Toolbox, toolbox_of
from evennia_ai.game.voice import Start, Voice
from evennia_ai.game.watching import TurnOutcome
from evennia_ai.history.records import fallback_record, reply_record
from evennia_ai.llm.chat import ChatReply
from evennia_ai.llm.resilience import Clock
from evennia_ai.minds.speech import is_silence
from evennia_ai.prompt.prompt import Prompt
from evennia_ai.store import conversations
from evennia_ai.store.conversations import ConversationRef

STOPPED: Final = "the server stopped before the reply"
RETRY_SECONDS: Final = 5.0
MOST_TRIES: Final = 3
"""How often a turn is begun whose prompt cannot be made or committed."""

MOST_ROUNDS: Final = 5
"""How often the model of one turn is asked again after acts."""

T = TypeVar("T")
Steps = Generator["Deferred[Any]", Any, Any]


class Mind(Asking, Actor, Composer, Protocol):
    """What a turn needs of the NPC whose turn it is; the hooks tell it how the turn goes."""

    @property
    def enabled(self) -> bool: ...

    @property
    def fallback_line(self) -> str: ...

    def started(self, turn: "Turn") -> None: ...

    def begun(self, turn: "Turn") -> None: ...

    def answered(self, turn: "Turn") -> None: ...

    def rested(self, conversation: ConversationRef, prompt: Prompt) -> None: ...

    def put_back(self, turn: "Turn", *, delay_seconds: float) -> None: ...


class Turn:
    """One answer of one NPC to one event; `run` may be called again only by the turn itself."""

    def __init__(self, mind: Mind, heard: Heard) -> None:
        self.heard: Final = heard
        self._mind: Final = mind
        self._npc_ref: Final = mind.ref
        self._voice: Final = Voice(mind, heard.event, said=lambda: mind.begun(self))
        self._clock: Clock = runtime().clock
        self._tries = 0
        self._greeting = heard.greeting
        self._round: Round | None = None  # the one that is not ended yet
        self._asked: Deferred[ChatReply] | None = None
        self._start: Start | None = None
        self._cancelled = ""
        self._toolbox = Toolbox((), npc=mind.npc, event=heard.event)
        self._rounds: Final = Rounds(mind, heard)
        self._profiles: set[str] = set()  # those that were asked
        self._acting: Acts | None = None
        self._acted: list[Acted] = []
        self._commits: Final = Commits(mind.ref)
        self._outcome: TurnOutcome = "failed"

    def run(self) -> "Deferred[None]":
        """Take the turn; a Deferred that fires when it has ended."""
        self._mind.started(self)
        live = runtime()
        self._clock = live.clock
        live.watch.turn_began(
            self._npc_ref,
            npc_name=plain_name(self._mind.npc.key),
            conversation=self.heard.conversation.id,
        )
        return self._taken().addBoth(self._told)

    def _told(self, ended: T) -> T:
        """Tell whoever watches how the turn went."""
        runtime().watch.turn_ended(self._npc_ref, self._outcome)
        return ended

    def greet(self) -> None:
        """Say the greeting that the event was recorded with, once."""
        if self._greeting and not self._is_stale():
            greeting, self._greeting = self._greeting, ""
            self._voice.say(greeting)

    def cancel(self, why: str) -> None:
        """Give the turn up: nobody waits for it any more, or nobody may speak."""
        self._cancelled = self._cancelled or why
        if self._start is not None:
            self._start.stop()
        if self._asked is not None:
            self._asked.cancel()
        if self._acting is not None:
            self._acting.cancel()

    @inlineCallbacks
    def _taken(self) -> Steps:
        """From the prompt to the end, whatever happens on the way."""
        try:
            if not self._is_stale():
                self.greet()
                self._round = yield from self._first_round()
        except BudgetError as error:
            self._log(f"the prompt does not fit: {error}")
            self._unanswered()
        except ThrashError as error:
            self._log(f"no model is asked: {error}")
            self._unanswered()
        except DATABASE_ERRORS as error:
            self._again(error)
        except Exception:  # a game's own hooks may raise anything
            self._unanswered()
            raise
        if self._round is not None:
            yield from self._to_the_end()

    # The first prompt

    def _first_round(self) -> Steps:
        """The prompt, committed; None: nobody waits for it any more."""
        npc, heard = self._mind.npc, self.heard
        self._toolbox = toolbox_of(npc, settings_of(npc), event=heard.event)
        composed = yield from with_room(self._mind, heard, tools=self._toolbox.specs)
        if composed is None or self._is_stale():
            return None
        return self._rounds.first(composed, access=self._accesses()[0])

    def _accesses(self) -> Sequence[Access]:
        """The models to ask, each instead of the one before it."""
        return runtime().models.of_role("speaker", settings=settings_of(self._mind.npc))

    # Asking

    def _to_the_end(self) -> Steps:
        """Ask, act and ask again, and end the turn with what came of it."""
        prompt = self._open_round.prompt
        try:
            goes_on = True
            while goes_on:
                reply = yield from self._reply()
                prompt = self._open_round.prompt
                goes_on = reply is not None and (yield from self._went_on(reply))
        except Exception as error:  # a game's own hooks may raise anything
            yield self._broken_off(error)
            if not isinstance(error, DATABASE_ERRORS):
                raise
        self._mind.rested(self.heard.conversation, prompt)

    def _reply(self) -> Steps:
        """What a model answered that can be said or done; None where the turn has ended."""
        self._profiles.add(self._open_round.access.profile.name)
        while True:
            try:
                return (yield from self._replied())
            except Exception as error:  # whatever a model raises ends the turn, never the server
                other = self._other(error)
                if other is None:
                    self._failed(error)
                    return None
                self._ask_instead(error, other)

    def _replied(self) -> Steps:
        """The reply, its text as it is said; ModelRubbish where it is of no use at all."""
        this = self._open_round
        self._start = self._voice.start(
            this.stored,
            early=this.access.profile.speaks_early,
            is_wanted=lambda: not self._is_stale(),
        )
        self._commits.call = call = self._call_of(this)
        self._asked = maybeDeferred(
            call.ask, this.asked, listener=self._start, prompt=this.prompt.messages
        )
        try:
            reply: ChatReply = yield self._asked
        finally:
            self._asked = None
            self._start.stop()
        reply = this.read(reply)
        text = self._start.whole(reply.text)
        if is_silence(text):
            return replace(reply, text="")
        if not text and not self._acts(reply) and not self._has_spoken:
            raise ModelRubbish(reply.model, "nothing of it can be said aloud")
        return replace(reply, text=text)

    def _call_of(self, this: Round) -> Call:
        event = self.heard.event
        return Call(
            this.access,
            npc_ref=self._npc_ref,
            role="speaker",
            player_ref=payer_of(event) if event.hops else event.speaker_ref,
            line=event.line,
            turn=this.stored.number,
            prompt_tokens=this.prompt.tokens,
        )

    def _other(self, error: Exception) -> Access | None:
        """The model to ask instead, None where there is none or nobody is to be asked."""
        is_away = isinstance(error, ModelUnavailable | ModelTimeout)
        if not is_away or self._has_begun or self._is_stale():
            return None
        needed_tokens = self._open_round.prompt.tokens
        for access in self._accesses():
            profile = access.profile
            if profile.name not in self._profiles and profile.limit_tokens >= needed_tokens:
                return access
        return None

    def _ask_instead(self, error: Exception, access: Access) -> None:
        failed, why = self._open_round, f"{told(error)}; {access.name} is asked instead"
        self._log(f"turn {failed.stored.number}: {why}")
        self._commits.fail(failed.stored, why)
        self._profiles.add(access.profile.name)
        instead = partial(self._rounds.instead, failed, access=access)
        self._round = self._commits.written(instead)

    @property
    def _open_round(self) -> Round:
        assert self._round is not None  # until the turn has ended there is one
        return self._round

    # Acting

    def _acts(self, reply: ChatReply) -> bool:
        """Whether the reply asks for something to be done that may still be done."""
        if len(self._acted) >= MOST_ROUNDS or runtime().lines.why_spent(self.heard.event):
            return False
        return bool(reply.tool_calls and self._toolbox.names)

    @property
    def _has_spoken(self) -> bool:
        return any(acted.spoke for acted in self._acted)

    def _went_on(self, reply: ChatReply) -> Steps:
        """Do what the reply asks for; whether the model is asked once more."""
        if self._is_stale() or not self._acts(reply):
            self._answered(reply)
            return False
        acts = Acts(self._mind, self.heard, self._toolbox, speaker=self._voice.partner)
        this = self._open_round
        called = self._commits.written(lambda: acts.called(this, reply.tool_calls, text=reply.text))
        self._say_rest(reply)
        self._acting = acts
        acted: Acted = yield from acts.done(called)
        self._acting = None
        self._commits.finish(this.stored, outcome=acted.outcome)
        self._acted.append(acted)
        if acted.spoke:
            self._mind.begun(self)
        if acted.is_end or self._is_stale():
            self._outcome = "answered"
            self._mind.answered(self)
            return False
        return self._asks_again(acted)

    def _asks_again(self, acted: Acted) -> bool:
        """Commit the prompt with what came of the acts; whether there was room for it."""
        try:
            after = partial(self._rounds.after, self._open_round, acted.messages)
            self._round = self._commits.written(after)
        except BudgetError as error:
            self._log(f"what came of {', '.join(acted.names)} does not fit: {error}")
            if not self._has_spoken:
                self._unanswered()
            return False
        return True

    # The end

    def _answered(self, reply: ChatReply) -> None:
        text, stored, stale = reply.text, self._open_round.stored, self._is_stale()
        if stale:
            self._drop(stale)
            return
        recorded = fallback_record if reply.is_fallback else reply_record
        said = [recorded(text)] if text else []
        outcome = "answered" if text or self._has_spoken else "chose to say nothing"
        self._commits.finish(stored, said, outcome=outcome)
        self._outcome = "answered"
        self._mind.answered(self)
        self._say_rest(reply)

    def _say_rest(self, reply: ChatReply) -> None:
        """Say what of the reply was not said while it came."""
        if self._start is not None:
            self._start.say_rest(reply.text, by_rote=reply.offline)
        elif reply.text:
            self._voice.say(reply.text, by_rote=reply.offline)

    @property
    def _has_begun(self) -> bool:
        """Whether the start of the reply was said already."""
        return self._start is not None and bool(self._start.said)

    def _failed(self, error: Exception) -> None:
        """Commit the failure and say the fallback line, unless nobody waits for it any more."""
        stored, stale = self._open_round.stored, self._is_stale()
        if isinstance(error, CancelledError) and not stale:
            self._outcome = "dropped"
            self._commits.interrupt(stored, STOPPED)
            return
        if stale or isinstance(error, ModelStopped):
            self._drop(stale or told(error))
            return
        self._log(f"turn {stored.number}: {told(error)}")
        if self._has_begun:  # what was said of it stands, and is closed by the end
            self._commits.fail(stored, told(error))
            return
        line = self._mind.fallback_line
        self._commits.fail(stored, told(error), new=[fallback_record(line)])
        self._voice.say(line, by_rote=True)

    def _drop(self, why: str) -> None:
        """Commit that nobody waits for the turn any more, or that nobody may speak."""
        self._outcome = "dropped"
        self._commits.fail(self._open_round.stored, f"dropped: {why}")

    def _broken_off(self, error: Exception) -> "Deferred[None]":
        """Close the turn that could not go on; what is not in the history is not said."""
        self._mind.begun(self)  # whoever waits is not shown that the NPC still thinks
        stored = self._open_round.stored
        why = f"the turn broke off, nothing more is said: {told(error)}"
        self._log(f"turn {stored.number}: {why}")
        return self._commits.close(stored, why, clock=self._clock)

    def _unanswered(self) -> None:
        """Say the fallback line where there is no turn to end."""
        if self._is_stale():
            return
        line = self._mind.fallback_line
        try:
            conversations.append(self.heard.conversation, [fallback_record(line)])
        except StoreError as error:
            self._log(f"the fallback line was not written, nothing is said: {error}")
            return
        self._voice.say(line, by_rote=True)

    def _again(self, error: Exception) -> None:
        """Try later: the event is committed, the model was not asked."""
        self._tries += 1
        if self._tries >= MOST_TRIES:
            self._log(f"given up, the prompt cannot be made or committed: {error}")
            return
        self._log(f"the prompt cannot be made or committed, no model is asked: {error}")
        self._mind.put_back(self, delay_seconds=RETRY_SECONDS)

    def _is_stale(self) -> str:
        """Why nobody waits for this turn any more, "" while somebody does."""
        npc, event = self._mind.npc, self.heard.event
        if self._cancelled:
            return self._cancelled
        if npc.pk is not None and not self._mind.enabled:
            return "the NPC was switched off"
        return why_gone(npc, event)

    def _log(self, problem: str) -> None:
        logger.log_err(f"evennia_ai: NPC {self._npc_ref}: {problem}")
