"""Windows: what is kept in memory of each conversation: newest messages, its end, newest texts.

A window grows in step with what is committed, so a warm turn reads no rows. Opening one costs the
same however long the conversation is: rows are read from the end, and every row knows how much of
the history there is up to it. What prompts were rendered to is stored once in each segment and
referred to again; what a process does not know of it yet it finds by the hash of its content.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from django.db.models import Q

from evennia_ai import models
from evennia_ai.history.projection import (
    CONVERSATION,
    calls_of,
    in_order,
    is_staying,
    message_of,
    project_newest,
    record_of,
)
from evennia_ai.history.records import NewRecord, Record, RecordKind
from evennia_ai.history.turn.manifest import anchors_from
from evennia_ai.history.turn.sending import NewText, TextKey, key_of
from evennia_ai.prompt.history import History
from evennia_ai.prompt.messages import Message
from evennia_ai.prompt.placement import Anchors
from evennia_ai.store.core.snapshots import Snapshots
from evennia_ai.store.history.record_rows import (
    ConversationRef,
    End,
    end_of,
    records_at,
    records_from,
    totals_of,
)

WINDOW_MESSAGES: Final = 400
HISTORY: Final = "history"
"""The kind of stored thing that all snapshots of the history are made from."""

# The rows a history is made of. The meta is canonical JSON: no text in it looks like the flag.
_SHOWN: Final = Q(kind__in=[kind.value for kind in CONVERSATION]) | Q(
    kind=RecordKind.CONTEXT_BLOCK.value, meta__contains='"stays":true'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The newest messages of a conversation, and where its next record goes."""

    history: History
    end: End
    cut: int | None = None
    """Where the newest turn of this segment cut the history, None as long as there was none."""
    anchors: Anchors
    """Where the newest turn of this segment anchored its notes."""
    first_reply: Mapping[str, Any] | None = None
    """The meta of the first thing the NPC said, None where it said nothing yet."""
    remembered_from: int = 1
    """The segment that the last erasure began, 1 where nothing was erased."""


def empty() -> Window:
    """The window of a conversation in which nothing happened yet."""
    return Window(history=History(segment=1), end=End(), anchors={})


def grown(window: Window, new: Sequence[models.Record]) -> tuple[Window, tuple[Record, ...]]:
    """The window after these rows were written, and their records."""
    records = records_from(new)
    grew = replace(
        window,
        history=_trimmed(_with(window.history, records), cut=window.cut),
        end=end_of(new[-1]),
        first_reply=_first_reply(records) if window.first_reply is None else window.first_reply,
    )
    return grew, records


def _with(history: History, new: Sequence[Record]) -> History:
    """`history` with the messages of new records, each at its place."""
    staying = [r for r in new if is_staying(r) and r.meta.get("before")]
    results = _late_results(new)
    elsewhere = {record.id for record in (*staying, *results)}
    for record in results:
        history = _inserted(history, _message(record), at=_behind_call(history, record))
    said = [_message(record) for record in in_order(r for r in new if r.id not in elsewhere)]
    history = history.appended(*said)
    for record in staying:
        at = _where(history, record.meta["before"])
        history = _inserted(history, _message(record), at=at)
    return history


def _late_results(new: Sequence[Record]) -> list[Record]:
    """The results of tools whose calls were recorded before all of these."""
    called = {call for record in new for call in calls_of(record)}
    return [
        record
        for record in new
        if record.kind is RecordKind.TOOL_RESULT and record.meta.get("tool_call_id") not in called
    ]


def _behind_call(history: History, result: Record) -> int:
    """Where the result of a tool belongs: behind the call and what else answers it."""
    wanted = result.meta.get("tool_call_id")
    at = history.stop
    while at > history.earlier:
        if any(call.id == wanted for call in history[at - 1].tool_calls):
            break
        at -= 1
    else:
        return history.earlier - 1
    while at < history.stop and history[at].role == "tool":
        at += 1
    return at


def _message(record: Record) -> Message:
    message = message_of(record)
    assert message is not None  # what is in order is a message
    return message


def _where(history: History, place: str) -> int:
    """The index of the record at a place; below that of the first where it was left behind."""
    at = history.stop - 1
    while at >= history.earlier and _place(history[at]) != place:
        at -= 1
    return at


def _inserted(history: History, message: Message, *, at: int) -> History:
    """`history` with a message before the one at this index.

    It counts among the messages that were left behind where that one was left behind.
    """
    if at == history.stop:
        return history.appended(message)
    was_left = at < history.earlier
    older = [] if was_left else [*history.between(history.earlier, at), message]
    newer = history.between(history.earlier if was_left else at, history.stop)
    return History(
        (*older, *newer),
        earlier=history.earlier + was_left,
        earlier_users=history.earlier_users,
        earlier_replies=history.earlier_replies,
        segment=history.segment,
    )


def _place(message: Message) -> str:
    record = record_of(message)
    return record.place if record is not None else ""


def _first_reply(new: Sequence[Record]) -> Mapping[str, Any] | None:
    return next((record.meta for record in new if record.kind is RecordKind.ASSISTANT), None)


def _first_shown(stop: int, cut: int | None) -> int:
    """Index of the first message that the window of a history up to `stop` holds."""
    return max(0, min(stop - WINDOW_MESSAGES, stop if cut is None else cut))


