"""The tables. Rows hold no behaviour and stay in `store`, whose functions return plain values.

Plain Django models, never Evennia's shared-memory ones: what is cached is the immutable value made
from rows (`evennia_ai.store.snapshots`). Texts that are hashed are text columns with our own JSON
in them, because a database may rewrite a JSON column.
"""

from evennia_ai.models.calls import ModelCall, ModelCallDay
from evennia_ai.models.cards import Card, CardAssignment, CardFile, CardRevision
from evennia_ai.models.components import Component, ComponentRevision
from evennia_ai.models.contexts import ContextRevision
from evennia_ai.models.errands import Errand
from evennia_ai.models.halts import Halt
from evennia_ai.models.history import (
    ERASED_META,
    AppendOnlyQuerySet,
    Conversation,
    LoreState,
    Record,
    Turn,
)
from evennia_ai.models.knowledge import (
    KnowledgeAlias,
    KnowledgeBase,
    KnowledgeBinding,
    KnowledgeDraft,
    KnowledgeLink,
    KnowledgePage,
    KnowledgePageRevision,
)
from evennia_ai.models.knowledge_holds import KnowledgeHold
from evennia_ai.models.knowledge_searches import KnowledgeSearch, VaultedChunk, VaultReading
from evennia_ai.models.lorebooks import Lorebook, LorebookAttachment, LorebookRevision
from evennia_ai.models.lorekeeper_tasks import LorekeeperTask
from evennia_ai.models.memories import Memory, MemoryRevision
from evennia_ai.models.names import KnownName
from evennia_ai.models.notes import Note, NoteRevision
from evennia_ai.models.page_vectors import KnowledgePageVector
from evennia_ai.models.page_words import KnowledgePageWords
from evennia_ai.models.state import StateRevision

__all__ = [
    "ERASED_META",
    "AppendOnlyQuerySet",
    "Card",
    "CardAssignment",
    "CardFile",
    "CardRevision",
    "Component",
    "ComponentRevision",
    "ContextRevision",
    "Conversation",
    "Errand",
    "Halt",
    "KnowledgeAlias",
    "KnowledgeBase",
    "KnowledgeBinding",
    "KnowledgeDraft",
    "KnowledgeHold",
    "KnowledgeLink",
    "KnowledgePage",
    "KnowledgePageRevision",
    "KnowledgePageVector",
    "KnowledgePageWords",
    "KnowledgeSearch",
    "KnownName",
    "LoreState",
    "Lorebook",
    "LorebookAttachment",
    "LorebookRevision",
    "LorekeeperTask",
    "Memory",
    "MemoryRevision",
    "ModelCall",
    "ModelCallDay",
    "Note",
    "NoteRevision",
    "Record",
    "StateRevision",
    "Turn",
    "VaultReading",
    "VaultedChunk",
]
