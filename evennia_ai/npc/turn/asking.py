"""Ask the models of one turn. Each model is a fallback for the one before it.

The start of a reply is said while the rest still arrives, if the profile allows that.
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
from evennia_ai.services.llm.odd_replies import Oddity, oddities
from evennia_ai.services.llm.speech import is_silence, whole_sentences

MOST_EARLIER: Final = 3
"""How many earlier answers of the NPC are compared with a reply."""


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
            self._start.say_rest(reply.text, by_rote=reply.offline)
