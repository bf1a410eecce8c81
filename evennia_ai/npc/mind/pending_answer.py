"""A pending answer: an event that an NPC may answer, from the bid to the end of the turn.

The end is reported once: the event was answered, or why the NPC is silent. Before the turn begins,
the NPC may turn out to be paused or at a limit; then it does not answer. Until then, a later line
of the same speaker may join: its answer is for both lines.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from evennia.utils import logger
from twisted.internet.defer import Deferred, maybeDeferred, succeed
from twisted.python.failure import Failure

from evennia_ai.engine.history.records import fallback_record
from evennia_ai.npc.floor.addressing import Address, Addressed
from evennia_ai.npc.inputs.mind import Mind
from evennia_ai.npc.mind.decider import ask_decider
from evennia_ai.npc.model_calls.limits import Refusal, why_halted
from evennia_ai.npc.recording.heard import CommittedEvent
from evennia_ai.npc.recording.retrying import DATABASE_ERRORS
from evennia_ai.npc.runtime import Runtime
from evennia_ai.npc.senses.events import TICK, payer_of
from evennia_ai.npc.senses.languages import own_language, translate
from evennia_ai.npc.senses.presence import why_gone
from evennia_ai.npc.speech.voice import Voice, show_thinking
from evennia_ai.npc.turn.turn import Turn
from evennia_ai.services.settings.npc import NPCSettings
from evennia_ai.store import model_calls
from evennia_ai.store.history import conversations


class PendingAnswer:
    """An event and the NPC's answer to it. It implements `Bidder` and `Work`."""

    def __init__(
        self,
        mind: Mind,
        heard: CommittedEvent,
        *,
        address: Address,
        settings: NPCSettings,
        live: Runtime,
        offer: "Callable[[PendingAnswer], None]",
        over: "Callable[[PendingAnswer, str], None]",
    ) -> None:
        """Prepare the answer; `speak` starts it.

        Args:
            offer: Offers the turn to the scheduler.
            over: Called once at the end, with the reason why the NPC is silent, or "".
        """
        self.heard = heard
        self.event: Final = heard.event
        self.address: Final = address
        self.settings: Final = settings
        """The NPC's settings when it heard the event. The turn reads them again."""

        self.is_chatter: Final = heard.event.hops > 0 or heard.event.kind == TICK
        """True if no person waits for it."""

        self.owner: Final = "" if self.is_chatter else heard.event.speaker_ref
        """The person whose share of turns it uses, "" if no person waits for it."""

        self.turn = Turn(mind, heard, live)
        self.is_waiting = False
        self.is_running = False
        self._mind: Final = mind
        self._live: Final = live
        self._offer: Final = offer
        self._tell_over: Final = over
        self._is_over = False
        self._heard_at: Final = live.clock.seconds()
        self._offered_at = 0.0
        self._has_gestured = False
        self._decision: Deferred[str] | None = None
        self._ended: list[Callable[[], None]] = []

    # Methods of a bidder.

    def speak(self, *, ended: Callable[[], None] | None = None) -> None:
        """Offer the turn to the scheduler. If a limit is reached, end the answer instead."""
        if self._is_over:
            if ended is not None:
                ended()
            return
        if ended is not None:
            self._ended.append(ended)
        self.is_waiting = True
        self._offered_at = self._live.clock.seconds()
        why_silent = self._live.lines.why_silent(self.event, npc_ref=self._mind.ref)
        if why_silent:
            self._end_spent(why_silent)
            return
        refusal = self._refusal(self.settings)
        if refusal is None:
            self._offer(self)
        else:  # after all NPCs got the event
            self._live.clock.callLater(0, self._end_refused, refusal)

    def _end_refused(self, refusal: Refusal) -> None:
        """End the answer because a limit is reached, unless it has already ended."""
        if not self._is_over:
            self._end(self._why_not_heard() or self._why_refused(refusal))

    def keep_silent(self, why: str) -> None:
        """End the answer without a turn. The event stays in the history."""
        self._end(why)

    # Several lines of one speaker.

    @property
    def gather_seconds(self) -> float:
        """Return how long the turn still waits for further lines of the speaker."""
        if not self._is_line:
            return 0.0
        passed = self._live.clock.seconds() - self._heard_at
        return max(0.0, self._live.conf.gather_seconds - passed)

    @property
    def _is_line(self) -> bool:
        """True if a person said or posed it and a turn may answer it together with others."""
        return bool(self.owner) and not self.event.is_happening and not self.heard.hint

    def can_be_joined_by(self, later: "PendingAnswer") -> bool:
        """True if one turn may answer this line and a later one, as far as their events tell."""
        ours, theirs = self.event, later.event
        is_same = (ours.known_ref, self.heard.conversation.id) == (
            theirs.known_ref,
            later.heard.conversation.id,
        )
        are_lines = self._is_line and later._is_line and not later.heard.greeting
        return is_same and are_lines and int(self.heard.record.id) < int(later.heard.record.id)

    def join(self, earlier: "PendingAnswer") -> None:
        """Be the answer to an earlier line as well, which then has no answer of its own."""
        self.heard = replace(self.heard, joined=earlier.heard.lines)
        self.turn = Turn(self._mind, self.heard, self._live)
        self._ended += earlier._ended
        earlier._ended = []
        self._has_gestured = earlier._has_gestured
        earlier._end("")

    def expect_gesture(self) -> None:
        """Let the NPC show that it thinks, if the answer takes long. It shows that only once."""
        if not self._has_gestured:
            self._live.gestures.started(self.heard.record.id, self._show_thinking)

    def decide(self) -> "Deferred[str]":
        """Ask the decider. Return why the NPC does not want to answer, "" if it does."""
        if self._is_over:
            return succeed("nobody waits for the answer any longer")
        self._decision = ask_decider(self._mind, self.heard, self._live)
        return self._decision

    def withdraw(self, why: str) -> None:
        """End the answer, or cancel its turn if that is running."""
        if self.is_running:
            self.turn.cancel(why)
            return
        decision, self._decision = self._decision, None
        self._end(why)
        if decision is not None:
            decision.cancel()

    # Methods of work for the scheduler.

    def run(self) -> "Deferred[None] | None":
        """Run the turn, if the NPC may speak now."""
        self.is_waiting = False
        try:
            why_not = self._why_not_now()
        except Exception:  # hooks of a game may raise anything
            self._end("an error occurred while checking whether it may answer")
            raise
        if why_not:
            self._end(why_not)
            return None
        if why_spent := self._live.lines.why_spent(self.event):
            self._end_spent(why_spent)
            return None
        self.is_running = True
        self.expect_gesture()
        return maybeDeferred(self.turn.run).addBoth(self._turn_ended)

    def waits_again(self) -> None:
        """Note that the turn could not begin and will run again later."""
        self.is_waiting = True

    def begun(self) -> None:
        """Cancel the gesture that the NPC thinks, because part of the answer was said or done."""
        self._live.gestures.ended(self.heard.record.id)

    def _turn_ended(self, outcome: Failure | None) -> Failure | None:
        self.is_running = False
        if not self.is_waiting:
            self._end("")
        return outcome

    def _why_not_now(self) -> str:
        why_not = self._why_not_heard()
        if why_not:
            return why_not
        waited_seconds = self._live.clock.seconds() - self._offered_at
        if self.is_chatter and waited_seconds > self._live.conf.hop_seconds:
            return f"no person waits for the answer, and it waited {waited_seconds:.0f} s"
        refusal = self._refusal()
        return "" if refusal is None else self._why_refused(refusal)

    def _why_not_heard(self) -> str:
        """Return why the NPC may not speak, or why nobody can hear it; "" if it may speak."""
        return why_halted(self._mind.ref) or why_gone(self._mind.npc, self.event)

    def _end_spent(self, why: str) -> None:
        """End the answer because its line may cause no more. Whoever means the NPC sees that."""
        if self.address.claim is Addressed.MEANT:
            self._mind.unanswered(self.event)
        self._end(why)

    def _why_refused(self, refusal: Refusal) -> str:
        self._report_refusal(refusal)
        return refusal.told

    def _refusal(self, settings: NPCSettings | None = None) -> Refusal | None:
        """Return the limit that is reached, None if none is.

        The offline responder has no limits, because it costs nothing. If the database cannot be
        read, the result is None too: the call of the model will fail with a clear error.
        """
        live = self._live
        try:
            settings = settings or self._mind.settings
            if live.models.of_role("speaker", settings=settings)[0].model.offline:
                return None
            return live.limits.refusal(
                npc_ref=self._mind.ref,
                player_ref=payer_of(self.event),
                npc_limits=settings.limits,
            )
        except DATABASE_ERRORS as error:
            logger.log_err(f"evennia_ai: NPC {self._mind.ref}: the limits cannot be read: {error}")
            return None

    def _report_refusal(self, refusal: Refusal) -> None:
        """Report the refusal to builders, and let the NPC tell the player, at most once a minute.

        What the NPC says is committed before anybody hears it.
        """
        ref, payer, live = self._mind.ref, payer_of(self.event), self._live
        live.watch.refused(ref, refusal)
        heard = self.heard.record.id
        row = refusal.row(npc_ref=ref, player_ref=payer, event_record=heard)
        doing = f"NPC {ref}: a refusal is not recorded"
        live.writer.until_written(partial(model_calls.add_call_alone, row), doing)
        line = live.conf.limit_line
        if not line or self.is_chatter or not live.told_of_limits.is_first((ref, payer)):
            return
        said = fallback_record(translate(line, own_language(self._mind.npc)), refused=refusal.told)
        voice = Voice(self._mind.npc, self.event, own_names=self._mind.own_names)
        written = live.writer.write(
            partial(conversations.append_records, self.heard.conversation, [said])
        )
        written.addCallback(lambda _: voice.say(line, is_games=True))
        written.addErrback(self._not_said)

    def _not_said(self, failure: Failure) -> None:
        failure.trap(*DATABASE_ERRORS)
        why = failure.getErrorMessage()
        logger.log_err(
            f"evennia_ai: NPC {self._mind.ref}: the line about a limit cannot be recorded, so it"
            f" is not said: {why}"
        )

    def _show_thinking(self) -> None:
        self._has_gestured = True
        line = self._mind.settings.thinking or self._live.conf.thinking_line
        if self._mind.npc.pk is not None and line:
            show_thinking(self._mind.npc, self.event, line)

    def _end(self, why_silent: str) -> None:
        if self._is_over:
            return
        self._is_over = True
        self.is_waiting = False
        self._live.gestures.ended(self.heard.record.id)
        self._tell_over(self, why_silent)
        for ended in self._ended:
            ended()
