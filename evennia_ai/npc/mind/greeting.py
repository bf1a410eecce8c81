"""Greeting: with what an NPC speaks first in a conversation, and who of those that come hears it.

A conversation that somebody opens is opened with the greeting before they are answered. In a room
it greets who comes as well, each person once since it began anew there; all who are there hear it.
Of a crowd that comes one by one the first is greeted, and the others together when half a minute is
over, if they are still there and did not speak with the NPC meanwhile. Who waits for that is known
in memory alone; after a reload it is told by the records of who came (`unanswered`).
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
"""How long after it greeted somebody who came an NPC greets nobody else who comes."""
BUSY_SECONDS: Final = 3.0
"""How long it waits where an answer is under way when they are over."""


class Greeting:
    """What one NPC opens conversations with. All of it may be lost in a reload."""

    def __init__(
        self,
        mind: Mind,
        current: Current,
        *,
        is_sure: Callable[[Event], bool],
        why_unable: Callable[[], str],
    ) -> None:
        """`is_sure` tells whether it answers an event, `why_unable` why it may answer nobody."""
        self._mind: Final = mind
        self._current: Final = current
        self._is_sure: Final = is_sure
        self._why_unable: Final = why_unable
        self._greets_from = 0.0
        # Who came meanwhile, by their references, in the order in which they did.
        self._waiting: dict[str, CommittedEvent] = {}
        self._is_set = False

    def opening(self, conversation: ConversationRef, event: Event) -> NewRecord | None:
        """The greeting, where this event is the first the NPC answers in the conversation.

        Only where it is sure to answer: a greeting goes before what it answers. Who comes is
        greeted whether it answers or not.
        """
        is_arrival = event.kind == ARRIVE
        has_begun = windows(conversation.id).first_reply is not None
        if not is_arrival and (has_begun or not self._is_sure(event)):
            return None
        if not self._has_one() or (is_arrival and not self._welcomes(conversation, event)):
            return None
        return self._spoken(event)

    def came(self, heard: CommittedEvent) -> bool:
        """Somebody came: say the greeting that was committed with it; whether there is one.

        Who comes too soon after another one waits for it.
        """
        clock = self._current.runtime.clock
        if heard.greeting:
            self._greets_from = clock.seconds() + GREETING_SECONDS
            clock.callLater(0, self._say, heard, heard.greeting)  # when all have seen them come
            return True
        if clock.seconds() < self._greets_from:
            self.greet_later(heard)
        return False

    def greet_later(self, heard: CommittedEvent) -> None:
        """Greet who came as soon as it greets again, if they are still there and nobody has."""
        if not _is_person(heard.event) or not self._has_one():
            return
        self._waiting[heard.event.speaker_ref] = heard
        self._look_again(self._greets_from - self._current.runtime.clock.seconds())

    def forget(self, speaker_ref: str = "") -> None:
        """Somebody left or is in conversation already, or nobody is to be greeted any more."""
        if speaker_ref:
            self._waiting.pop(speaker_ref, None)
        else:
            self._waiting.clear()

    def _look_again(self, seconds: float) -> None:
        if not self._is_set:
            self._is_set = True
            self._current.runtime.clock.callLater(max(seconds, 0.0), self._greet_those_there)

    def _greet_those_there(self) -> None:
        """The pause is over: one greeting for all who wait for it and are there."""
        self._is_set = False
        live = self._current.runtime
        if self._waiting and live.scheduler.in_flight(self._mind.ref):
            self._look_again(BUSY_SECONDS)
            return
        waiting, self._waiting = list(self._waiting.values()), {}
        if waiting and not self._why_unable():
            there = {str(who.id) for who in bystanders(self._mind.npc)}
            left = [one for one in waiting if one.event.speaker_ref in there]
            Deferred.fromCoroutine(self._greet(left)).addErrback(
                lambda failure: logger.log_err(
                    f"evennia_ai: NPC {self._mind.ref}: no greeting\n{failure.getTraceback()}"
                )
            )

    async def _greet(self, came: Sequence[CommittedEvent]) -> None:
        """Commit the greeting of these, and say it; nothing where all of them have heard it."""
        record = self._spoken(came[0].event) if came else None
        if record is None:
            return
        live, first = self._current.runtime, came[0]
        try:
            is_said = await live.writer.write(partial(_committed, came, record))
        except DATABASE_ERRORS as error:
            why = on_one_line(error)
            logger.log_err(f"evennia_ai: NPC {self._mind.ref}: not recorded, not greeted: {why}")
            return
        if is_said:
            self._greets_from = live.clock.seconds() + GREETING_SECONDS
            self._say(first, record.body)

    def _say(self, heard: CommittedEvent, text: str) -> None:
        npc = self._mind.npc
        if not why_gone(npc, heard.event):
            voice = Voice(npc, heard.event, own_names=self._mind.own_names)
            voice.say(text, by_rote=True)

    def _has_one(self) -> bool:
        assigned = cards.assignment_of(self._mind.ref)
        return assigned is not None and assigned.greeting is not None

    def _welcomes(self, conversation: ConversationRef, event: Event) -> bool:
        """True if it greets who comes now."""
        is_pausing = self._current.runtime.clock.seconds() < self._greets_from
        if not _is_person(event) or is_pausing or self._why_unable():
            return False
        return event.known_ref not in greeted_people(conversation)

    def _spoken(self, event: Event) -> NewRecord | None:
        return gather.opening(self._mind.npc, self._mind.view(), heard.key_of(event), event)


def _is_person(event: Event) -> bool:
    return bool(event.speaker_ref) and event.speaker_rank != "NPC" and not event.hops


def _committed(came: Sequence[CommittedEvent], record: NewRecord) -> bool:
    """Commit the greeting of these; whether one of them has not heard it yet."""
    where = came[0].conversation
    has_heard = greeted_people(where)
    if all(one.event.known_ref in has_heard for one in came):
        return False
    conversations.append_records(where, [record])
    return True
