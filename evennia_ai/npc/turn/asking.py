"""Asking: the models of one turn, each instead of the one before it where that one is away.

What is read of a reply while it comes is said as soon as it may be.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from twisted.internet.defer import Deferred, maybeDeferred

from evennia_ai.engine.errors import Fault, ModelError, ModelRubbish, ModelUnavailable
from evennia_ai.npc.model_calls.calls import CountedCall, ModelCalls
from evennia_ai.npc.model_calls.limits import CallKey
from evennia_ai.npc.speech.voice import Start, Voice
from evennia_ai.npc.turn.ending import Commits
from evennia_ai.npc.turn.rounds import Round
from evennia_ai.services.endpoints import Access
from evennia_ai.services.llm.chat import ChatReply
from evennia_ai.services.llm.speech import is_silence, whole_sentences


class Asking:
    """Asks the models of one turn; their order is that of `accesses`, `key` tells for whom."""

    def __init__(
        self,
        accesses: Sequence[Access],
        calls: ModelCalls,
        commits: Commits,
        *,
        key: Callable[[Round], CallKey],
    ) -> None:
        self.accesses: Final = accesses
        self._calls: Final = calls
        self._commits: Final = commits
        self._key: Final = key
        self._tried: set[str] = set()  # the names of the profiles that were asked
        self._asked: Deferred[ChatReply] | None = None
        self._start: Start | None = None

    def cancel(self) -> None:
        """Wait no longer, and say nothing more of what comes."""
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
        """The reply to a round, its text as it is said. It fails as the call of the model does.

        `is_wanted` tells whether its start may still be said, `is_enough` whether a reply without
        words is of use. ModelRubbish: it is of none. A reply that was cut by its length ends with
        a sentence.
        """
        self._tried.add(this.access.profile.name)
        early = this.access.profile.speaks_early
        self._start = start = voice.start(
            partial(self._commits.spoke, this.stored), early=early, is_wanted=is_wanted
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
            problem = "it says nothing and calls more tools than one answer may"
            if not reply.tool_calls:
                problem = "nothing of it can be said aloud"
            raise ModelRubbish(reply.model, problem)
        return replace(reply, text=text)

    def other(self, failed: Round, error: Exception) -> Access | None:
        """The model to ask instead, None where there is none or it is too late for another.

        Where the prompt was too long, one that takes a longer one.
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
        """True if a reply that broke off had begun: then its client did not ask again."""
        begun = self._start is not None and self._start.has_heard
        return begun and isinstance(error, ModelUnavailable)

    @property
    def has_said_the_start(self) -> bool:
        """True if the start of the reply was said already."""
        return self._start is not None and bool(self._start.said)

    def say_rest(self, reply: ChatReply) -> None:
        """Say what of the reply was not said while it came."""
        if self._start is not None:
            self._start.say_rest(reply.text, by_rote=reply.offline)
