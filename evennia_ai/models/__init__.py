"""Django's tables.

The rows have no behaviour. Only `store` reads and writes them, and its functions return plain
values. These are plain Django models, not Evennia's shared-memory models: what is cached is the
immutable value made from rows (`store/core/snapshots.py`). Hashed JSON is in text columns, because
a database may rewrite a JSON column.
"""

from evennia_ai.models.authored import (
    Assignment,
    Card,
    Component,
    Lorebook,
    Note,
    Persona,
    Preset,
    RegexScript,
    Revision,
    SourceFile,
)
from evennia_ai.models.core import StateRevision
from evennia_ai.models.history import (
    ERASED_META,
    AppendOnlyQuerySet,
    Conversation,
    Errand,
    Halt,
    KnowledgeSearch,
    LoreState,
    ModelCall,
    ModelCallDay,
    PlayerReport,
    Record,
    Turn,
    VaultedChunk,
    VaultReading,
)
from evennia_ai.models.knowledge import (
    KnowledgeAlias,
    KnowledgeBase,
    KnowledgeBinding,
    KnowledgeDraft,
    KnowledgeHold,
    KnowledgeLink,
    KnowledgePage,
    KnowledgePageRevision,
    KnowledgePageVector,
    KnowledgePosting,
    LorekeeperTask,
)
from evennia_ai.models.memory import KnownName, Memory, MemoryRevision
from evennia_ai.models.work import BreakerRow, Proposal, TokenLease, Worker