def _trimmed(history: History, *, cut: int | None) -> History:
    """Without what no prompt shows any more; once in a while, so that it costs nothing."""
    first = max(history.earlier, _first_shown(history.stop, cut))
    if first - history.earlier < WINDOW_MESSAGES:
        return history
    left = history.between(history.earlier, first)
    return History(
        history.between(first, history.stop),
        earlier=first,
        earlier_users=history.earlier_users + sum(message.is_user for message in left),
        earlier_replies=history.earlier_replies + sum(message.is_reply for message in left),
        segment=history.segment,
    )


def _load(conversation_id: int) -> Window:
    rows = models.Record.objects.filter(conversation_id=conversation_id)
    last = rows.order_by("-segment", "-seq").first()
    if last is None:
        return empty()
    end = end_of(last)
    cut, anchors = _newest_turn(conversation_id, segment=end.segment)
    return Window(
        history=_load_history(rows.filter(segment=end.segment), last, cut),
        end=end,
        cut=cut,
        anchors=anchors,
        first_reply=_load_first_reply(rows) if end.totals.replies else None,
        remembered_from=_load_remembered_from(rows, end.segment),
    )


def _newest_turn(conversation_id: int, *, segment: int) -> tuple[int | None, Anchors]:
    """Where the newest turn of this segment cut the history, and its anchors.

    A cut of the segment before would take the summary away that this one begins with.
    """
    turns = models.Turn.objects.filter(conversation_id=conversation_id).order_by("-number")
    newest = turns.values_list("cut", "manifest").first()
    if newest is None:
        return None, {}
    cut, text = newest
    manifest = json.loads(text)
    if manifest.get("segment", 1) != segment:
        return None, {}
    return cut, anchors_from(manifest.get("anchors", {}))


def _load_history(rows: Any, last: models.Record, cut: int | None) -> History:
    """The newest messages of a segment: as many as a window holds, and all since the cut.

    Texts that stay are moved, and those of messages that were left behind fall away; where that
    leaves too few, more rows are read.
    """
    totals = totals_of(last)
    wanted = totals.messages - _first_shown(totals.messages, cut)
    shown = rows.filter(_SHOWN).order_by("-seq")
    limit = wanted
    while True:
        newest = list(shown[:limit])
        records = records_from(reversed(newest))
        tail = _load_tail(records[:1])
        history = project_newest(records, totals=totals, segment=last.segment, tail=tail)
        if len(history) >= wanted or len(newest) < limit:
            return history
        limit += max(wanted, 1)


def _load_tail(first: Sequence[Record]) -> Mapping[str, Record]:
    """The records that a segment which begins with a summary kept of those before it."""
    places = [place for record in first for place in record.meta.get("tail", ())]
    return records_at(first[0].conversation, places) if places else {}


def _load_remembered_from(rows: Any, newest: int) -> int:
    if newest == 1:
        return 1
    firsts = rows.filter(segment__in=range(2, newest + 1), seq=1)
    erasures = firsts.filter(kind=RecordKind.ERASURE.value).order_by("-segment")
    return erasures.values_list("segment", flat=True).first() or 1


def _load_first_reply(rows: Any) -> Mapping[str, Any]:
    replies = rows.filter(kind=RecordKind.ASSISTANT.value).order_by("segment", "seq")
    meta = replies.values_list("meta", flat=True).first()
    return {} if meta is None else json.loads(meta)


windows: Final = Snapshots(HISTORY, _load)


MOST_KNOWN: Final = 256
"""Texts of a conversation that are kept in memory, the last used ones."""


@dataclass(frozen=True, slots=True)
class _KnownTexts:
    """Records of texts by their keys, those used last at the end."""

    segment: int
    by_key: Mapping[TextKey, Record]


_NO_TEXTS: Final = _KnownTexts(0, {})


def stored_texts(
    conversation: ConversationRef, texts: Iterable[NewText]
) -> Mapping[TextKey, Record]:
    """Those of the texts that are stored in the conversation's newest segment, by their keys.

    A block of facts is looked up only by a process that knows nothing of the conversation yet: it
    is new nearly always, and stored anew in the rare case that it was not.
    """
    segment = windows.read(conversation.id).end.segment
    known = _texts.read(conversation.id)
    is_cold = known.segment != segment
    by_key = {} if is_cold else known.by_key
    wanted = {text.key for text in texts if not text.new.meta.get("stays")}
    missing_texts = [
        key
        for key in wanted
        if key not in by_key and (is_cold or key.kind is not RecordKind.CONTEXT_BLOCK)
    ]
    stored = _texts_looked_up(conversation, segment, missing_texts) if missing_texts else {}
    return {**{key: by_key[key] for key in wanted if key in by_key}, **stored}


def missing_texts(texts: Iterable[NewText], stored: Mapping[TextKey, Record]) -> list[NewRecord]:
    """The texts that must be stored, each once, in their order."""
    return list({text.key: text.new for text in texts if text.key not in stored}.values())


def remember_texts(
    conversation: ConversationRef, used: Mapping[TextKey, Record], *, segment: int
) -> None:
    """The current transaction writes a turn that used these texts."""
    known = _texts.read(conversation.id)
    older = known.by_key if known.segment == segment else {}
    kept = [(key, record) for key, record in older.items() if key not in used]
    newest = [*kept, *used.items()][-MOST_KNOWN:]
    _texts.wrote(conversation.id, _KnownTexts(segment, dict(newest)))


def forget_texts(conversation: ConversationRef) -> None:
    """The current transaction erases the texts of the conversation."""
    _texts.written(conversation.id)


def _texts_looked_up(
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


def _load_texts(_: int) -> _KnownTexts:
    return _NO_TEXTS


_texts: Final = Snapshots(HISTORY, _load_texts)
