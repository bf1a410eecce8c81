"""Say what a turn has to say, to the room or to the person who whispered.

Everything is committed to the history before anybody hears it. An NPC may say the first sentences
of a streamed reply before the rest has arrived. They are committed first; the end of the turn then
commits the whole reply, or only these sentences if the turn is cut short.

An NPC whose answer takes long shows once per turn, by a gesture, that it heard. Only people see
that gesture. No history contains it, because a model would learn to imitate it.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from evennia.utils import logger
from twisted.internet.base import DelayedCall
from twisted.internet.defer import Deferred, succeed
from twisted.python.failure import Failure

from evennia_ai.npc.recording.retrying import DATABASE_ERRORS
from evennia_ai.npc.senses.events import Event
from evennia_ai.npc.senses.labels import label_of
from evennia_ai.npc.senses.presence import NPC, bystanders, is_npc
from evennia_ai.npc.senses.text import plain_name
from evennia_ai.npc.senses.utterance import because_of, remember_spoken
from evennia_ai.npc.speech.output import deliver_reply, show_gesture
from evennia_ai.npc.speech.reply_acts import is_open
from evennia_ai.services.llm.reasoning import LateEnd
from evennia_ai.services.llm.resilience import Clock
from evennia_ai.services.llm.speech import SPEECH_LINES, SpokenStart, speech_in

Commit = Callable[[str], "Deferred[None]"]
"""A function that commits a text before it is said."""


class Voice:
    """Speaks as `npc`, which has these names, in answer to `event`.

    Calls `said` before each text that it says.
    """

    def __init__(
        self,
        npc: NPC,
        event: Event,
        *,
        own_names: Sequence[str],
        said: Callable[[], None] | None = None,
    ) -> None:
        self.own_names: Final = tuple(own_names)
        self._npc: Final = npc
        self._event: Final = event
        self._said: Final = said

    @property
    def partner(self) -> Any:
        """Return the person who is answered, None if they are not in the room."""
        here = bystanders(self._npc)
        return next((who for who in here if str(who.id) == self._event.speaker_ref), None)

    def speech(self, raw: str) -> str:
        """Return the part of a model's text that is said, "" if there is none."""
        return speech_in(raw, own_names=self.own_names, other_names=self._others())

    def say(
        self, text: str, *, after: int = 0, by_rote: bool = False, is_games: bool = False
    ) -> None:
        """Say a text to the room, or only to the person who whispered, and do the actions in it.

        Args:
            after: How many characters of the text were said before.
            by_rote: True for words that no model chose, such as a greeting.
            is_games: True for a line of the game, such as a fallback line. Each person reads it in
                their own language.
        """
        if self._said is not None:
            self._said()
        partner = self.partner if self._event.private else None
        if self._event.private and partner is None:
            return
        with because_of(self._event):
            deliver_reply(
                self._npc,
                text,
                own_names=self.own_names,
                after=after,
                hops=self._event.hops + 1,
                to=partner,
                by_rote=by_rote,
                is_games=is_games and not after,
            )

    def start(
        self,
        commit: Commit,
        *,
        early: bool,
        is_wanted: Callable[[], bool],
        known_names: Sequence[str] = (),
    ) -> "Start":
        """Return a listener for a streamed reply.

        It says the first sentences early if `early` is True.

        Args:
            commit: Commits the start before it is said.
            early: Whether the first sentences may be said before the reply is complete.
            is_wanted: Returns True while somebody waits for the answer.
            known_names: Names of people in the prompt, for whom the NPC must not speak either.
        """
        own = {name.casefold() for name in self.own_names}
        known = (name for name in known_names if name.casefold() not in own)
        others = list(dict.fromkeys((*self._others(), *known)))
        spoken = SpokenStart(self.own_names, others, early=early, max_lines=SPEECH_LINES)
        return Start(self, commit, spoken, others, is_wanted=is_wanted)

    def _others(self) -> list[str]:
        there = bystanders(self._npc)
        names = [name for one in there for name in (plain_name(one.key), label_of(self._npc, one))]
        return list(dict.fromkeys(names))


