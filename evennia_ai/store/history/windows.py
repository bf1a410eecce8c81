"""Keep the newest messages of each conversation in memory, with its end, texts and lore.

A window grows with every commit, so a turn needs to read no rows once the window is loaded. The
cost of loading a window does not depend on the length of the conversation. Rows are read from the
end, and every row has the totals of the history up to it.

A rendered text of a prompt is stored once per segment and referred to again. A process that does
not know a text finds it by the hash of its content. The state of the lore is written only with a
turn whose prompt was sent, so previews change nothing.
"""

import json
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from django.db.models import Q

from evennia_ai import models
from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import StoreError
from evennia_ai.engine.history.projection import (
    extend_history,
    project_newest,
    release_messages,
    release_records,
)
from evennia_ai.engine.history.records import (
    CONVERSATION,
    NewRecord,
    Record,
    RecordKind,
    canonical_json,
)
from evennia_ai.engine.history.turn.manifest import TurnManifest
from evennia_ai.engine.history.turn.sending import (
    NOTHING_SENT,
    NewText,
    SentMessages,
    TextKey,
    text_key,
)
from evennia_ai.engine.lorebook.activation.timers import NO_STATE, LoreState, state_from
from evennia_ai.engine.prompt.cache_account import Sent
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.memo import SpentMemo
from evennia_ai.engine.prompt.placement import NO_ANCHORS, Anchors
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.core.snapshots import LORE_STATES, Bound, Snapshots, changing
from evennia_ai.store.history.record_rows import (
    ConversationRef,
    End,
    end_of,
    records_at,
    records_from,
    totals_of,
)

WINDOW_MESSAGES: Final = 400
SPARE_MESSAGES: Final = 100
"""How many messages more than its minimum a window may have before it is trimmed."""
EMPTY_WEIGHT: Final = 4
MOST_KNOWN: Final = 64
"""How many texts of a conversation are kept in memory. The texts that were used last are kept."""
GREETING: Final = "greeting"
"""The key in a record's meta for the number of the greeting that the NPC said."""
HEARD_BY: Final = "heard_by"
"""The key in a greeting's meta for the references of the people who heard it."""
HISTORY: Final = "history"
"""The kind of thing from which all snapshots of the history are made."""

