"""Attention: which of the events that an NPC perceives it answers, and when.

`hear` commits an event. Then `floor.addressing` decides if the NPC is meant, and `floor.bidding`
which of several NPCs answers. Finally `pending_answer` offers a turn to the scheduler. The newest
decisions are kept with their reasons, so builders can read them.
"""

from collections import deque
from typing import Any, Final

from django.db import DatabaseError
from evennia.utils import logger

from evennia_ai.engine.errors import on_one_line
from evennia_ai.engine.history.records import Record
from evennia_ai.engine.text.columns import clip_text
from evennia_ai.npc.filtering import withheld
from evennia_ai.npc.floor.addressing import (
    Address,
    Addressed,
    Engagement,
    HeardVerdict,
    Listener,
    address_of,
)
from evennia_ai.npc.floor.bidding import Bid, roll_of
from evennia_ai.npc.inputs.mind import Mind
from evennia_ai.npc.mind.greeting import Greeting
from evennia_ai.npc.mind.pending_answer import PendingAnswer
from evennia_ai.npc.model_calls.limits import why_halted
from evennia_ai.npc.recording.event_recorder import Hearing
from evennia_ai.npc.recording.heard import CommittedEvent
from evennia_ai.npc.runtime import Current, Runtime
from evennia_ai.npc.senses.events import ARRIVE, Event, Line
from evennia_ai.npc.senses.presence import bystanders, is_npc, is_on, names_for, room_ref_of
from evennia_ai.services.settings.npc import NPCSettings
from evennia_ai.store.history import record_rows

TOO_MUCH: Final = "too much waits already"
MOST_VERDICTS: Final = 20
SHOWN_CHARACTERS: Final = 80


