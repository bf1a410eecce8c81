"""Voice: how a turn says what it has to say, to the room or to the one who whispered.

What is said is in the history before anybody hears it.
"""

import re
from typing import Any, Final, Protocol

from evennia_ai.game.events import Event
from evennia_ai.game.output import pose, speak, whisper
from evennia_ai.game.perception import bystanders
from evennia_ai.game.speech import speech
from evennia_ai.game.text import plain_name
from evennia_ai.game.view import NPCView

_ACTION: Final = re.compile(r"\*([^*\n]+)\*")


class Speaker(Protocol):
    """Whose voice it is."""

    npc: Any

    def view(self) -> NPCView: ...


class Voice:
    """Says things for the NPC of `mind`, in answer to `event`."""

    def __init__(self, mind: Speaker, event: Event) -> None:
        self._mind: Final = mind
        self._npc: Final = mind.npc
        self._event: Final = event

    @property
    def partner(self) -> Any:
        """The one who is answered, None where they are not here."""
        here = bystanders(self._npc)
        return next((who for who in here if str(who.id) == self._event.speaker_ref), None)

    def speech(self, raw: str) -> str:
        """What of a model's text is said aloud, "" where that is nothing."""
        return speech(raw, own_names=self._own_names(), other_names=self._others())

    def say(self, text: str) -> None:
        """Say it where the event was: aloud, as an action, or to the one who whispered."""
        npc, hops = self._npc, self._event.hops + 1
        action = _ACTION.fullmatch(text)
        if self._event.private:
            if self.partner is not None:
                whisper(npc, self.partner, text, hops=hops)
        elif action:
            pose(npc, action[1].strip(), hops=hops)
        else:
            speak(npc, text, hops=hops)

    def _own_names(self) -> tuple[str, str]:
        return self._mind.view().char_name, plain_name(self._npc.key)

    def _others(self) -> list[str]:
        return [plain_name(other.key) for other in bystanders(self._npc)]