# Selects the rows of the history. Searching for a part of the meta is safe, because quotes inside
# JSON strings are escaped.
_SHOWN: Final = Q(kind__in=[kind.value for kind in (*CONVERSATION, RecordKind.CONTROL)]) | Q(
    kind=RecordKind.CONTEXT_BLOCK.value, meta__contains='"stays":true'
)
_OPENERS: Final = (RecordKind.ERASURE.value, RecordKind.CONTROL.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The newest messages of a conversation in memory, and where its next record goes."""

    history: History
    """The messages that a prompt may contain: at least the newest 400, and all since the last cut.

    Only the thread that composes may use it.
    """
    end: End
    cut: int = 0
    """The index of the first message that the newest turn of this segment kept; 0 for all."""
    has_turn: bool = False
    """True if this segment has had a turn."""
    anchors: Anchors = field(default_factory=dict)
    """The places to which the newest turn of this segment anchored its author's notes."""
    first_reply: Mapping[str, Any] | None = None
    """The stored facts (`meta`) of the NPC's first reply in the conversation; None without one."""
    remembered_from: int = 1
    """The segment that the last erasure began; 1 if nothing was erased."""
    controlled_from: int = 0
    """The segment that a builder's last reset, undo or correction began; 0 if there was none."""
    begun_from: int = 1
    """The segment of the last reset or undo after which no reply was left; 1 if there was none."""
    texts: Mapping[TextKey, Record] | None = None
    """The texts in prompts of this segment, the last used at the end.

    None if they are not loaded.
    """
    sent: Sent | None = None
    """The prompt that was sent last; None if this process has not sent it."""
    settled: SentMessages = NOTHING_SENT
    """The messages of this prompt, as they were stored and sent."""

    @property
    def greeting(self) -> int | None:
        """The number of the greeting with which the NPC began the conversation, or None."""
        found = (self.first_reply or {}).get(GREETING)
        return found if isinstance(found, int) else None


def greeted_people(conversation: ConversationRef) -> frozenset[str]:
    """Return the references of the people who heard the NPC's greeting since the last reset."""
    rows = models.Record.objects.filter(
        conversation_id=conversation.id,
        segment__gte=windows(conversation.id).begun_from,
        kind=RecordKind.ASSISTANT.value,
        meta__contains=f'"{HEARD_BY}":',
    )
    metas = map(json.loads, rows.values_list("meta", flat=True))
    return frozenset(ref for meta in metas for ref in meta.get(HEARD_BY, ()))


def empty_window() -> Window:
    """Return the window of a conversation without records and texts."""
    return Window(history=History(segment=1), end=End(), texts={})


def extended_window(window: Window, records: Sequence[Record], *, end: End) -> Window:
    """Return the window after these records were written, with its new end."""
    return replace(
        window,
        history=_trim(
            extend_history(window.history, records), cut=window.cut if window.has_turn else None
        ),
        end=end,
        first_reply=_first_reply(records) if window.first_reply is None else window.first_reply,
    )


def _first_reply(new: Sequence[Record]) -> Mapping[str, Any] | None:
    return next((record.meta for record in new if record.kind is RecordKind.ASSISTANT), None)


def _first_shown(stop: int, cut: int | None) -> int:
    """Return the index of the first message that the window of a history ending at `stop` shows."""
    return max(0, min(stop - WINDOW_MESSAGES, stop if cut is None else cut))


def _trim(history: History, *, cut: int | None) -> History:
    """Return the history without messages that no prompt shows any more.

    It is trimmed only now and then, because trimming takes time.
    """
    first = max(history.earlier, _first_shown(history.stop, cut))
    if first - history.earlier < SPARE_MESSAGES:
        return history
    left = history.between(history.earlier, first)
    release_messages(left)
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
        return empty_window()
    end = end_of(last)
    cut, anchors = _newest_turn(conversation_id, segment=end.segment)
    remembered_from, controlled_from, begun_from = _load_openers(rows, end.segment)
    return Window(
        history=_load_history(rows.filter(segment=end.segment), last, cut),
        end=end,
        cut=cut or 0,
        has_turn=cut is not None,
        anchors=anchors,
        first_reply=_load_first_reply(rows, begun_from) if end.totals.replies else None,
        remembered_from=remembered_from,
        controlled_from=controlled_from,
        begun_from=begun_from,
    )


def _newest_turn(conversation_id: int, *, segment: int) -> tuple[int | None, Anchors]:
    """Return the index of the oldest message in the newest prompt, and the anchors of its notes.

    The index is None if the newest turn belongs to an earlier segment. With an index of an earlier
    segment, the prompt would lose the summary with which this segment begins.
    """
    turns = models.Turn.objects.filter(conversation_id=conversation_id).order_by("-number")
    newest = turns.values_list("cut", "manifest").first()
    if newest is None:
        return None, {}
    cut, row = newest
    manifest = TurnManifest.from_row(row)
    return (cut, manifest.anchors) if manifest.segment == segment else (None, {})


def _load_history(rows: Any, last: models.Record, cut: int | None) -> History:
    """Return the newest messages of a segment: as many as a window needs, and all from `cut` on.

    Texts that stay in place are moved, and texts of dropped messages are removed. If too few
    messages remain, more rows are read.
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


def history_upto(row: models.Record, *, cut: int | None) -> History:
    """Return the history at the time of this row: its newest messages, and all from `cut` on.

    No window contains this history, so its records are released at once. Otherwise hundreds of
    messages and records, which refer to each other, would stay in memory until the garbage
    collector runs.
    """
    rows = models.Record.objects.filter(
        conversation_id=row.conversation_id, segment=row.segment, seq__lte=row.seq
    )
    history = _load_history(rows, row, cut)
    release_messages(history)
    return history


def _load_tail(first: Sequence[Record]) -> Mapping[str, Record]:
    """Return the records of earlier segments that stay in the prompt after a compaction.

    The first record of a segment lists their places in its `tail`.

    Args:
        first: The first record of the segment in a list, or an empty list.
    """
    places = [place for record in first for place in record.meta.get("tail", ())]
    return records_at(first[0].conversation, places) if places else {}


def _load_openers(rows: Any, newest: int) -> tuple[int, int, int]:
    """Return the newest segments that an erasure, a control and a reset began."""
    remembered_from, controlled_from, begun_from = 1, 0, 1
    if newest == 1:
        return remembered_from, controlled_from, begun_from
    firsts = rows.filter(segment__in=range(2, newest + 1), seq=1, kind__in=_OPENERS)
    told = firsts.order_by("segment").values_list("segment", "kind", "replies")
    for segment, kind, replies in told:
        if kind == RecordKind.ERASURE:
            remembered_from = segment
        else:
            controlled_from, begun_from = segment, begun_from if replies else segment
    return remembered_from, controlled_from, begun_from


def _load_first_reply(rows: Any, begun_from: int) -> Mapping[str, Any]:
    replies = rows.filter(kind=RecordKind.ASSISTANT.value, segment__gte=begun_from)
    replies = replies.order_by("segment", "seq")
    meta = replies.values_list("meta", flat=True).first()
    return {} if meta is None else json.loads(meta)


def _weight(window: Window) -> int:
    """Return the size of a window, in messages. Its other contents count as a few messages."""
    return len(window.history) + _sent_beside(window) + len(window.texts or ()) + EMPTY_WEIGHT


def _sent_beside(window: Window) -> int:
    """Return how many messages of the last prompt are not in the window's history."""
    sent = window.sent
    if sent is None:
        return 0
    is_same = sent.segment == window.history.segment
    return len(window.settled.texts) if is_same else len(sent.messages)


def release_window(window: Window, *, kept: Collection[str] = ()) -> None:
    """Release the messages and texts of an old window, except records with these ids.

    This breaks the reference cycles between records and messages.
    """
    release_messages(message for message in window.history if message.record not in kept)
    release_records(text for text in (window.texts or {}).values() if text.id not in kept)


def _is_spent(window: Window) -> bool:
    """True if the window was released while another thread was still using it."""
    oldest = window.history.between(window.history.earlier, window.history.earlier + 1)
    return any(isinstance(message.memo, SpentMemo) for message in oldest)


KEPT: Final = Bound(
    weight=_weight,
    most=lambda: conf().messages_in_memory,
    let_go=release_window,
    is_spent=_is_spent,
)
windows: Final = Snapshots(HISTORY, _load, bound=KEPT)


def stored_texts(
    conversation: ConversationRef, texts: Iterable[NewText]
) -> Mapping[TextKey, Record]:
    """Return the texts that the conversation's newest segment has stored, by their keys.

    A block of facts is looked up in the database only if the window has no texts yet. Such a block
    is nearly always new, and a second copy does no harm.
    """
    window = windows(conversation.id)
    is_cold, known = window.texts is None, window.texts or {}
    wanted = {text.key for text in texts if not text.new.meta.get("stays")}
    found = {key: known[key] for key in wanted if key in known}
    missing = [
        key
        for key in wanted
        if key not in known and (is_cold or key.kind is not RecordKind.CONTEXT_BLOCK)
    ]
    return found | _texts_looked_up(conversation, window.end.segment, missing) if missing else found


def missing_texts(texts: Iterable[NewText], stored: Mapping[TextKey, Record]) -> list[NewRecord]:
    """Return the texts that are not stored yet, each once, in order."""
    return list({text.key: text.new for text in texts if text.key not in stored}.values())


def remember_turn(
    conversation: ConversationRef,
    used: Mapping[TextKey, Record],
    *,
    cut: int,
    anchors: Anchors = NO_ANCHORS,
    sent: Sent | None = None,
    settled: SentMessages = NOTHING_SENT,
) -> None:
    """Update the window inside the transaction that writes a turn.

    Args:
        used: The texts that the turn's prompt used.
        sent: The prompt as it was sent. The next prompt is compared with it.
        settled: The messages of this prompt.
    """
    window = windows(conversation.id)
    kept = [
        (key, text)
        for key, text in (window.texts or {}).items()
        # A block of facts is rarely used a second time.
        if key not in used and key.kind is not RecordKind.CONTEXT_BLOCK
    ]
    texts = dict([*kept, *used.items()][-MOST_KNOWN:])
    release_records(text for key, text in (window.texts or {}).items() if key not in texts)
    after = replace(
        window,
        cut=cut,
        has_turn=True,
        anchors=anchors,
        texts=texts,
        sent=sent,
        settled=settled if sent else NOTHING_SENT,
    )
    windows.note_value(conversation.id, after)


def _texts_looked_up(
    conversation: ConversationRef, segment: int, keys: Sequence[TextKey]
) -> dict[TextKey, Record]:
    # Filtered by segment here, because with a condition SQLite would choose the slower index of
    # places.
    rows = models.Record.objects.filter(
        conversation_id=conversation.id,
        content_sha256__in={key.content_sha256 for key in keys},
    )
    here = (record for record in records_from(rows) if record.segment == segment)
    by_key = {text_key(record): record for record in here if not record.is_erased}
    return {key: by_key[key] for key in keys if key in by_key}


def _load_lore(conversation_id: int) -> LoreState:
    rows = models.LoreState.objects.filter(conversation_id=conversation_id)
    text = rows.values_list("state", flat=True).first()
    if text is None:
        return NO_STATE
    try:
        return state_from(json.loads(text))
    except (AttributeError, TypeError, ValueError) as error:
        raise StoreError(
            f"the lore state of conversation {conversation_id} cannot be read ({error}); something"
            " other than evennia_ai wrote it: reset it"
        ) from error


lore_states: Final = Snapshots(LORE_STATES, _load_lore)
"""Return the state of a conversation's lore, by the conversation's number.

Every call returns the same object until a turn changes it.
"""


def remember_lore(conversation: ConversationRef, state: LoreState, *, turn: int) -> None:
    """Store the state of the lore inside the transaction that writes the turn with this number."""
    models.LoreState.objects.update_or_create(
        conversation_id=conversation.id,
        defaults={
            "state": canonical_json(state.to_plain()),
            "turn": turn,
            "updated_at": time.time(),
        },
    )
    lore_states.note_value(conversation.id, state)


def reset_lore(conversation: ConversationRef, *, by: Actor) -> bool:
    """Reset the state of the lore in a conversation.

    A process in which the NPC speaks notices this at its next refresh. Until then its turns use the
    old state.

    Returns:
        True if there was a state to reset.
    """
    with changing(LORE_STATES, f"resetting the lore of {conversation} for {by}", by=by):
        removed, _ = models.LoreState.objects.filter(conversation_id=conversation.id).delete()
        lore_states.note_change(conversation.id)
    return removed > 0


def forget_lore(conversation: ConversationRef) -> None:
    """Drop the cached state of the lore, because another process may have written a newer one."""
    lore_states.drop(conversation.id)
