"""Windows: what is kept in memory of each conversation: newest messages, its end, texts, lore.

A window grows in step with what is committed, so a warm turn reads no rows. Opening one costs the
same however long the conversation is: rows are read from the end, and every row knows how much of
the history there is up to it. What prompts were rendered to is stored once in each segment and
referred to again; what a process does not know of it yet it finds by the hash of its content.
What lore remembers from turn to turn is written with the turn whose prompt was sent and with no
other, so looking changes nothing.
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
from evennia_ai.engine.history.turn.manifest import anchors_from
from evennia_ai.engine.history.turn.sending import NewText, TextKey, text_key
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
"""How many more a window holds before it is cut to what it must."""
EMPTY_WEIGHT: Final = 4
MOST_KNOWN: Final = 64
"""Texts of a conversation that are kept in memory, the last used ones."""
GREETING: Final = "greeting"
"""In the meta of a record: which greeting of its card the NPC said."""
HEARD_BY: Final = "heard_by"
"""In the meta of a greeting: the references of the people who were there."""
HISTORY: Final = "history"
"""The kind of stored thing that all snapshots of the history are made from."""

# The rows a history is made of. The meta is canonical JSON: no text in it looks like the flag.
_SHOWN: Final = Q(kind__in=[kind.value for kind in (*CONVERSATION, RecordKind.CONTROL)]) | Q(
    kind=RecordKind.CONTEXT_BLOCK.value, meta__contains='"stays":true'
)
_OPENERS: Final = (RecordKind.ERASURE.value, RecordKind.CONTROL.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The newest messages of a conversation, and where its next record goes."""

    history: History
    """What a prompt may show: at least the newest 400 messages, and all since the remembered cut.

    Not for several threads at once: it belongs to the thread that composes."""
    end: End
    cut: int = 0
    """Where the newest turn of this segment cut the history, 0 as long as there was none."""
    has_turn: bool = False
    """True if there was a turn in this segment."""
    anchors: Anchors = field(default_factory=dict)
    """Where the newest turn of this segment anchored its notes."""
    first_reply: Mapping[str, Any] | None = None
    """The meta of the first thing the NPC said, None where it said nothing yet."""
    remembered_from: int = 1
    """The segment that the last erasure began, 1 where nothing was erased."""
    controlled_from: int = 0
    """The segment that a builder's last control began, 0 where there was none."""
    begun_from: int = 1
    """The segment of the last control that left nothing the NPC said: there it began anew."""
    texts: Mapping[TextKey, Record] | None = None
    """The texts that prompts of this segment used, the last ones at the end; None: not known."""
    sent: Sent | None = None
    """The prompt that was sent last, None where this process does not know it."""
    sent_texts: int = 0
    """How many of its messages are texts, which the history does not hold."""

    @property
    def greeting(self) -> int | None:
        """The index of the greeting that the NPC said first; None for none or another start."""
        found = (self.first_reply or {}).get(GREETING)
        return found if isinstance(found, int) else None


def greeted(conversation: ConversationRef) -> frozenset[str]:
    """The references of who has heard the NPC's greeting there since it began anew."""
    rows = models.Record.objects.filter(
        conversation_id=conversation.id,
        segment__gte=windows(conversation.id).begun_from,
        kind=RecordKind.ASSISTANT.value,
        meta__contains=f'"{HEARD_BY}":',
    )
    metas = map(json.loads, rows.values_list("meta", flat=True))
    return frozenset(ref for meta in metas for ref in meta.get(HEARD_BY, ()))


def empty() -> Window:
    """The window of a conversation in which nothing happened yet: no text is stored either."""
    return Window(history=History(segment=1), end=End(), texts={})


def grown(window: Window, records: Sequence[Record], *, end: End) -> Window:
    """The window after these records were written, which end at `end`."""
    return replace(
        window,
        history=_trimmed(
            extend_history(window.history, records), cut=window.cut if window.has_turn else None
        ),
        end=end,
        first_reply=_first_reply(records) if window.first_reply is None else window.first_reply,
    )


def _first_reply(new: Sequence[Record]) -> Mapping[str, Any] | None:
    return next((record.meta for record in new if record.kind is RecordKind.ASSISTANT), None)


def _first_shown(stop: int, cut: int | None) -> int:
    """Index of the first message that the window of a history up to `stop` holds."""
    return max(0, min(stop - WINDOW_MESSAGES, stop if cut is None else cut))


def _trimmed(history: History, *, cut: int | None) -> History:
    """Without what no prompt shows any more; once in a while, so that it costs nothing."""
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
        return empty()
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
    """Where the newest turn of this segment cut the history, and its anchors.

    A cut of the segment before would take the summary away that this one begins with.
    """
    turns = models.Turn.objects.filter(conversation_id=conversation_id).order_by("-number")
    newest = turns.values_list("cut", "manifest").first()
    if newest is None:
        return None, {}
    cut, text = newest
    manifest = json.loads(text)
    if manifest["segment"] != segment:
        return None, {}
    return cut, anchors_from(manifest["anchors"])


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


