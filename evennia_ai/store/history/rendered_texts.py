"""Texts: what prompts were rendered to, stored once in each segment and referred to again.

The records of the newest texts are kept in memory, so a turn whose components did not change looks
nothing up. What a process does not know yet it finds by the hash of its content.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from evennia_ai import models
from evennia_ai.history.records import NewRecord, Record, RecordKind
from evennia_ai.history.turn.sending import NewText, TextKey, key_of
from evennia_ai.store.core.snapshots import Snapshots
from evennia_ai.store.history import conversations
from evennia_ai.store.history.conversations import ConversationRef
from evennia_ai.store.history.record_rows import records_from
from evennia_ai.store.history.windows import HISTORY

MOST_KNOWN: Final = 256
"""Texts of a conversation that are kept in memory, the last used ones."""


@dataclass(frozen=True, slots=True)
class _Known:
    """Records of texts by their keys, those used last at the end."""

    segment: int
    by_key: Mapping[TextKey, Record]


_NOTHING: Final = _Known(0, {})


def found(conversation: ConversationRef, texts: Iterable[NewText]) -> Mapping[TextKey, Record]:
    """Those of the texts that are stored in the conversation's newest segment, by their keys.

    A block of facts is looked up only by a process that knows nothing of the conversation yet: it
    is new nearly always, and stored anew in the rare case that it was not.
    """
    segment = conversations.segment(conversation)
    known = _known.read(conversation.id)
    is_cold = known.segment != segment
    by_key = {} if is_cold else known.by_key
    wanted = {text.key for text in texts if not text.new.meta.get("stays")}
    missing = [
        key
        for key in wanted
        if key not in by_key and (is_cold or key.kind is not RecordKind.CONTEXT_BLOCK)
    ]
    stored = _looked_up(conversation, segment, missing) if missing else {}
    return {**{key: by_key[key] for key in wanted if key in by_key}, **stored}


def missing(texts: Iterable[NewText], stored: Mapping[TextKey, Record]) -> list[NewRecord]:
    """The texts that must be stored, each once, in their order."""
    return list({text.key: text.new for text in texts if text.key not in stored}.values())


def remember(
    conversation: ConversationRef, used: Mapping[TextKey, Record], *, segment: int
) -> None:
    """The current transaction writes a turn that used these texts."""
    known = _known.read(conversation.id)
    older = known.by_key if known.segment == segment else {}
    kept = [(key, record) for key, record in older.items() if key not in used]
    newest = [*kept, *used.items()][-MOST_KNOWN:]
    _known.wrote(conversation.id, _Known(segment, dict(newest)))


def forget(conversation: ConversationRef) -> None:
    """The current transaction erases the texts of the conversation."""
    _known.written(conversation.id)


def _looked_up(
    conversation: ConversationRef, segment: int, keys: Sequence[TextKey]
) -> dict[TextKey, Record]:
    # Without the segment: SQLite would take the index of places and read the whole segment.
    rows = models.Record.objects.filter(
        conversation_id=conversation.id,
        content_sha256__in={key.content_sha256 for key in keys},
    )
    here = (record for record in records_from(rows) if record.segment == segment)
    by_key = {key_of(record): record for record in here if not record.is_erased}
    return {key: by_key[key] for key in keys if key in by_key}


def _load(_: int) -> _Known:
    return _NOTHING


_known: Final = Snapshots(HISTORY, _load)