class Attention:
    """The state of one NPC's attention, which may be lost in a reload."""

    def __init__(self, mind: Mind, current: Current) -> None:
        self._mind: Final = mind
        self._current: Final = current
        self.greeting: Final = Greeting(
            mind, current, is_sure=self.is_sure, why_unable=self.why_unable
        )
        self._hearing: Final = Hearing(
            mind.ref,
            opening=self.greeting.opening,
            consider=self._heard,
            missed=self._show_missed,
        )
        # Pending and running answers by the id of the event's record.
        self._open: dict[str, PendingAnswer] = {}
        self._engagement: Final = Engagement()
        # The speakers with whom the NPC ended the conversation while it answered them.
        self._dismissed: set[str] = set()
        self._spoke_at = 0.0
        self._is_overflowing = False
        self.overflows = 0
        self.last_verdicts: Final[deque[HeardVerdict]] = deque(maxlen=MOST_VERDICTS)

    @property
    def unrecorded(self) -> int:
        """Return the number of events that are not committed yet."""
        return len(self._hearing.unrecorded)

    @property
    def is_busy(self) -> bool:
        """True if an event is not committed yet, or an answer is pending or running."""
        return bool(self.unrecorded or self._open)

    def waiting_records(self) -> frozenset[str]:
        """Return the ids of the records that later turns will answer."""
        waiting = (one for one in self._open.values() if not one.is_running)
        return frozenset(line.id for one in waiting for line in one.heard.lines)

    def hear(self, event: Event) -> None:
        """Commit an event. Then answer it, if the NPC is meant.

        If the event cannot be committed, it is kept and tried again. No model is asked before that.
        """
        live = self._live
        event = live.floors.chains.continued(event)
        live.floors.chains.heard(event)
        self._hearing.hear(live.lines.traced(event, npc_ref=self._mind.ref), live.recorder)

    def spoke(self, text: str, *, hops: int, line: Line | None) -> None:
        """Remember the NPC's own words and actions, so that echoes of them are recognised."""
        ref, room_ref = self._mind.ref, room_ref_of(self._mind.npc)
        self._live.floors.chains.spoke(room_ref, text, speaker_ref=ref, hops=hops, line=line)

    # Giving up answers.

    def drop_waiting(self, why: str) -> int:
        """Drop pending answers and later greetings. Return the number of dropped answers."""
        self.greeting.forget()
        return self._withdraw([one for one in self._open.values() if not one.is_running], why)

    def stopped(self, why: str) -> int:
        """Drop pending and running answers after a person stopped the NPC. Return their number."""
        self.greeting.forget()
        answers = list(self._open.values())
        self._give_up(answers, why)
        if why_halted(self._mind.ref):
            for one in answers:
                self._live.signs.show("stopped", self._mind.npc, one.event)
        return len(answers)

    def gone(self) -> None:
        """Drop all answers, because the NPC left its room."""
        self._engagement.clear()
        self.greeting.forget()
        self._give_up(list(self._open.values()), "the NPC is gone or left the room")

    def speaker_left(self, speaker_ref: str) -> None:
        """Drop pending answers to a speaker who left.

        A running answer is still said if other people in the room heard the question.
        """
        self._engagement.end(speaker_ref)
        self.greeting.forget(speaker_ref)
        theirs = [one for one in self._open.values() if one.event.speaker_ref == speaker_ref]
        if any(not is_npc(who) for who in self._characters_except(speaker_ref)):
            theirs = [one for one in theirs if one.event.private or not one.is_running]
        self._give_up(theirs, "the speaker left")

    def _give_up(self, answers: list[PendingAnswer], why: str) -> None:
        self._live.watch.dropped(self._mind.ref, count=self._withdraw(answers, why), why=why)

    def _withdraw(self, answers: list[PendingAnswer], why: str) -> int:
        self._live.scheduler.withdraw(self._mind.ref, [one.run for one in answers])
        for one in answers:
            one.withdraw(why)
        return len(answers)

    def unanswered(self, event: Event) -> bool:
        """Show the speaker that the NPC will not answer, although it was meant.

        Return False if the speaker saw that within the last minute.
        """
        return self._live.signs.show("lost", self._mind.npc, event)

    def _show_missed(self, event: Event) -> None:
        """Call `unanswered` for an event that was not examined yet, if the NPC is meant."""
        try:
            is_meant = event.private or self.is_sure(event)
        except Exception as error:  # a database error, or any error of a game's hooks
            why = on_one_line(error)
            logger.log_err(
                f"evennia_ai: NPC {self._mind.ref}: cannot find out whether it was meant: {why}"
            )
            return
        if is_meant:
            self.unanswered(event)

    # Methods that turns call.

    def begun(self, heard: CommittedEvent) -> None:
        """Cancel the gesture that the NPC thinks, because part of its answer was said or done."""
        answering = self._open.get(heard.record.id)
        if answering is not None:
            answering.begun()

    def answered(self, heard: CommittedEvent, settings: NPCSettings) -> None:
        """Continue the conversation with the speaker after a reply, unless a tool ended it."""
        self._spoke_at = self._now()
        event = heard.event
        if event.speaker_ref in self._dismissed:
            self._dismissed.discard(event.speaker_ref)
        else:
            self._engage(event, settings)

    def disengage(self, speaker_ref: str) -> None:
        """End the conversation with a speaker while the NPC answers them."""
        self._engagement.end(speaker_ref)
        self._dismissed.add(speaker_ref)

    def put_back(self, heard: CommittedEvent, *, delay_seconds: float) -> None:
        """Run the turn that answers this event once more, later."""
        answering = self._open[heard.record.id]
        answering.waits_again()
        self._live.scheduler.put_back(
            self._mind.ref,
            answering.run,
            delay_seconds=delay_seconds,
            owner=answering.owner,
            chatter=answering.is_chatter,
            cooldown_seconds=self._mind.settings.cooldown_seconds,
        )

    # Deciding whether the NPC is meant.

    def consider(self, heard: CommittedEvent) -> None:
        """Offer an answer to a committed event, if the NPC is meant. Other NPCs may do the same."""
        if heard.event.kind == ARRIVE and self.greeting.came(heard):
            self._record_decision(heard, answers=True, why="it greets who comes")
            return
        try:
            settings, live = self._mind.settings, self._live
            address = self._address(heard.event, settings)
            if address.claim is Addressed.NONE:
                self._record_decision(heard, answers=False, why=address.why)
                self._show_stopped(heard.event, settings)
                return
            rivals = self._has_rivals(heard.event)
            answering = self._pending_answer(heard, address, settings)
        except DatabaseError as error:
            logger.log_err(
                f"evennia_ai: NPC {self._mind.ref}: an event was recorded but cannot be answered:"
                f" {error}"
            )
            self._show_missed(heard.event)
            return
        self._open[heard.record.id] = answering
        if heard.greeting:  # say it after all NPCs got the event, and do not wait for the turn
            live.clock.callLater(0, answering.turn.greet)
        if rivals or address.claim is Addressed.UNDECIDED:
            live.floors.bid(heard.event, self._make_bid(answering), answering)
        else:
            answering.speak()

    def answer_again(self, heard: CommittedEvent, *, why: str) -> None:
        """Answer an event again, without asking which NPC in the room answers."""
        address = Address(claim=Addressed.MEANT, why=why)
        answering = self._pending_answer(heard, address, self._mind.settings)
        self._open[heard.record.id] = answering
        answering.speak()

    def _pending_answer(
        self, heard: CommittedEvent, address: Address, settings: NPCSettings
    ) -> PendingAnswer:
        return PendingAnswer(
            self._mind,
            heard,
            address=address,
            settings=settings,
            live=self._live,
            offer=self._offer,
            over=self._forget_answer,
        )

    def _heard(self, heard: CommittedEvent) -> None:
        self._mind.lately.heard(heard.conversation)
        self.consider(heard)

    def _offer(self, answering: PendingAnswer) -> None:
        """Offer the turn of an answer to the scheduler."""
        settings, scheduler = answering.settings, self._live.scheduler
        self._dismissed.discard(answering.event.speaker_ref)
        self._engage(answering.event, settings)
        self._is_overflowing = self._is_overflowing and scheduler.waiting(self._mind.ref) > 0
        joins = self._joins_earlier(answering)
        older = None if joins else self._withdraw_older(answering)
        offered = joins or scheduler.offer(
            self._mind.ref,
            answering.run,
            place=self._live.place_of(settings),
            owner=answering.owner,
            chatter=answering.is_chatter,
            cooldown_seconds=settings.cooldown_seconds,
            gather_seconds=answering.gather_seconds,
        )
        if offered:
            self._record_decision(answering.heard, answers=True, why=answering.address.why)
            if not scheduler.in_flight(self._mind.ref):  # else people see it answer others
                answering.expect_gesture()
        if older is not None:
            self._note_overflow(older)
        if not offered:
            self._note_overflow(answering)

    def _joins_earlier(self, answering: PendingAnswer) -> bool:
        """Let the answer be for an earlier line of the speaker as well, if that still waits.

        It then waits in the place of the answer to that line. Return False if no such line waits.
        """
        for earlier in list(self._open.values()):
            if earlier.can_be_joined_by(answering) and self._live.scheduler.join(
                self._mind.ref,
                earlier.run,
                answering.run,
                owner=answering.owner,
                cooldown_seconds=answering.settings.cooldown_seconds,
                gather_seconds=answering.gather_seconds,
            ):
                answering.join(earlier)
                return True
        return False

    def _withdraw_older(self, answering: PendingAnswer) -> PendingAnswer | None:
        """Withdraw and return an older answer, if this one needs its place in the queue."""
        if answering.is_chatter:
            return None
        scheduler = self._live.scheduler
        work = scheduler.room_for(self._mind.ref, owner=answering.owner)
        older = next((one for one in self._open.values() if one.run == work), None)
        if older is not None:
            scheduler.withdraw(self._mind.ref, [older.run])
        return older

    def _note_overflow(self, unanswered: PendingAnswer) -> None:
        """Note that an event is not answered. The history says this once for several in a row."""
        self.overflows += 1
        if not self._is_overflowing:
            self._is_overflowing = True
            self._hearing.record_overflow(unanswered.heard.conversation)
        self._live.watch.dropped(self._mind.ref, count=1, why=TOO_MUCH)
        unanswered.keep_silent(TOO_MUCH)
        if self.unanswered(unanswered.event):
            logger.log_warn(
                f"evennia_ai: NPC {self._mind.ref}: lines of #{unanswered.event.speaker_ref} stay"
                f" unanswered, {TOO_MUCH} (EVENNIA_AI_SPEAKER_LIMIT, EVENNIA_AI_QUEUE_LIMIT)"
            )

    def _forget_answer(self, answering: PendingAnswer, why_silent: str) -> None:
        """Forget an answer that has ended or will not come."""
        self._open.pop(answering.heard.record.id, None)
        if why_silent:
            for line in answering.heard.joined:
                self._record_verdict(
                    line,
                    kind=str(line.meta.get("event", "")),
                    speaker=line.name,
                    text=line.body,
                    answers=False,
                    why=why_silent,
                )
            self._record_decision(answering.heard, answers=False, why=why_silent)

    def heard_lately(self) -> list[HeardVerdict]:
        """Return the newest decisions about events, the oldest first.

        Decisions about events that were erased meanwhile are dropped, also if another process
        erased them.
        """
        found = record_rows.records(verdict.record.id for verdict in self.last_verdicts)
        erased = {record.id for record in found if record.is_erased}
        kept = [verdict for verdict in self.last_verdicts if verdict.record.id not in erased]
        self.last_verdicts.clear()
        self.last_verdicts.extend(kept)
        return kept

    def _record_decision(self, heard: CommittedEvent, *, answers: bool, why: str) -> None:
        event = heard.event
        self._record_verdict(
            heard.record,
            kind=event.kind,
            speaker=event.speaker_name,
            text=event.text,
            answers=answers,
            why=why,
        )

    def _record_verdict(
        self, record: Record, *, kind: str, speaker: str, text: str, answers: bool, why: str
    ) -> None:
        self.last_verdicts.append(
            HeardVerdict(
                heard_at=self._now(),
                record=record,
                kind=kind,
                speaker=speaker,
                text=clip_text(text, SHOWN_CHARACTERS),
                answers=answers,
                why=why,
            )
        )

    def _make_bid(self, answering: PendingAnswer) -> Bid:
        heard, address = answering.heard, answering.address
        return Bid(
            npc_ref=self._mind.ref,
            claim=address.claim,
            named_at=address.named_at,
            engaged_at=self._engagement.since(heard.event, now=self._now()) or 0.0,
            talkativeness=answering.settings.talkativeness,
            roll=roll_of(self._mind.ref, heard.conversation.place_ref, heard.record.place),
            spoke_at=self._spoke_at,
        )

    def is_sure(self, event: Event) -> bool:
        """True if the NPC will answer, whatever other NPCs do, and no decider has to be asked."""
        claim = self._address(event, self._mind.settings).claim
        if claim in (Addressed.NONE, Addressed.UNDECIDED):
            return False
        return claim is Addressed.MEANT or not self._has_rivals(event)

    def _address(self, event: Event, settings: NPCSettings) -> Address:
        """Return whether the NPC is meant. If it may not answer at all, the result says why."""
        unable = withheld(event.withheld) if event.withheld else self.why_unable()
        if unable:
            return Address(claim=Addressed.NONE, why=unable)
        return address_of(event, self._listener(event, settings))

    def _show_stopped(self, event: Event, settings: NPCSettings) -> None:
        """While the NPC is stopped or paused, show that to a person who speaks to it."""
        npc = self._mind.npc
        if npc.pk is not None and why_halted(self._mind.ref) and is_on(npc):
            claim = address_of(event, self._listener(event, settings)).claim
            if claim in (Addressed.MEANT, Addressed.ENGAGED):
                self._live.signs.show("stopped", npc, event)

    def why_unable(self) -> str:
        """Return why the NPC may not answer anybody now, "" if it may."""
        npc = self._mind.npc
        if npc.pk is None:
            return "the NPC is gone"
        if not is_on(npc):
            return "switched off, or played by somebody"
        return npc.why_unable() or why_halted(self._mind.ref)

    def _listener(self, event: Event, settings: NPCSettings) -> Listener:
        live, ref = self._live, self._mind.ref
        company = live.companies.around(self._mind.npc)
        theirs = {ref, event.speaker_ref}
        hop_limit = live.conf.hop_limit if settings.hop_limit is None else settings.hop_limit
        return Listener(
            ref=ref,
            names=names_for(self._mind.npc, event.speaker_ref),
            names_another=lambda text: not company.named_in(text) <= theirs,
            mode=settings.mode,
            is_engaged=self._engagement.since(event, now=self._now()) is not None,
            hop_limit=hop_limit,
            is_chain_over=live.floors.chains.is_over(event.room_ref),
            react_to=settings.react_to,
            is_among_npcs=all(one.is_npc for one in company.people if one.ref not in theirs),
        )

    def _has_rivals(self, event: Event) -> bool:
        """True if another NPC in the room may answer instead of this one."""
        if event.private:
            return False
        return any(is_npc(who) and is_on(who) for who in self._characters_except(event.speaker_ref))

    def _characters_except(self, speaker_ref: str) -> list[Any]:
        """Return the characters in the room, without the speaker and this NPC."""
        return [who for who in bystanders(self._mind.npc) if str(who.id) != speaker_ref]

    def _engage(self, event: Event, settings: NPCSettings) -> None:
        """Begin or renew the conversation with the speaker."""
        self.greeting.forget(event.speaker_ref)
        own = settings.engagement_seconds
        lasts = self._live.conf.engagement_seconds if own is None else own
        self._engagement.begin(event, now=self._now(), lasts_seconds=lasts)

    @property
    def _live(self) -> Runtime:
        return self._current.runtime

    def _now(self) -> float:
        return self._current.runtime.clock.seconds()