def history_upto(row: models.Record, *, cut: int | None) -> History:
    """The history as this row had left it: its newest messages, and all since the cut if any.

    No window holds it, so it is let go at once: a message and its record refer to each other, and
    hundreds of them would stay in memory until the collector searches all there is.
    """
    rows = models.Record.objects.filter(
        conversation_id=row.conversation_id, segment=row.segment, seq__lte=row.seq
    )
    history = _load_history(rows, row, cut)
    release_messages(history)
    return history


def _load_tail(first: Sequence[Record]) -> Mapping[str, Record]:
    """The records that a segment which begins with a summary kept of those before it."""
    places = [place for record in first for place in record.meta.get("tail", ())]
    return records_at(first[0].conversation, places) if places else {}


def _load_openers(rows: Any, newest: int) -> tuple[int, int, int]:
    """The newest segments that an erasure began, a control, and one that left no reply."""
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
    """In messages; what a window takes beside them is told as a few."""
    return len(window.history) + _sent_beside(window) + len(window.texts or ()) + EMPTY_WEIGHT


def _sent_beside(window: Window) -> int:
    """How many messages of the prompt that was sent last are not those of the window's history."""
    sent = window.sent
    if sent is None:
        return 0
    is_same = sent.segment == window.history.segment
    return window.sent_texts if is_same else len(sent.messages)


def leave(window: Window, *, kept: Collection[str] = ()) -> None:
    """Let go what a window held that is over, but for the records of these ids."""
    release_messages(message for message in window.history if message.record not in kept)
    release_records(text for text in (window.texts or {}).values() if text.id not in kept)


def _is_spent(window: Window) -> bool:
    """True if it was let go while somebody went on from it."""
    oldest = window.history.between(window.history.earlier, window.history.earlier + 1)
    return any(isinstance(message.memo, SpentMemo) for message in oldest)


KEPT: Final = Bound(
    weight=_weight,
    most=lambda: conf().messages_in_memory,
    let_go=leave,
    is_spent=_is_spent,
)
windows: Final = Snapshots(HISTORY, _load, bound=KEPT)


def stored_texts(
    conversation: ConversationRef, texts: Iterable[NewText]
) -> Mapping[TextKey, Record]:
    """Those of the texts that are stored in the conversation's newest segment, by their keys.

    A block of facts is looked up only by a process that knows nothing of the conversation yet: it
    is new nearly always, and stored anew in the rare case that it was not.
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
    """The texts that must be stored, each once, in their order."""
    return list({text.key: text.new for text in texts if text.key not in stored}.values())


def remember_turn(
    conversation: ConversationRef,
    used: Mapping[TextKey, Record],
    *,
    cut: int,
    anchors: Anchors = NO_ANCHORS,
    sent: Sent | None = None,
) -> None:
    """The current transaction writes a turn: the texts of its prompt, how it was cut, its notes.

    What is kept of the prompt as it was `sent` tells what the next one shares with it.
    """
    window = windows(conversation.id)
    kept = [
        (key, text)
        for key, text in (window.texts or {}).items()
        if key not in used and key.kind is not RecordKind.CONTEXT_BLOCK  # facts do not come again
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
        sent_texts=sum(message.record is None for message in sent.messages) if sent else 0,
    )
    windows.wrote(conversation.id, after)


def _texts_looked_up(
    conversation: ConversationRef, segment: int, keys: Sequence[TextKey]
) -> dict[TextKey, Record]:
    # Without the segment: SQLite would take the index of places and read the whole segment.
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
            f"the lore state of conversation {conversation_id} is none ({error}); somebody wrote"
            " it past the store: reset it"
        ) from error


lore_states: Final = Snapshots(LORE_STATES, _load_lore)
"""What lore remembers, by the number of the conversation; the same until a turn changes it."""


def remember_lore(conversation: ConversationRef, state: LoreState, *, turn: int) -> None:
    """The current transaction writes the turn of this number, whose prompt left `state`."""
    models.LoreState.objects.update_or_create(
        conversation_id=conversation.id,
        defaults={
            "state": canonical_json(state.to_plain()),
            "turn": turn,
            "updated_at": time.time(),
        },
    )
    lore_states.wrote(conversation.id, state)


def reset_lore(conversation: ConversationRef, *, by: Actor) -> bool:
    """Let the lore of the conversation begin anew; whether it remembered anything.

    The process where the NPC speaks notices a reset of another process at its next refresh; a
    turn it takes before that remembers on.
    """
    with changing(LORE_STATES, f"resetting the lore of {conversation} for {by}", by=by):
        removed, _ = models.LoreState.objects.filter(conversation_id=conversation.id).delete()
        lore_states.written(conversation.id)
    return removed > 0


def forget_lore(conversation: ConversationRef) -> None:
    """Another process may have written it: read it again."""
    lore_states.drop(conversation.id)
