"""The witness: what an NPC sees happen around it, read from Evennia's hooks and messages.

A move of a character may be reported twice: by the room's hook and by the line that the game sends
about it. The witness therefore collects what belongs together while one command runs. It makes one
event of that afterwards, or before the NPC perceives anything else. It does not guess from the
words if a character came or left. It checks if they are in the room. `AIRoomMixin` reports silent
moves. In all rooms, signals of Evennia report who logs in and out.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

from django.db import DatabaseError
from evennia.server.signals import SIGNAL_OBJECT_POST_PUPPET, SIGNAL_OBJECT_POST_UNPUPPET
from evennia.utils import logger
from twisted.internet.base import DelayedCall

from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.engine.prompt.names import quote_name
from evennia_ai.npc.senses.choices import opted_out
from evennia_ai.npc.senses.events import Event
from evennia_ai.npc.senses.happenings import (
    Happening,
    describe_to,
    event_for,
    item_name,
    let_perceive,
    mark_kind,
    npcs_in,
)
from evennia_ai.npc.senses.perception import heard_text, payload_of, sender_of
from evennia_ai.npc.senses.presence import (
    NPC,
    HasMind,
    is_character,
    is_playable_by,
    room_ref_of,
)
from evennia_ai.npc.senses.text import plain_name
from evennia_ai.services.llm.resilience import Clock

LOOK_SECONDS: Final = 60.0
"""A second look of the same character within these seconds is ignored."""
MAX_LOOKERS: Final = 256
MAX_SCENE: Final = 600
"""The most characters of a room's description that an NPC perceives when it arrives."""

# Evennia's own types of moves. Only `AIRoomMixin` reports moves of other types.
_MOVES: Final = frozenset({"move", "traverse", "teleport", "follow", "fall"})


@dataclass(frozen=True, slots=True)
class _Move:
    """A move of a character, as far as the NPC has seen it.

    `event` is None if the NPC cannot see the character. `kind` is "" until a hook reports the move.
    If `is_announced`, the text of the event is the game's own line.
    """

    mover: Any
    event: Event | None
    room_ref: str
    kind: str
    is_announced: bool = False


@dataclass(frozen=True, slots=True)
class _Gifts:
    """The things that one character gave so far: their counts, and their names by kind of thing."""

    giver: Any
    counts: dict[str, int] = field(default_factory=dict)
    named: dict[str, str] = field(default_factory=dict)

    def add(self, npc: NPC, item: Any) -> None:
        """Count one more given object."""
        name = item_name(npc, item)
        count = self.counts[name] = self.counts.get(name, 0) + 1
        self.named[name] = item_name(npc, item, count=count)

    def __str__(self) -> str:
        *first, last = map(quote_name, self.named.values())
        return f"{', '.join(first)} and {last}" if first else last