class Start:
    """Receives a streamed reply and says its first sentences as soon as they are complete.

    The rest is said after the end of the reply. Sentences are held back while they may still turn
    out to be narration (`reply_acts.is_open`).
    """

    def __init__(
        self,
        voice: Voice,
        commit: Commit,
        spoken: SpokenStart,
        other_names: Sequence[str],
        *,
        is_wanted: Callable[[], bool],
    ) -> None:
        self.said = ""
        self.has_heard = False
        self.committed: Deferred[None] = succeed(None)
        """Fires when the start, if any, is committed and said."""

        self._is_wanted: Final = is_wanted
        self._voice: Final = voice
        self._commit: Final = commit
        self._spoken: Final = spoken
        self._other_names: Final = other_names
        self._given_out = ""
        self._is_over = False

    def __call__(self, piece: str) -> None:
        """Receive the next part of the reply."""
        self.has_heard = True
        if self._is_over:
            return
        self._given_out += "".join(self._spoken.feed(piece))
        names = self._voice.own_names
        if self._given_out.strip() and not is_open(self._given_out, own_names=names):
            self._is_over = True
            if self._is_wanted():
                begun = Deferred.fromCoroutine(self._begin(self._given_out))
                self.committed = begun.addErrback(_log_broken)

    def stop(self) -> None:
        """Say no more of the reply, because it is complete or nobody waits for it."""
        self._is_over = True

    @property
    def late_end(self) -> LateEnd:
        """Return what a late end mark of reasoning does to the text before it.

        If the start was already said, it hides nothing; otherwise it hides all of that text.
        """
        return "hides_nothing" if self.said else "hides_all_before"

    def whole(self, reply: str) -> str:
        """Return what is said of the complete reply, "" for nothing."""
        if self.said:
            return self._spoken.whole(reply)
        return speech_in(reply, own_names=self._voice.own_names, other_names=self._other_names)

    def say_rest(self, text: str, *, by_rote: bool = False, is_games: bool = False) -> None:
        """Say the part of the reply that was not said before. `Voice.say` explains the options."""
        after = len(self.said) if text.startswith(self.said) else 0
        if text[after:].strip():
            self._voice.say(text, after=after, by_rote=by_rote, is_games=is_games)

    async def _begin(self, sentences: str) -> None:
        try:
            await self._commit(sentences.strip())
        except DATABASE_ERRORS as error:  # the turn says it at its end, if it can be committed then
            logger.log_err(
                f"evennia_ai: cannot commit the start of a reply, so it is not said early: {error}"
            )
            return
        self.said = sentences
        self._voice.say(sentences.strip())


def _log_broken(failure: Failure) -> None:
    """Log an error of a game's hook. The rest of the reply is still said."""
    told = failure.getTraceback()
    logger.log_err(f"evennia_ai: an error broke off the start of a reply\n{told}")


class Gestures:
    """The scheduled gestures of running turns, by the id of the record that the turn answers.

    With 0 seconds, no gesture is shown.
    """

    def __init__(self, clock: Clock, *, after_seconds: float) -> None:
        self._clock: Final = clock
        self._after_seconds: Final = after_seconds
        self._planned: dict[str, DelayedCall] = {}

    def started(self, answers: str, show: Callable[[], None]) -> None:
        """Call `show` after some seconds, unless the turn has answered or ended by then."""
        if self._after_seconds and answers not in self._planned:
            call = self._clock.callLater(self._after_seconds, self._show, answers, show)
            self._planned[answers] = call

    def ended(self, answers: str) -> None:
        """Cancel the scheduled call for a turn that has ended, or whose answer has begun."""
        planned = self._planned.pop(answers, None)
        if planned is not None and planned.active():
            planned.cancel()

    def close(self) -> None:
        """Cancel all gestures."""
        for answers in tuple(self._planned):
            self.ended(answers)

    def _show(self, answers: str, show: Callable[[], None]) -> None:
        del self._planned[answers]
        show()


def show_thinking(npc: NPC, event: Event, line: str) -> None:
    """Show that `npc` thinks about `event`: to the room, or to the person who whispered."""
    people = [who for who in bystanders(npc) if not is_npc(who)]
    if event.private:
        people = [who for who in people if str(who.id) == event.speaker_ref]
    remember_spoken(npc, line, hops=event.hops + 1, line=event.line)
    show_gesture(npc, people, line)
