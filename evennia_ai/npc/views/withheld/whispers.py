"""Hides private conversations with an NPC from viewers who may not read them."""

from dataclasses import replace
from functools import cached_property
from typing import Final

from evennia_ai.engine.history.records import BOOKKEEPING, Record, RecordKind
from evennia_ai.engine.memory.memories import Memory
from evennia_ai.npc.views.withheld.viewer import WHISPERED, Viewer
from evennia_ai.store import memories
from evennia_ai.store.history import conversations
from evennia_ai.store.history.branches import npc_of
from evennia_ai.store.knowledge.knowledge_searches import StoredSearch

# Records without spoken words: texts of prompts, which `Seer` may hide, and acts of builders.
_NOT_SAID: Final = BOOKKEEPING | {RecordKind.ERASURE, RecordKind.CONTROL}


class HiddenWhispers:
    """Decides what one viewer may read of one NPC's private conversations.

    Every viewer learns that there was a conversation, with whom and how long it was. A viewer
    without the permission cannot read its words, nor what the NPC learnt from them. If a viewer
    with the permission reads a conversation, that is logged once.
    """

    def __init__(self, viewer: Viewer, npc_ref: str) -> None:
        self._hides: Final = not viewer.reads_whispers
        self._npc_ref: Final = npc_of(npc_ref)
        self._note_reading: Final = viewer.note_reading
        self._noted: Final[set[str]] = set()

    @cached_property
    def _kinds(self) -> dict[int, str]:
        """Return the kinds of the NPC's conversations by id.

        `_is_private` adds those of branches.
        """
        known = conversations.conversations_of(self._npc_ref)
        return {one.id: one.kind for one in known}

    @cached_property
    def are_some(self) -> bool:
        """True if the NPC has private conversations. They are hidden, or reading them is logged."""
        return "private" in self._kinds.values()

    @cached_property
    def are_hidden(self) -> bool:
        """True if the NPC said or learnt something in private that the viewer may not read."""
        if not self._hides:
            return False
        learnt = memories.held_by(self._npc_ref).memories
        return self.are_some or any(memory.learnt == "private" for memory in learnt)

    def hides(self, record: Record) -> bool:
        """True if the record is private and the viewer may not read it."""
        return self.are_hidden and self._is_private(record)

    def _log_reading(self, what: str) -> None:
        """Write to the security log what the viewer read. The same `what` is written only once."""
        if what not in self._noted:
            self._noted.add(what)
            self._note_reading(f"{what} of NPC {self._npc_ref}")

    def without_words(self, record: Record) -> Record:
        """Return the record as the viewer may see it.

        If they may read private words in it, log that.
        """
        if not self.are_some or record.kind in _NOT_SAID or not self._is_private(record):
            return record
        if not self._hides:
            self._log_reading(f"conversation {record.conversation}")
            return record
        calls = [{**call, "arguments": WHISPERED} for call in record.meta.get("tool_calls", ())]
        meta = {**record.meta, "tool_calls": calls} if calls else record.meta
        return replace(record, body=WHISPERED if record.body else "", meta=meta)

    def _is_private(self, record: Record) -> bool:
        if record.conversation not in self._kinds:
            self._kinds[record.conversation] = conversations.conversation_by_number(
                record.conversation
            ).kind
        return self._kinds[record.conversation] == "private"

    def mark_of_memory(self, memory: Memory) -> str:
        """Return the mark that replaces a memory's text, "" if the viewer may see it."""
        if memory.learnt != "private":
            return ""
        if not self._hides:
            self._log_reading("memories")
            return ""
        return WHISPERED

    def mark_of_search(self, search: StoredSearch) -> str:
        """Return the mark that replaces a search, "" if the viewer may see the search."""
        if search.conversation.kind != "private":
            return ""
        if not self._hides:
            self._log_reading(f"conversation {search.conversation.id}")
            return ""
        return WHISPERED