class Witness:
    """Collects what one NPC sees in this moment, until it is reported as events."""

    def __init__(self, npc: NPC, clock: Callable[[], Clock]) -> None:
        """Start with nothing seen. `clock` returns the clock in use."""
        self._npc: Final = npc
        self._clock: Final = clock
        self._moves: dict[str, _Move] = {}
        self._gifts: dict[str, _Gifts] = {}
        self._looked: dict[str, float] = {}
        self._call: DelayedCall | None = None

    @property
    def is_waiting(self) -> bool:
        """True if the NPC saw something that is not reported yet."""
        return bool(self._moves or self._gifts)

    def hears(self, text: Any, from_obj: Any) -> None:
        """Read a message to the NPC.

        A line about a move is collected; others report what is waiting.
        """
        mover = sender_of(from_obj)
        payload = payload_of(text)
        if mover is None or payload.kind not in _MOVES or not is_character(mover):
            self.settle()
        elif mover != self._npc:
            self._hears_of_move(mover, heard_text(payload.line))

    def sees_arrive(self, mover: Any, source: Any) -> None:
        """Note that a character arrived. If the game announced that, it did so before this call."""
        known = self._moves.get(str(mover.id))
        if known is not None and known.is_announced:
            self._collect_move(replace(known, kind="arrive"))
        else:
            place = f" from {_place(self._npc, source)}" if _is_a_place(source) else ""
            self._sees_move("arrive", "{actor} comes in" + place + ".", mover)

    def sees_leave(self, mover: Any, target: Any) -> None:
        """Note that a character leaves. If the game announces that, it does so after this call."""
        place = f" for {_place(self._npc, target)}" if _is_a_place(target) else ""
        self._sees_move("leave", "{actor} leaves" + place + ".", mover)

    def is_given(self, item: Any, giver: Any) -> None:
        """Note that a character gave a thing to the NPC."""
        if giver == self._npc or not is_character(giver) or is_character(item):
            return
        self._settle_moves()
        self._gifts.setdefault(str(giver.id), _Gifts(giver)).add(self._npc, item)
        self._settle_soon()

    def is_looked_at(self, looker: Any) -> None:
        """Report that a character looks at the NPC, at most once a minute for each looker."""
        if looker == self._npc or not is_character(looker) or not self._is_new_look(str(looker.id)):
            return
        self.settle()
        let_perceive(self._npc, Happening(kind="look", text="{actor} looks at you.", actor=looker))

    def comes_from(self, source: Any) -> None:
        """Report that the NPC itself arrived in its room.

        Nothing is reported if the NPC was just created, or moved into or out of a character's
        hands. Evennia's `create/drop` creates an NPC in the builder's hands and drops it.
        """
        npc = self._npc
        if source is None or npc.location is None:
            return
        self.settle()
        npc.ai.gone()
        if not (_is_a_place(source) and _is_a_place(npc.location)):
            return
        scene = describe_to(npc, npc.location, most=MAX_SCENE)
        came = f"You come to {_place(npc, npc.location)} from {_place(npc, source)}."
        let_perceive(npc, Happening(kind="moved", text="", detail=f"{came} {scene}"))

    def settle(self) -> None:
        """Report everything that was collected, as events."""
        self._settle_moves()
        gifts, self._gifts = self._gifts, {}
        for gift in gifts.values():
            given = Happening(
                kind="give",
                text="{actor} gives you {item}.",
                actor=gift.giver,
                item=str(gift),
                to=self._npc,
                wants_answer=True,
            )
            let_perceive(self._npc, given)

    # Moves

    def _sees_move(self, kind: str, text: str, mover: Any) -> None:
        event = event_for(self._npc, Happening(kind=kind, text=text, actor=mover))
        self._collect_move(_Move(mover, event, room_ref_of(self._npc), kind))

    def _hears_of_move(self, mover: Any, line: str) -> None:
        event = event_for(self._npc, Happening(kind="move", text="", actor=mover))
        told = replace(event, text=self._with_label(mover, line, event)) if event else None
        known = self._moves.get(str(mover.id))
        kind = known.kind if known is not None else ""
        self._collect_move(_Move(mover, told, room_ref_of(self._npc), kind, is_announced=True))

    def _with_label(self, mover: Any, line: str, event: Event) -> str:
        """Return the game's line with the NPC's label in place of the mover's name."""
        shown = heard_text(str(mover.get_display_name(self._npc)))
        label = quote_name(event.speaker_name)
        return line if not shown or label == shown else line.replace(shown, label)

    def _collect_move(self, move: _Move) -> None:
        """Collect a move until its last report. A move of another character ends the collection."""
        ref = str(move.mover.id)
        if self._gifts or any(other != ref for other in self._moves):
            self.settle()
        self._moves[ref] = move
        self._settle_soon()

    def _settle_moves(self) -> None:
        moves, self._moves = self._moves, {}
        for ref, move in moves.items():
            kind = move.kind or ("arrive" if _is_in(move.mover, move.room_ref) else "leave")
            if move.event is not None:
                text = move.event.text
                if move.is_announced:
                    text = mark_kind(kind, text, by=move.event.speaker_name)
                self._npc.ai.hear(replace(move.event, kind=kind, text=text))
            if kind == "leave":
                self._npc.ai.speaker_left(ref)

    def _settle_soon(self) -> None:
        if self._call is None or not self._call.active():
            self._call = self._clock().callLater(0, call_safely, self._npc, self.settle)

    def _is_new_look(self, ref: str) -> bool:
        now = self._clock().seconds()
        if ref in self._looked and now - self._looked[ref] < LOOK_SECONDS:
            return False
        self._looked.pop(ref, None)
        self._looked[ref] = now
        if len(self._looked) > MAX_LOOKERS:
            del self._looked[next(iter(self._looked))]
        return True


