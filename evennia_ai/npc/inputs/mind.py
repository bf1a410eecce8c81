"""The mind of an NPC, as the packages below `npc.mind` use it. `AIHandler` implements it."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Protocol

from twisted.internet.defer import Deferred

from evennia_ai.engine.prompt.prompt import Prompt
from evennia_ai.npc.recording.heard import CommittedEvent, Lately
from evennia_ai.npc.senses.events import Event, Line
from evennia_ai.npc.senses.presence import NPC
from evennia_ai.npc.views.view import NPCView
from evennia_ai.services.settings.npc import NPCSettings
from evennia_ai.store.history.turns import StoredTurn
from evennia_ai.store.memories import NewlyNamed


class Mind(Protocol):
    """The mind of one NPC. The methods are documented in `npc.mind.handler`."""

    npc: NPC

    ref: str
    """The NPC's database id as a text."""

    foreseen_names: OrderedDict[str, dict[str, bool]]

    @property
    def lately(self) -> Lately: ...

    @property
    def own_names(self) -> tuple[str, ...]: ...

    @property
    def is_busy(self) -> bool: ...

    @property
    def settings(self) -> NPCSettings: ...

    @property
    def fallback_line(self) -> str: ...

    @property
    def withheld_line(self) -> str: ...

    def view(self, settings: NPCSettings | None = None) -> NPCView: ...

    def preview(self, question: str | None = None, speaker: Any = None) -> Prompt: ...

    # Called with what the NPC perceives and says

    def settle_names(self, new: Sequence[NewlyNamed]) -> "Deferred[object]": ...

    def hear(self, event: Event) -> None: ...

    def spoke(self, text: str, *, hops: int, line: Line | None) -> None: ...

    def gone(self) -> None: ...

    def speaker_left(self, speaker_ref: str) -> None: ...

    # Called by turns

    def waiting_records(self) -> frozenset[str]: ...

    def prompted(self, stored: StoredTurn) -> None: ...

    def begun(self, heard: CommittedEvent) -> None: ...

    def answered(self, heard: CommittedEvent, settings: NPCSettings) -> None: ...

    def disengage(self, speaker_ref: str) -> None: ...

    def unanswered(self, event: Event) -> bool: ...

    def put_back(self, heard: CommittedEvent, *, delay_seconds: float) -> None: ...
