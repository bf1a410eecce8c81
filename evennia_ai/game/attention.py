"""Attention: which of the things an NPC heard it answers, and when its turns are offered.

`hear` commits what was perceived (`hearing`); what is meant for the NPC (`addressing`) becomes a
turn that waits in the scheduler.
"""

from typing import Any, Final

from django.db import DatabaseError
from evennia.utils import logger

from evennia_ai.game import gather
from evennia_ai.game.addressing import Listener, why_addressed
from evennia_ai.game.events import Event
from evennia_ai.game.gather import Heard
from evennia_ai.game.hearing import Hearing, record_overflow
from evennia_ai.game.perception import bystanders
from evennia_ai.game.runtime import runtime
from evennia_ai.game.text import plain_name
from evennia_ai.game.turn import Mind, Turn
from evennia_ai.history.records import NewRecord
from evennia_ai.store import card_assignments, conversations
from evennia_ai.store.conversations import ConversationRef


class Attention:
    """What one NPC gives its mind to. All of it may be lost in a reload."""

    def __init__(self, mind: Mind) -> None:
        self._mind: Final = mind
        self._hearing: Final = Hearing(mind.ref, opening=self._opening, consider=self._considered)
        self._waiting: set[str] = set()
        self._is_overflowing = False
        self._engaged: dict[str, tuple[str, float]] = {}

    @property
    def unrecorded(self) -> int:
        """How many events are not committed yet."""
        return self._hearing.unrecorded

    @property
    def waiting_records(self) -> frozenset[str]:
        """Ids of the records that get an answer of their own later."""
        return frozenset(self._waiting)

    def hear(self, event: Event) -> None:
        """Commit what was perceived, then answer it if the NPC is meant.

        An event that cannot be committed is kept and tried again; nothing is asked of a model
        before.
        """
        self._hearing.hear(event)

    def drop_waiting(self) -> None:
        """Answer nothing of what waits."""
        runtime().scheduler.drop(self._mind.ref)
        self._waiting.clear()

    # What a turn tells

    def started(self, turn: Turn) -> None:
        """The turn does not wait any more."""
        self._waiting.discard(turn.heard.record.id)

    def answered(self, turn: Turn) -> None:
        """The turn ended with a reply: whoever is answered is in conversation."""
        self._engage(turn.heard.event)

    def put_back(self, turn: Turn, *, delay_seconds: float) -> None:
        """Take the turn again later."""
        self._waiting.add(turn.heard.record.id)
        runtime().scheduler.put_back(self._mind.ref, turn.run, delay_seconds=delay_seconds)

    # Whether the NPC is meant

    def consider(self, heard: Heard) -> None:
        """Offer a turn for what was committed, if the NPC is meant."""
        try:
            if not self._is_meant(heard.event):
                return
        except DatabaseError as error:
            logger.log_err(f"evennia_ai: NPC {self._mind.ref}: recorded, not answered: {error}")
            return
        self._engage(heard.event)
        turn = Turn(self._mind, heard)
        if heard.greeting:  # when everybody has read the event, however long the turn waits
            runtime().clock.callLater(0, turn.greet)
        if runtime().scheduler.offer(self._mind.ref, turn.run):
            self._waiting.add(heard.record.id)
            self._is_overflowing = False
        elif not self._is_overflowing:
            self._is_overflowing = True
            record_overflow(self._mind.ref, heard.conversation)

    def _considered(self, heard: Heard) -> None:
        self.consider(heard)

    def _opening(self, conversation: ConversationRef, event: Event) -> NewRecord | None:
        """The greeting, where this event is the first the NPC answers in the conversation."""
        if conversations.has_spoken(conversation) or not self._is_meant(event):
            return None
        assigned = card_assignments.assignment_of(self._mind.ref)
        if assigned is None or assigned.greeting is None:
            return None
        return gather.opening(self._mind.npc, self._mind.view(), gather.talk_of(event), event)

    def _is_meant(self, event: Event) -> bool:
        return self._mind.enabled and bool(why_addressed(event, self._listener(event)))

    def _listener(self, event: Event) -> Listener:
        npc = self._mind.npc
        others = [who for who in bystanders(npc) if str(who.id) != event.speaker_ref]
        return Listener(
            ref=self._mind.ref,
            names=_names(npc),
            other_names=tuple(name for who in others for name in _names(who)),
            is_engaged=self._is_engaged(event),
            hop_limit=runtime().conf.hop_limit,
        )

    def _engage(self, event: Event) -> None:
        """Be in conversation with the speaker, here, for a while."""
        now = runtime().clock.seconds()
        until = now + runtime().conf.engagement_seconds
        self._engaged = {k: e for k, e in self._engaged.items() if e[1] > now}
        if not event.hops:
            self._engaged[event.speaker_ref] = (event.room_ref, until)

    def _is_engaged(self, event: Event) -> bool:
        room_ref, until = self._engaged.get(event.speaker_ref, ("", 0.0))
        return room_ref == event.room_ref and runtime().clock.seconds() < until


def _names(character: Any) -> tuple[str, ...]:
    """What a character is called: its name and its aliases."""
    return (plain_name(character.key), *sorted(map(str, character.aliases.all())))