def call_safely(npc: NPC, do: Callable[..., None], *args: Any) -> None:
    """Call `do`.

    Log errors of the database or of settings, so that the game's hook does not fail.
    """
    try:
        do(*args)
    except (DatabaseError, EvenniaAIError) as error:
        logger.log_err(f"evennia_ai: NPC {npc.id} did not see something: {error}")


def _is_a_place(where: Any) -> bool:
    """True for a room or another place, false for a character, who may hold the NPC."""
    return where is not None and not is_character(where)


def _place(npc: NPC, place: Any) -> str:
    return quote_name(plain_name(place.get_display_name(npc)))


def _is_in(mover: Any, room_ref: str) -> bool:
    """True if a character is in this room now. A deleted character is in no room."""
    place = mover.location if mover.pk is not None else None
    return place is not None and str(place.id) == room_ref


class AIRoomMixin:
    """A mixin for rooms, with which NPCs also see moves that the game does not announce.

    Put it before the room class. Without it, NPCs see only what the game announces, and who logs in
    and out.
    """

    def at_object_receive(
        self, moved_obj: Any, source_location: Any, move_type: str = "move", **kwargs: Any
    ) -> None:
        """Show the NPCs of the room that a character arrived. A hook of Evennia."""
        super().at_object_receive(  # type: ignore[misc]
            moved_obj, source_location, move_type=move_type, **kwargs
        )
        show_arrival(self, moved_obj, source_location)

    def at_object_leave(
        self, moved_obj: Any, target_location: Any, move_type: str = "move", **kwargs: Any
    ) -> None:
        """Show the NPCs of the room that a character is about to leave. A hook of Evennia."""
        super().at_object_leave(  # type: ignore[misc]
            moved_obj, target_location, move_type=move_type, **kwargs
        )
        show_departure(self, moved_obj, target_location)


def show_arrival(room: Any, mover: Any, source: Any) -> None:
    """Show the NPCs of a room that a character arrived. `source` is None if unknown."""
    for npc in _onlookers(room, mover):
        call_safely(npc, npc.witness.sees_arrive, mover, source)


def show_departure(room: Any, mover: Any, target: Any) -> None:
    """Show the NPCs of a room that a character leaves. `target` is None if unknown."""
    for npc in _onlookers(room, mover):
        call_safely(npc, npc.witness.sees_leave, mover, target)


def _onlookers(room: Any, mover: Any) -> list[Any]:
    if room is None or not is_character(mover):
        return []
    return [npc for npc in npcs_in(room) if npc != mover]


_UID = "evennia_ai"


def watch_logins() -> None:
    """Let NPCs see from now on who logs in and out. May be called more than once."""
    SIGNAL_OBJECT_POST_PUPPET.connect(_on_puppet, dispatch_uid=_UID)
    SIGNAL_OBJECT_POST_UNPUPPET.connect(_on_unpuppet, dispatch_uid=_UID)


def _on_puppet(sender: Any, account: Any = None, **kwargs: Any) -> None:
    if isinstance(sender, HasMind) and not is_playable_by(sender, account):
        return  # a builder or player took over an NPC that was in the room already
    if sender.sessions.count() == 1:  # no arrival for a second session of the same character
        show_arrival(sender.location, sender, None)


def _on_unpuppet(sender: Any, account: Any = None, **kwargs: Any) -> None:
    """Show that a character logged out, unless the game leaves it in the room."""
    if opted_out(account):  # the character has lost its account already
        return
    if sender.location is None and not sender.sessions.count():
        show_departure(sender.db.prelogout_location, sender, None)
