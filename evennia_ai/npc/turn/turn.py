"""A turn: an event that the NPC answers becomes a reply, or a record of why there is none.

    step       what it does                                           module
    greet      say the greeting, if the event opens a conversation    voice
    gather     read everything that the prompt depends on, once       gather
    compose    make the prompt; if it is nearly full, compact first   rounds
    commit     store the prompt as a round of the turn                rounds
    ask        ask the model, or the next one if that fails           here
    act        run the tools of the reply, then commit the next round  acting
    end        commit the reply, then say it                          ending
    rest       later compact and remember, while nobody waits         idle_time

The models of a turn are asked in order: each is a fallback for the one before it. The start of a
reply is said while the rest still arrives, if the profile allows that.

The turn keeps everything that it read when it began. So neither a second speaker nor a builder's
edit changes it while it runs. An error ends the turn: it is committed and logged, and the NPC says
its fallback line.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

from evennia.utils import logger
from twisted.internet.defer import Deferred, maybeDeferred

from evennia_ai.engine.errors import (
    BudgetError,
    Fault,
    ModelError,
    ModelRefused,
    ModelRubbish,
    ModelUnavailable,
    ThrashError,
    on_one_line,
)
from evennia_ai.npc.filtering import FilteredWords, WithheldByGame
from evennia_ai.npc.inputs.first_reading import read_first
from evennia_ai.npc.inputs.mind import Mind
from evennia_ai.npc.model_calls.calls import CountedCall, ModelCalls
from evennia_ai.npc.model_calls.limits import CallKey
from evennia_ai.npc.model_calls.watching import TurnOutcome
from evennia_ai.npc.recording.heard import CommittedEvent
from evennia_ai.npc.recording.retrying import DATABASE_ERRORS
from evennia_ai.npc.runtime import Runtime
from evennia_ai.npc.senses.events import began_by
from evennia_ai.npc.senses.presence import is_on, sdesc_names, why_gone
from evennia_ai.npc.senses.text import plain_name
from evennia_ai.npc.speech.voice import Start, Voice
from evennia_ai.npc.tools.registry import toolbox_of
from evennia_ai.npc.tools.tool import Use
from evennia_ai.npc.tools.toolbox import Toolbox
from evennia_ai.npc.turn.acting import Acted, Acts
from evennia_ai.npc.turn.ending import Commits, Ending, is_no_fault
from evennia_ai.npc.turn.rounds import Composed, Round, Rounds, with_room
from evennia_ai.services.endpoints import Access
from evennia_ai.services.llm.chat import ChatReply, read_arguments
from evennia_ai.services.llm.odd_replies import Oddity, oddities, reminder
from evennia_ai.services.llm.speech import is_silence, whole_sentences
from evennia_ai.services.settings.npc import USUAL
from evennia_ai.store.history import conversations

MOST_EARLIER: Final = 3
"""How many earlier answers of the NPC are compared with a reply."""
RETRY_SECONDS: Final = 5.0
MOST_TRIES: Final = 3
"""The most attempts to compose and commit the first prompt."""

MOST_ROUNDS: Final = 5
"""The most rounds of a turn in which tools are run."""

T = TypeVar("T")


class Asking:
    """Asks the models of one turn in the order of `accesses`.

    `key` returns the key of a call for limits and logs. With `filters`, the game's filter reads
    each whole reply, so nothing of it is said early.
    """

    def __init__(
        self,
        accesses: Sequence[Access],
        calls: ModelCalls,
        commits: Commits,
        *,
        key: Callable[[Round], CallKey],
        filters: bool = False,
    ) -> None:
        self.accesses: Final = accesses
        self._calls: Final = calls
        self._commits: Final = commits
        self._key: Final = key
        self._filters: Final = filters
        self._tried: set[str] = set()  # the names of all profiles that were asked
        self._asked: Deferred[ChatReply] | None = None
        self._start: Start | None = None
        self.odd: tuple[Oddity, ...] = ()
        """What is odd about the newest reply."""

    def cancel(self) -> None:
        """Stop waiting for the reply, and say no more of it."""
        if self._start is not None:
            self._start.stop()
        if self._asked is not None:
            self._asked.cancel()

    async def reply(
        self,
        this: Round,
        voice: Voice,
        *,
        is_wanted: Callable[[], bool],
        is_enough: Callable[[ChatReply], bool],
    ) -> ChatReply:
        """Return the reply to a round. Its text is what the NPC says.

        If the provider cut the reply for its length, the text ends after a whole sentence.

        Args:
            is_wanted: Returns True while the start of the reply may still be said.
            is_enough: Returns True if a reply without words is useful.

        Raises:
            ModelError: The call failed.
            ModelRubbish: The reply is useless.
        """
        self.odd = ()
        self._tried.add(this.access.profile.name)
        # The filter must see the whole reply before anybody hears a part of it.
        early = this.access.profile.speaks_early and not self._filters
        self._start = start = voice.start(
            partial(self._commits.spoke, this.stored),
            early=early,
            is_wanted=is_wanted,
            known_names=[one.name for one in this.prompt.messages if one.name],
        )
        self._commits.call = call = CountedCall(self._calls, this.access, self._key(this))
        self._asked = maybeDeferred(
            call.ask, this.asked, listener=start, prompt=this.prompt.messages
        )
        try:
            reply = await self._asked
        finally:
            self._asked = None
            start.stop()
            await start.committed
        reply = this.read(reply, late_end=start.late_end)
        text = start.whole(reply.text)
        if reply.is_cut:
            text = whole_sentences(text)
        if is_silence(text):
            return replace(reply, text="")
        if not text and not is_enough(reply):
            problem = "it contains no words, and no more tools may be called in this turn"
            if not reply.tool_calls:
                problem = "it contains nothing that can be said aloud"
            raise ModelRubbish(reply.model, problem)
        self._note_oddities(this, reply, text)
        return replace(reply, text=text)

    def _note_oddities(self, this: Round, reply: ChatReply, text: str) -> None:
        """Note what is odd about a reply in `odd` and in the row of its call."""
        earlier = [one.content for one in this.prompt.messages if one.role == "assistant"]
        if reply.offline or not text:
            return
        self.odd = oddities(text, asked=this.asked.question, earlier=earlier[-MOST_EARLIER:])
        call = self._commits.call
        if self.odd and call is not None:
            call.note_odd(self.odd)

    def other(self, failed: Round, error: Exception) -> Access | None:
        """Return the next model to ask after a failure, None if there is none.

        There is none either if the start of the reply was said. If the prompt was too long for the
        first model, the next one accepts a longer prompt.
        """
        fault = error.fault if isinstance(error, ModelError) else None
        if fault is None or not fault.is_asked_elsewhere or self.has_said_the_start:
            return None
        needed_tokens = failed.prompt.tokens
        if fault is Fault.TOO_LONG:
            needed_tokens = max(needed_tokens, failed.access.limit_tokens + 1)
        for access in self.accesses:
            if access.profile.name not in self._tried and access.limit_tokens >= needed_tokens:
                return access
        return None

    def has_broken_off(self, error: Exception) -> bool:
        """True if a reply broke off after it had begun. The client does not retry such a call."""
        begun = self._start is not None and self._start.has_heard
        return begun and isinstance(error, ModelUnavailable)

    @property
    def has_said_the_start(self) -> bool:
        """True if the start of the reply was already said."""
        return self._start is not None and bool(self._start.said)

    def say_rest(self, reply: ChatReply) -> None:
        """Say the part of the reply that was not said while the reply arrived."""
        if self._start is not None:
            self._start.say_rest(reply.text, by_rote=reply.offline, is_games=reply.is_fallback)


class Turn:
    """One answer of one NPC to one event."""

    def __init__(self, mind: Mind, heard: CommittedEvent, live: Runtime) -> None:
        self.heard: Final = heard
        self.settings = USUAL
        """The NPC's settings, read when the turn begins."""

        self._mind: Final = mind
        self._live: Final = live
        self._npc_ref: Final = heard.conversation.npc_ref
        self._tries = 0
        self._greeting = heard.greeting
        self._voice: Voice | None = None
        self._toolbox: Toolbox  # set in the first round
        self._asking: Asking | None = None
        self._rounds: Final = Rounds(mind, heard, live.writer)
        self._round: Round | None = None  # the round that has not ended
        self._acting: Acts | None = None
        self._acted: list[Acted] = []
        self._has_said_something = False  # True if a reply had text in addition to tool calls
        self._is_shortened = False
        self._is_repeated = False
        self._is_reminded = False
        self._commits: Final = Commits(mind.ref, live.writer)
        self._ending: Final = Ending(mind, heard, self._commits, live.writer)
        self._cancelled = ""
        self._outcome: TurnOutcome = "failed"

    def run(self) -> "Deferred[None]":
        """Run the turn. The Deferred fires when it has ended. Call this only once."""
        self._live.watch.turn_began(
            self._npc_ref,
            npc_name=plain_name(self._mind.npc.key),
            conversation=self.heard.conversation.id,
        )
        return Deferred.fromCoroutine(self._run_steps()).addBoth(self._report_end)

    def _report_end(self, ended: T) -> T:
        """Report the end of the turn to watchers.

        `Asking` refers to the turn. Dropping it here breaks the reference cycle, so the turn is
        freed without the garbage collector, whose objects may be frozen while a model thinks.
        """
        self._asking = None
        self._live.watch.turn_ended(self._npc_ref, self._outcome)
        return ended

    def greet(self) -> None:
        """Say the greeting that was recorded with the event, once."""
        if self._greeting and not self._is_stale():
            greeting, self._greeting = self._greeting, ""
            self._current_voice.say(greeting)

    def cancel(self, why: str) -> None:
        """Cancel the turn. Its model call and its running tool are cancelled too.

        Args:
            why: The reason, for example that nobody waits for the answer, or that a builder
                stopped all NPCs.
        """
        self._cancelled = self._cancelled or why
        if self._asking is not None:
            self._asking.cancel()
        if self._acting is not None:
            self._acting.cancel()

    async def _run_steps(self) -> None:
        """Run all steps of the turn, from the greeting to the reply."""
        asking = await self._begin()  # greet, gather, compose, commit
        if asking is not None:
            ended = await self._run_rounds(asking)  # ask, act, end
            self._schedule_upkeep(ended)  # rest

    async def _begin(self) -> Asking | None:
        """Commit the first prompt. Return the object that asks the models, or None."""
        try:
            return await self._commit_first_round()
        except BudgetError as error:
            self._log(f"the prompt does not fit: {error}")
            await self._say_fallback(error)
        except ThrashError as error:
            self._log(f"the compaction made too little room, no model is asked: {error}")
            await self._say_fallback(error)
        except DATABASE_ERRORS as error:
            self._schedule_again(error)
        except Exception as error:  # hooks of a game may raise anything
            await self._say_fallback(error)
            raise
        return None

    async def _commit_first_round(self) -> Asking | None:
        """Commit the first prompt. Return None if nobody waits for the answer any longer."""
        mind, heard, live = self._mind, self.heard, self._live
        if self._is_stale() or not conversations.is_counted(heard.record):
            return None
        self.greet()
        self.settings = settings = mind.settings
        accesses = live.models.of_role("speaker", settings=settings)
        self._toolbox = self._make_toolbox()
        if mind.lately.read is None:
            await read_first(mind, heard, live.writer, fit=accesses[0].fitted)
        access = accesses[0]
        try:
            composed = await self._compose_prompt()
        except BudgetError:
            # The context of the first model may be too small for this NPC, so take a larger one.
            access = next(
                (one for one in accesses if one.limit_tokens > access.limit_tokens), access
            )
            if access is accesses[0]:
                raise
            composed = await self._compose_prompt(limit_tokens=access.limit_tokens)
        if composed is None or self._is_stale():
            return None
        self._voice = self._voice_of(composed.gathered.view.char_name)
        self._round = await self._rounds.first(composed, access=access)
        self._asking = Asking(
            accesses,
            live.calls,
            self._commits,
            key=self._call_key,
            filters=live.filter.is_set("said"),
        )
        return self._asking

    async def _compose_prompt(self, *, limit_tokens: int | None = None) -> Composed | None:
        """Return the prompt, after a compaction if needed. Return None if the server stops."""
        live, heard = self._live, self.heard
        return await with_room(
            self._mind,
            heard,
            settings=self.settings,
            tools=self._toolbox.specs,
            compactor=live.compactor,
            meanings=live.meanings,
            waited_for=await live.book_builds.waited_for(self._mind.npc, heard.event),
            limit_tokens=limit_tokens,
        )

    def _make_toolbox(self) -> Toolbox:
        return toolbox_of(self._mind.npc, self.settings.tools, event=self.heard.event)

    def _call_key(self, this: Round) -> CallKey:
        """Return the key of a model call.

        It names the player for the limits, and the turn for the logs.
        """
        event = self.heard.event
        return CallKey(
            npc_ref=self._npc_ref,
            player_ref=began_by(event),
            line=event.line,
            turn=this.stored.number,
            prompt_tokens=this.prompt.tokens,
        )

    def _schedule_upkeep(self, last: Round) -> None:
        self._live.idle_time.after_turn(self._mind, self.heard.conversation, last.prompt)

    def _voice_of(self, *names: str) -> Voice:
        """Return the voice of the NPC, which a model may call by these names."""
        npc = self._mind.npc
        described = sdesc_names(npc) if hasattr(npc, "sdesc") else ()
        own_names = dict.fromkeys((*names, plain_name(npc.key), *described))
        said = partial(self._mind.begun, self.heard)
        return Voice(npc, self.heard.event, own_names=tuple(own_names), said=said)

    @property
    def _current_voice(self) -> Voice:
        """Return the voice, even before the view of the NPC is known."""
        return self._voice or self._voice_of(*self._mind.own_names)

    async def _run_rounds(self, asking: Asking) -> Round:
        """Ask the model and run tools until the turn ends. Return the last round."""
        this = self._open_round
        try:
            while True:
                reply = await self._get_reply(asking)
                this = self._open_round
                if reply is None or not await self._act_or_answer(reply, asking):
                    return this
        except Exception as error:  # hooks of a game may raise anything
            await self._close_broken(error)
            if not isinstance(error, DATABASE_ERRORS):
                raise
        return this

    async def _get_reply(self, asking: Asking) -> ChatReply | None:
        """Return a useful reply, None if the turn has ended without one."""
        while True:
            this = self._open_round
            # The speaker may have left meanwhile, or other turns may have used all calls of the
            # line.
            if why_not := self._is_stale() or self._live.lines.why_spent(self.heard.event):
                await self._drop(why_not)
                return None
            try:
                reply = await asking.reply(
                    this,
                    self._current_voice,
                    is_wanted=lambda: not self._is_stale(),
                    is_enough=lambda reply: self._may_act_on(reply) or self._has_spoken,
                )
                self._refuse_odd(reply, asking)
                await self._refuse_withheld(reply)
                return reply
            except Exception as error:  # an error of a model must not stop the server
                is_over = asking.has_said_the_start or bool(self._is_stale())
                if not is_over and await self._ask_same_again(error, asking):
                    continue
                other = asking.other(this, error)
                if other is None or is_over:
                    await self._end_failed(error, asking)
                    return None
                self._rounds.forget_thoughts()  # reasoning of another model
                await self._begin_other_round(
                    error, this.composed, access=other, doing=f"{other.name} is asked instead"
                )

    def _refuse_odd(self, reply: ChatReply, asking: Asking) -> None:
        """Refuse an odd reply if the settings say so and nothing of it was said or done.

        Raises:
            ModelRubbish: The reply is refused.
        """
        wanted = self.settings.odd_replies or self._live.conf.odd_replies
        is_final = asking.has_said_the_start or self._may_act_on(reply)
        if asking.odd and wanted == "retry" and not is_final:
            raise ModelRubbish(reply.model, f"the reply is odd: {', '.join(asking.odd)}")

    async def _refuse_withheld(self, reply: ChatReply) -> None:
        """Let the game's filter read a reply of a model, with the arguments of its tools.

        Raises:
            WithheldByGame: The filter withholds it.
        """
        texts = [reply.text]
        for call in reply.tool_calls:
            texts += [str(one) for one in (read_arguments(call) or {}).values()]
        if reply.offline or not any(texts):
            return
        words = FilteredWords(
            text="\n".join(text for text in texts if text),
            npc=self._mind.npc,
            person=self._current_voice.partner,
            private=self.heard.event.private,
        )
        if reason := await self._live.filter.verdict("said", words):
            raise WithheldByGame(reason)

    async def _ask_same_again(self, error: Exception, asking: Asking) -> bool:
        """Ask the same model again if that may help, at most once for each reason.

        It may help if the reply broke off before anybody heard it, or if the refusal says what the
        server accepts.
        """
        this, access = self._open_round, self._open_round.access
        composed = this.composed
        if asking.has_broken_off(error) and access.profile.max_retries and not self._is_repeated:
            self._is_repeated = True
            doing = f"{access.name} is asked again"
        elif asking.odd and not self._is_reminded:
            self._is_reminded = True
            try:
                composed = composed.reminded(reminder(asking.odd))
            except BudgetError:
                return False
            doing = f"{access.name} is asked once more, with a reminder"
        elif not isinstance(error, ModelRefused):
            return False
        elif error.wants_roles and self._rounds.is_sent_otherwise(this):
            doing = f"with its messages in other roles {access.name} is asked again"
        elif error.wants_past_thoughts:
            # First send calls of earlier turns as text, because their thoughts are gone. If that is
            # not enough, send those of this turn as text as well.
            if access.tells_past_calls and not self._rounds.forget_thoughts():
                return False
            access.learned.tells_past_calls = True
            doing = f"with earlier calls of tools as text {access.name} is asked again"
        elif error.fault is Fault.TOO_LONG and not self._is_shortened:
            self._is_shortened, before = True, access.learned.limit_tokens
            access.learned.learn_window(
                window_tokens=error.window_tokens,
                counted_tokens=error.counted_tokens,
                sent_tokens=this.prompt.tokens,
                reply_tokens=access.profile.reply_tokens,
            )
            try:
                composed = composed.within(access.limit_tokens)
            except BudgetError as too_little:
                # If the small limit were kept, the NPC would stay silent even after the server got
                # more room.
                access.learned.limit_tokens = before
                self._log(
                    f"turn {this.stored.number}: the prompt cannot be made shorter: {too_little}"
                )
                return False
            doing = f"with at most {access.limit_tokens} tokens {access.name} is asked again"
        else:
            return False
        await self._begin_other_round(error, composed, access=access, doing=doing)
        return True

    async def _begin_other_round(
        self, error: Exception, composed: Composed, *, access: Access, doing: str
    ) -> None:
        failed, why = self._open_round, f"{on_one_line(error)}; {doing}"
        self._log(f"turn {failed.stored.number}: {why}")
        await self._commits.fail(failed.stored, why)
        instead = partial(self._rounds.instead, composed, access=access)
        self._round = await self._commits.again(instead)

    @property
    def _open_round(self) -> Round:
        assert self._round is not None  # a turn has a round until it has ended
        return self._round

    def _may_act_on(self, reply: ChatReply) -> bool:
        """True if the reply calls tools and the turn may still run them."""
        if len(self._acted) >= MOST_ROUNDS or self._live.lines.why_spent(self.heard.event):
            return False
        return bool(reply.tool_calls and self._toolbox.names)

    @property
    def _has_spoken(self) -> bool:
        """True if people heard or saw part of the answer, by a tool or in a text next to calls."""
        return self._has_said_something or any(acted.spoke for acted in self._acted)

    async def _act_or_answer(self, reply: ChatReply, asking: Asking) -> bool:
        """Say the reply or run its tools. True if the model is to be asked again."""
        if stale := self._is_stale():
            await self._drop(stale)
            return False
        if reply.text:  # the answer comes now, so the NPC need not show that it thinks
            self._mind.begun(self.heard)
        if not self._may_act_on(reply):
            await self._end_answered(reply, asking)
            return False
        this, live = self._open_round, self._live
        acts = Acts(
            self._tool_use(this),
            self._toolbox,
            self._commits,
            stored=this.stored,
            writer=live.writer,
        )
        called = await acts.called(reply.tool_calls, text=reply.text)
        asking.say_rest(reply)
        self._has_said_something = self._has_said_something or bool(reply.text)
        self._acting = acts
        acted = await acts.done(called)
        self._acting = None
        await self._commits.finish(this.stored, outcome=acted.outcome)
        self._acted.append(acted)
        self._rounds.keep_thoughts(acted.messages, reply.thoughts)
        if acted.spoke:
            self._mind.begun(self.heard)
        if acted.is_end or self._is_stale():
            self._note_answered()
            return False
        return await self._begin_next_round(acted)

    def _tool_use(self, this: Round) -> Use:
        """Return what tools need to know about the turn."""
        heard, live, gathered = self.heard, self._live, this.composed.gathered
        return Use(
            npc=self._mind.npc,
            mind=self._mind,
            view=gathered.view,
            settings=gathered.settings,
            conf=live.conf,
            backends=live.backends,
            calls=live.calls,
            event=heard.event,
            speaker=self._current_voice.partner,
            conversation=heard.conversation,
            hops=heard.event.hops + 1,
            turn=this.stored.number,
        )

    async def _begin_next_round(self, acted: Acted) -> bool:
        """Commit the prompt with the results of the tools. Return False if they do not fit."""
        try:
            after = partial(self._rounds.after, self._open_round, acted.messages)
            self._round = await self._commits.again(after)
        except BudgetError as error:
            self._log(f"the results of the tools {', '.join(acted.names)} do not fit: {error}")
            if not self._has_spoken:
                await self._say_fallback(error)
            return False
        return True

    async def _end_answered(self, reply: ChatReply, asking: Asking) -> None:
        stored = self._open_round.stored
        await self._ending.answered(stored, reply, has_spoken=self._has_spoken)
        self._note_answered()
        asking.say_rest(reply)

    def _note_answered(self) -> None:
        self._outcome = "answered"
        self._mind.answered(self.heard, self.settings)

    async def _end_failed(self, error: Exception, asking: Asking) -> None:
        """Commit the failure and say the fallback line, unless nobody waits for the answer."""
        stored, stale = self._open_round.stored, self._is_stale()
        if isinstance(error, WithheldByGame):
            self._live.watch.withheld(self._npc_ref, side="said", reason=error.reason)
        elif not stale and not is_no_fault(error):
            self._log(f"turn {stored.number}: {on_one_line(error)}")
            self._tell_failed(error)
        voice = None if asking.has_said_the_start else self._current_voice
        self._outcome = await self._ending.failed(stored, error, stale=stale, voice=voice)

    async def _drop(self, why: str) -> None:
        self._outcome = await self._ending.dropped(self._open_round.stored, why)

    def _close_broken(self, error: Exception) -> "Deferred[None]":
        """Close a turn after an unexpected error, and show the speaker that no answer will come."""
        self._mind.begun(self.heard)  # cancels the gesture that shows that the NPC thinks
        stored = self._open_round.stored
        why = f"the turn broke off, nothing more is said: {on_one_line(error)}"
        self._log(f"turn {stored.number}: {why}")
        self._tell_failed(error)
        closed = self._commits.close(stored, why)
        self._mind.unanswered(self.heard.event)
        return closed

    async def _say_fallback(self, error: Exception) -> None:
        """Say the fallback line of a turn without a prompt."""
        if self._is_stale():
            return
        self._tell_failed(error)
        if problem := await self._ending.without_prompt(self._current_voice):
            self._log(problem)
            self._mind.unanswered(self.heard.event)

    def _schedule_again(self, error: Exception) -> None:
        """Schedule the turn again. Its event is committed, and no model was asked yet."""
        self._tries += 1
        if self._tries >= MOST_TRIES:
            self._log(f"gave up the turn: its prompt cannot be composed or committed: {error}")
            self._tell_failed(error)
            self._mind.unanswered(self.heard.event)
            return
        self._log(f"the prompt cannot be composed or committed, so no model is asked: {error}")
        self._mind.put_back(self.heard, delay_seconds=RETRY_SECONDS)

    def _tell_failed(self, error: Exception) -> None:
        speaker_ref = self.heard.event.speaker_ref
        self._live.watch.turn_failed(self._npc_ref, speaker_ref=speaker_ref, error=error)

    def _is_stale(self) -> str:
        """Return why nobody waits for this turn any more, "" if somebody does."""
        npc, event = self._mind.npc, self.heard.event
        if self._cancelled:
            return self._cancelled
        if npc.pk is not None and not is_on(npc):
            return "the NPC was switched off"
        return why_gone(npc, event)

    def _log(self, problem: str) -> None:
        logger.log_err(f"evennia_ai: NPC {self._npc_ref}: {problem}")
