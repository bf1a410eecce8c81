"""Greetings: what an NPC says first in a conversation, and which newcomers it greets.

If somebody opens a conversation, the NPC says its greeting before it answers. In a room, it also
greets newcomers. It greets each person once, until the conversation gets a new segment, and
everybody present hears the greeting. If several people come within half a minute, the first one is
greeted at once. Afterwards one greeting is said to all the others who are still present and have
not spoken with the NPC. Newcomers who wait are kept in memory only. After a reload they are found
in the records (`unanswered`).
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from evennia.utils import logger
from twisted.internet.defer import Deferred

from evennia_ai.engine.errors import on_one_line
from evennia_ai.engine.history.records import NewRecord
from evennia_ai.npc.inputs import gather
from evennia_ai.npc.inputs.mind import Mind
from evennia_ai.npc.recording import heard
from evennia_ai.npc.recording.heard import CommittedEvent
from evennia_ai.npc.recording.retrying import DATABASE_ERRORS
from evennia_ai.npc.runtime import Current
from evennia_ai.npc.senses.events import ARRIVE, Event
from evennia_ai.npc.senses.presence import bystanders, why_gone
from evennia_ai.npc.speech.voice import Voice
from evennia_ai.store.authored import cards
from evennia_ai.store.history import conversations
from evennia_ai.store.history.record_rows import ConversationRef
from evennia_ai.store.history.windows import greeted_people, windows

GREETING_SECONDS: Final = 30.0
"""The pause between two greetings of newcomers."""
BUSY_SECONDS: Final = 3.0
"""How much longer the NPC waits if it is answering when the pause ends."""


class Greeting:
    """The greetings of one NPC. Its state may be lost in a reload."""

    def __init__(
        self,
        mind: Mind,
        current: Current,
        *,
        is_sure: Callable[[Event], bool],
        why_unable: Callable[[], str],
    ) -> None:
        """Prepare the greetings. Nobody waits for one yet.

        Args:
            is_sure: Returns True if the NPC will certainly answer an event.
            why_unable: Returns why the NPC may not answer anybody now, "" if it may.
        """
        self._mind: Final = mind
        self._current: Final = current
        self._is_sure: Final = is_sure
        self._why_unable: Final = why_unable
        self._greets_from = 0.0
        # Newcomers who wait for a greeting, by reference, in the order in which they came.
        self._waiting: dict[str, CommittedEvent] = {}
        self._is_set = False

    def opening(self, conversation: ConversationRef, event: Event) -> NewRecord | None:
        """Return the greeting, if the NPC's answer to this event opens the conversation.

        The NPC must be sure to answer, because the greeting comes before the answer. A newcomer is
        greeted without a line to answer.
        """
        is_arrival = event.kind == ARRIVE
        has_begun = windows(conversation.id).first_reply is not None
        if not is_arrival and (has_begun or not self._is_sure(event)):
            return None
        if not self._has_greeting() or (
            is_arrival and not self._may_greet_now(conversation, event)
        ):
            return None
        return self._greeting_record(event)

    def came(self, heard: CommittedEvent) -> bool:
        """Say the greeting that was committed with an arrival. Return False if there is none.

        If the person came during the pause, they are greeted after it.
        """
        clock = self._current.runtime.clock
        if heard.greeting:
            self._greets_from = clock.seconds() + GREETING_SECONDS
            # after everybody in the room saw the arrival
            clock.callLater(0, self._say, heard, heard.greeting)
            return True
        if clock.seconds() < self._greets_from:
            self.greet_later(heard)
        return False

    def greet_later(self, heard: CommittedEvent) -> None:
        """Greet a newcomer after the pause, if they are still present and not yet greeted."""
        if not _is_person(heard.event) or not self._has_greeting():
            return
        self._waiting[heard.event.speaker_ref] = heard
        self._greet_after(self._greets_from - self._current.runtime.clock.seconds())

    def forget(self, speaker_ref: str = "") -> None:
        """Cancel the waiting greeting of this person, or of everybody without a reference.

        A person who left, or who is already in a conversation with the NPC, needs none.
        """
        if speaker_ref:
            self._waiting.pop(speaker_ref, None)
        else:
            self._waiting.clear()

    def _greet_after(self, seconds: float) -> None:
        if not self._is_set:
            self._is_set = True
            self._current.runtime.clock.callLater(max(seconds, 0.0), self._greet_waiting)

    def _greet_waiting(self) -> None:
        """Say one greeting after the pause, for all who waited and are still present."""
        self._is_set = False
        live = self._current.runtime
        if self._waiting and live.scheduler.in_flight(self._mind.ref):
            self._greet_after(BUSY_SECONDS)
            return
        waiting, self._waiting = list(self._waiting.values()), {}
        if waiting and not self._why_unable():
            there = {str(who.id) for who in bystanders(self._mind.npc)}
            left = [one for one in waiting if one.event.speaker_ref in there]
            Deferred.fromCoroutine(self._greet(left)).addErrback(
                lambda failure: logger.log_err(
                    f"evennia_ai: NPC {self._mind.ref}: an error prevented a"
                    f" greeting\n{failure.getTraceback()}"
                )
            )

    async def _greet(self, came: Sequence[CommittedEvent]) -> None:
        """Commit and say the greeting, unless all these people heard it before."""
        record = self._greeting_record(came[0].event) if came else None
        if record is None:
            return
        live, first = self._current.runtime, came[0]
        try:
            is_said = await live.writer.write(partial(_commit_greeting, came, record))
        except DATABASE_ERRORS as error:
            why = on_one_line(error)
            logger.log_err(
                f"evennia_ai: NPC {self._mind.ref}: a greeting cannot be recorded, so it is not"
                f" said: {why}"
            )
            return
        if is_said:
            self._greets_from = live.clock.seconds() + GREETING_SECONDS
            self._say(first, record.body)

    def _say(self, heard: CommittedEvent, text: str) -> None:
        npc = self._mind.npc
        if not why_gone(npc, heard.event):
            voice = Voice(npc, heard.event, own_names=self._mind.own_names)
            voice.say(text, by_rote=True)

    def _has_greeting(self) -> bool:
        assigned = cards.assignment_of(self._mind.ref)
        return assigned is not None and assigned.greeting is not None

    def _may_greet_now(self, conversation: ConversationRef, event: Event) -> bool:
        """True if the NPC greets this newcomer now."""
        is_pausing = self._current.runtime.clock.seconds() < self._greets_from
        if not _is_person(event) or is_pausing or self._why_unable():
            return False
        return event.known_ref not in greeted_people(conversation)

    def _greeting_record(self, event: Event) -> NewRecord | None:
        return gather.opening_greeting(
            self._mind.npc, self._mind.view(), heard.key_of(event), event
        )


def _is_person(event: Event) -> bool:
    return bool(event.speaker_ref) and event.speaker_rank != "NPC" and not event.hops


def _commit_greeting(came: Sequence[CommittedEvent], record: NewRecord) -> bool:
    """Commit the greeting. Return False if all these people heard it before."""
    where = came[0].conversation
    has_heard = greeted_people(where)
    if all(one.event.known_ref in has_heard for one in came):
        return False
    conversations.append_records(where, [record])
    return True
