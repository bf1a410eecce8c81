"""The mind of an NPC, as all who deal with it see it; `AIHandler` is one, and knows all of them."""

from typing import Any, Protocol

from evennia_ai.game.recording.heard import CommittedEvent, Lately
from evennia_ai.game.senses.events import Event
from evennia_ai.game.senses.presence import NPC
from evennia_ai.minds.view import NPCView
from evennia_ai.prompt.cache_account import Sent
from evennia_ai.prompt.prompt import Prompt
from evennia_ai.settings.npc import NPCSettings
from evennia_ai.store.history.record_rows import ConversationRef
from evennia_ai.store.history.turns import StoredTurn


class Mind(Protocol):
    """The mind of one NPC."""

    npc: NPC

    ref: str
    """The NPC's database id, as a text."""

    foreseen_names: dict[str, dict[str, None]]

    @property
    def lately(self) -> Lately: ...

    @property
    def is_busy(self) -> bool: ...

    @property
    def settings(self) -> NPCSettings: ...

    @property
    def fallback_line(self) -> str: ...

    def view(self, settings: NPCSettings | None = None) -> NPCView: ...

    def preview(self, question: str | None = None, speaker: Any = None) -> Prompt: ...

    # What it perceives

    def hear(self, event: Event) -> None: ...

    def gone(self) -> None: ...

    def speaker_left(self, speaker_ref: str) -> None: ...

    # What a turn asks it, and tells it

    def waiting_records(self) -> frozenset[str]: ...

    def sent_before(self, conversation: ConversationRef) -> Sent | None: ...

    def prompted(self, stored: StoredTurn, sent: Sent) -> None: ...

    def begun(self, heard: CommittedEvent) -> None: ...

    def answered(self, heard: CommittedEvent, settings: NPCSettings) -> None: ...

    def disengage(self, speaker_ref: str) -> None: ...

    def put_back(self, heard: CommittedEvent, *, delay_seconds: float) -> None: ...
