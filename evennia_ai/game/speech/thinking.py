"""Thinking: an NPC whose answer takes long shows that it heard, once a turn.

The gesture is shown to people and is in no history: it says nothing, and a model that read it
again and again would learn to write it. NPCs do not see it.
"""

from collections.abc import Callable
from typing import Any, Final

from evennia_ai.game.character import NPC
from evennia_ai.game.senses.events import Event
from evennia_ai.game.senses.presence import bystanders, is_npc
from evennia_ai.game.speech.output import POSE, SafeName, safe_text
from evennia_ai.llm.resilience import Clock


class Gestures:
    """The gestures of the turns under way; each has one timer at most.

    After 0 seconds means never.
    """

    def __init__(self, clock: Clock, *, after_seconds: float) -> None:
        self._clock: Final = clock
        self._after_seconds: Final = after_seconds
        self._planned: dict[object, Any] = {}

    def started(self, turn: object, show: Callable[[], None]) -> None:
        """A turn begins; `show` is called if it takes long."""
        if self._after_seconds and turn not in self._planned:
            self._planned[turn] = self._clock.callLater(self._after_seconds, self._show, turn, show)

    def ended(self, turn: object) -> None:
        """The turn has ended, or something of its answer was said or done: no gesture any more."""
        planned = self._planned.pop(turn, None)
        if planned is not None and planned.active():
            planned.cancel()

    def close(self) -> None:
        """Show nothing any more."""
        for turn in tuple(self._planned):
            self.ended(turn)

    def _show(self, turn: object, show: Callable[[], None]) -> None:
        del self._planned[turn]
        show()


def show_thinking(npc: NPC, event: Event, line: str) -> None:
    """Show the people there, or the one who whispered, that `npc` thinks about `event`."""
    people = [who for who in bystanders(npc) if not is_npc(who)]
    if event.private:
        people = [who for who in people if str(who.id) == event.speaker_ref]
    action = safe_text(line, max_lines=1).rstrip("|")  # the portal misreads a last pipe
    for person in people:
        name = SafeName(npc).get_display_name(person)
        shown = POSE.format_map({"npc": name, "action": action})
        person.msg(text=(shown, {"type": "pose"}), from_obj=npc)
