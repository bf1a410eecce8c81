"""Conversations: which there are, their records, and the window of history a turn reads.

The window is kept in memory and grows in step with what is committed, so a warm turn reads no
rows; what is appended is checked by the database, where a number is given out once.
"""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from django.db import IntegrityError, transaction
from django.db.models import Count, Max, Q

from evennia_ai import models
from evennia_ai.history.projection import CONVERSATION, message_of, project
from evennia_ai.history.records import NewRecord, Record, RecordKind, canonical_json, chain_sha256
from evennia_ai.prompt.history import History
from evennia_ai.store.errors import HistoryConflictError, StoreError
from evennia_ai.store.snapshots import Snapshots
from evennia_ai.store.state import one_transaction

ConversationKind = Literal["room", "private"]

WINDOW_MESSAGES: Final = 400
GREETING: Final = "greeting"
"""In the meta of a record: which greeting of its card the NPC said."""

_HISTORY: Final = "history"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationRef:
    """One conversation of one NPC; `origin` is how it was opened (telnet, webclient, ...)."""

    id: int
    npc_ref: str
    kind: ConversationKind
    partner_ref: str
    place_ref: str
    origin: str
    opened_at: float

    def __str__(self) -> str:
        with_whom = f"{self.kind} {self.partner_ref or self.place_ref}"
        return f"conversation {self.id} of NPC {self.npc_ref} ({with_whom})"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Window:
    """The newest messages of a conversation, and where its next record goes.

    `cut` is None as long as no turn was composed from it. `first_reply` is the meta of the first
    thing the NPC said in the conversation, None where it said nothing yet.
    """

    history: History
    segment: int = 1
    next_seq: int = 1
    last_sha256: str = ""
    cut: int | None = None
    first_reply: Mapping[str, Any] | None = None


def conversation(
    npc_ref: str,
    *,
    kind: ConversationKind,
    partner_ref: str = "",
    place_ref: str = "",
    origin: str = "",
) -> ConversationRef:
    """The NPC's conversation in a room, or in private with one partner; opened when it is new.

    `origin` counts when it is opened, and stays.
    """
    room = kind == "room"
    if bool(partner_ref) == room or bool(place_ref) != room:
        raise StoreError(
            f"a {kind} conversation is told by {'place_ref' if room else 'partner_ref'} alone"
        )
    key = (npc_ref, kind, partner_ref, place_ref)
    return _conversations.read(key) or _opened(key, origin)


def conversations_of(npc_ref: str) -> tuple[ConversationRef, ...]:
    """All conversations of an NPC, in the order in which they were opened."""
    rows = models.Conversation.objects.filter(npc_ref=npc_ref).order_by("pk")
    return tuple(ref_of(row) for row in rows)


def append(conversation: ConversationRef, new: Sequence[NewRecord]) -> tuple[Record, ...]:
    """Commit `new` after the newest record, all or none; the records.

    HistoryConflictError: another writer was first. StoreError: the database refused.
    """
    if not new:
        return ()
    # Read before the transaction: on SQLite one that reads first may not get to write.
    window = _windows.read(conversation.id)
    with one_transaction(f"appending to {conversation}"):
        rows = _inserted(conversation, _rows(conversation, window, new))
        records = tuple(_record(row) for row in rows)
        _windows.wrote(conversation.id, _grown(window, records))
    return records


def history(conversation: ConversationRef) -> History:
    """The window of the conversation's history that a prompt may show.

    At least the newest 400 messages, and everything since the remembered cut. Not for several
    threads at once: it belongs to the thread that composes.
    """
    return _windows.read(conversation.id).history


def has_spoken(conversation: ConversationRef) -> bool:
    """Whether the NPC ever said anything in the conversation."""
    return _windows.read(conversation.id).first_reply is not None


def greeting(conversation: ConversationRef) -> int | None:
    """The index of the greeting that was the first thing the NPC said there; None for another."""
    found = (_windows.read(conversation.id).first_reply or {}).get(GREETING)
    return found if isinstance(found, int) else None


def cut(conversation: ConversationRef) -> int:
    """The index the history was last cut at, by the newest turn; 0 when it never was."""
    return _windows.read(conversation.id).cut or 0


def remember_cut(conversation: ConversationRef, cut: int) -> None:
    """The current transaction writes a turn whose prompt was cut at this index."""
    window = _windows.read(conversation.id)
    if cut != window.cut:
        _windows.wrote(conversation.id, replace(window, cut=cut))


def records(ids: Iterable[str]) -> tuple[Record, ...]:
    """The records with these ids, in the order in which they were written."""
    rows = models.Record.objects.filter(pk__in=[int(wanted) for wanted in set(ids)])
    return tuple(_record(row) for row in rows.order_by("pk"))


def records_of(
    conversation: ConversationRef, *, limit_records: int | None = None
) -> tuple[Record, ...]:
    """The newest records of a conversation, all without a limit, oldest first."""
    rows = models.Record.objects.filter(conversation_id=conversation.id)
    newest = list(rows.order_by("-segment", "-seq")[:limit_records])
    return tuple(_record(row) for row in reversed(newest))


def ref_of(row: models.Conversation) -> ConversationRef:
    """The value of a row that is already read."""
    return ConversationRef(
        id=row.pk,
        npc_ref=row.npc_ref,
        kind=row.kind,
        partner_ref=row.partner_ref,
        place_ref=row.place_ref,
        origin=row.origin,
        opened_at=row.opened_at,
    )


_Key = tuple[str, ConversationKind, str, str]


def _opened(key: _Key, origin: str) -> ConversationRef:
    with one_transaction(f"opening a conversation of NPC {key[0]}"):
        npc_ref, kind, partner_ref, place_ref = key
        row = models.Conversation(
            npc_ref=npc_ref,
            kind=kind,
            partner_ref=partner_ref,
            place_ref=place_ref,
            origin=origin,
            opened_at=time.time(),
        )
        try:
            with transaction.atomic():
                row.save()
        except IntegrityError:  # another process opened it since we looked
            _conversations.drop(key)
            opened = _load_conversation(key)
            assert opened is not None
            return opened
        _conversations.wrote(key, ref_of(row))
        _windows.wrote(row.pk, _Window(history=History()))
    return ref_of(row)


def _load_conversation(key: _Key) -> ConversationRef | None:
    npc_ref, kind, partner_ref, place_ref = key
    row = models.Conversation.objects.filter(
        npc_ref=npc_ref, kind=kind, partner_ref=partner_ref, place_ref=place_ref
    ).first()
    return None if row is None else ref_of(row)


def _rows(
    conversation: ConversationRef, window: _Window, new: Sequence[NewRecord]
) -> list[models.Record]:
    rows = []
    digest = window.last_sha256
    now = time.time()
    for offset, record in enumerate(new):
        digest = chain_sha256(digest, record)
        rows.append(
            models.Record(
                conversation_id=conversation.id,
                segment=window.segment,
                seq=window.next_seq + offset,
                kind=record.kind.value,
                role=record.role,
                name=record.name,
                body=record.body,
                meta=canonical_json(dict(record.meta)),
                sha256=digest,
                created_at=now,
            )
        )
    return rows


def _inserted(conversation: ConversationRef, rows: list[models.Record]) -> list[models.Record]:
    try:
        with transaction.atomic():
            return models.Record.objects.bulk_create(rows)
    except IntegrityError as error:
        _windows.drop(conversation.id)
        raise HistoryConflictError(str(conversation)) from error


def _record(row: models.Record) -> Record:
    return Record(
        id=str(row.pk),
        conversation=row.conversation_id,
        segment=row.segment,
        seq=row.seq,
        kind=RecordKind(row.kind),
        role=row.role,
        name=row.name,
        body=row.body,
        meta=json.loads(row.meta),
        sha256=row.sha256,
        created_at=row.created_at,
    )


def _grown(window: _Window, new: Sequence[Record]) -> _Window:
    messages = [message_of(record) for record in new if record.kind in CONVERSATION]
    said = [message for message in messages if message is not None]
    return replace(
        window,
        history=_trimmed(window.history.appended(*said), cut=window.cut),
        next_seq=new[-1].seq + 1,
        last_sha256=new[-1].sha256,
        first_reply=window.first_reply if window.first_reply is not None else _first_reply(new),
    )


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
        earlier_users=history.earlier_users + sum(m.role == "user" for m in left),
        earlier_replies=history.earlier_replies + sum(m.role == "assistant" for m in left),
    )


def _load_window(conversation_id: int) -> _Window:
    rows = models.Record.objects.filter(conversation_id=conversation_id)
    replies = rows.filter(kind=RecordKind.ASSISTANT.value).order_by("segment", "seq")
    first_reply = replies.values_list("meta", flat=True).first()
    segment = rows.aggregate(newest=Max("segment"))["newest"] or 1
    rows = rows.filter(segment=segment)
    last = rows.order_by("-seq").values_list("seq", "sha256").first() or (0, "")
    turns = models.Turn.objects.filter(conversation_id=conversation_id).order_by("-number")
    cut = turns.values_list("cut", flat=True).first()
    return _Window(
        history=_load_history(rows, cut),
        segment=segment,
        next_seq=last[0] + 1,
        last_sha256=last[1],
        cut=cut,
        first_reply=None if first_reply is None else json.loads(first_reply),
    )


def _load_history(rows: Any, cut: int | None) -> History:
    said = rows.filter(kind__in=[kind.value for kind in CONVERSATION])
    whole = said.count()
    first = _first_shown(whole, cut)
    shown = list(said.order_by("seq")[first:])
    left = said.filter(seq__lt=shown[0].seq) if first else said.none()
    behind = left.aggregate(
        earlier_users=Count("pk", filter=Q(role="user")),
        earlier_replies=Count("pk", filter=Q(role="assistant")),
    )
    return project((_record(row) for row in shown), earlier=first, **behind)


_conversations: Final = Snapshots(_HISTORY, _load_conversation)
_windows: Final = Snapshots(_HISTORY, _load_window)
