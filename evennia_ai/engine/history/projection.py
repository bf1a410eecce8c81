"""Projection: convert the records of a conversation to the messages that a prompt shows.

The same records always give the same bytes. The messages of a history are everything that was said
and done. After a compaction they are the summary and the newest messages, which the compaction
kept (the tail). After a builder resets or undoes part of a conversation, they are only the
messages that were kept. Texts of earlier prompts that stay in the history are included at their
place. A tool result comes right after its call, even if other things were heard in between. The
visible length of a result and the time of a line were fixed when they were recorded.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from evennia_ai.engine.errors import ReplayError
from evennia_ai.engine.history.records import (
    BOOKKEEPING,
    CONVERSATION,
    MessageTotals,
    NewRecord,
    Record,
    RecordKind,
    call_ids,
    is_staying,
    make_storable,
)
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.memo import Slot, SpentMemo, clear_memo
from evennia_ai.engine.prompt.messages import MOVEMENT, Message, Part, ToolCall, with_time_line

MINUTE: Final = "minute"
"""The key in a record's meta for the date and minute that prompts show with its text."""


def minute_in(record: Record) -> str:
    """Return the date and minute in a record's meta, or ""."""
    minute = record.meta.get(MINUTE, "")
    return minute if isinstance(minute, str) else ""


MOST_SHOWN: Final = 4000
"""How many characters of a tool result prompts show by default."""

_SHOWN: Final = "shown"


def tool_result_record(body: str, *, call_id: str, most_shown: int = MOST_SHOWN) -> NewRecord:
    """Return a record of the result of a tool call.

    Prompts show at most `most_shown` characters of it.
    """
    body = make_storable(body)
    boundary = {_SHOWN: most_shown} if len(body) > most_shown else {}
    return NewRecord(
        kind=RecordKind.TOOL_RESULT,
        role="tool",
        body=body,
        meta={"tool_call_id": call_id, **boundary},
    )


def body_for_prompt(record: Record) -> str:
    """Return a record's text as prompts show it: a tool result is cut at its visible length."""
    shown = record.meta.get(_SHOWN)
    if record.kind is not RecordKind.TOOL_RESULT or not isinstance(shown, int):
        return record.body
    left = len(record.body) - shown
    if shown < 0 or left <= 0:
        return record.body
    return f"{record.body[:shown]}\n[{left} more characters are in record {record.place}]"


_MESSAGE: Final = Slot[Message]("message")
RECORD: Final = Slot[Record]("record")
_MESSAGES: Final = CONVERSATION | BOOKKEEPING
_NOTHING: Final[Mapping[str, Record]] = {}


def message_of(record: Record) -> Message | None:
    """Return a record as a message for a model, or None if models get no message from this record.

    The message is cached, so a record always gives the same object.
    """
    known = record.memo.get(_MESSAGE)
    if known is not None:
        return known
    if record.is_erased or record.kind not in _MESSAGES:
        return None
    message = _make_message(record)
    if isinstance(record.memo, SpentMemo):
        object.__setattr__(message, "memo", SpentMemo({RECORD: record}))
    message.memo[_MESSAGE], message.memo[RECORD] = message, record
    return message


def record_of(message: Message) -> Record | None:
    """Return the record from which `message_of` made a message (or the original of a copy)."""
    known = message.memo.get(RECORD)
    return known if known is not None and known.id == message.record else None


def release_messages(messages: Iterable[Message]) -> None:
    """Release the memory of messages that are no longer loaded.

    A message and its record refer to each other and share a cache (`memo`). This breaks the cycle:
    afterwards the message still has the record, but the record no longer has the message. A running
    turn that still uses the messages can compute what it needs again.
    """
    for message in messages:
        record, known = message.memo.get(RECORD), message.memo
        object.__setattr__(message, "memo", SpentMemo({} if record is None else {RECORD: record}))
        if record is not None:
            object.__setattr__(record, "memo", SpentMemo())
        known.pop(_MESSAGE, None)
        # copies of the message share this memo, so they keep their record
        clear_memo(known, but=RECORD)


def release_records(records: Iterable[Record]) -> None:
    """Release the memory of records that are no longer loaded, and of their messages."""
    for record in records:
        message = record.memo.get(_MESSAGE)
        if message is None:
            object.__setattr__(record, "memo", SpentMemo())
        else:
            release_messages([message])


def order_records(
    records: Iterable[Record], *, tail: Mapping[str, Record] = _NOTHING
) -> tuple[Record, ...]:
    """Return the records that become messages of the history, in the order of a prompt.

    A persistent text comes directly before the record that its `before` names. If that record is
    missing, the text is left out. A tool result comes after its call. If the call already left the
    history, the result comes first, so it leaves the history too.

    Args:
        records: Successive records.
        tail: By place, the records that a summary or a control record among `records` kept.
    """
    said: list[Record] = []
    staying: dict[str, list[Record]] = {}
    for record in records:
        if record.kind is RecordKind.CONTROL:
            said += _tail_records(record, tail)
        elif is_staying(record) and record.meta.get("before"):
            staying.setdefault(record.meta["before"], []).append(record)
        elif (record.kind in CONVERSATION and not record.is_erased) or is_staying(record):
            said += [record, *_tail_records(record, tail)]
    said = _results_after_calls(said)
    if not staying:
        return tuple(said)
    return tuple(one for record in said for one in (*staying.get(record.place, ()), record))


def _results_after_calls(said: list[Record]) -> list[Record]:
    """Move each tool result right after its call. Results of one call stay in order of time."""
    if all(record.kind is not RecordKind.TOOL_RESULT for record in said):
        return said
    results: dict[str, list[Record]] = {}
    for record in said:
        if record.kind is RecordKind.TOOL_RESULT:
            results.setdefault(str(record.meta.get("tool_call_id")), []).append(record)
    ordered: list[Record] = []
    for record in said:
        if record.kind is not RecordKind.TOOL_RESULT:
            ordered.append(record)
            answers = [results.pop(call, []) for call in call_ids(record)]
            ordered += sorted((one for found in answers for one in found), key=_position)
    without_call = [record for found in results.values() for record in found]
    return [*sorted(without_call, key=_position), *ordered]


def _position(record: Record) -> tuple[int, int]:
    return record.segment, record.seq


def project_records(
    records: Iterable[Record],
    *,
    tail: Mapping[str, Record] = _NOTHING,
    earlier: int = 0,
    earlier_users: int = 0,
    earlier_replies: int = 0,
    segment: int = 0,
) -> History:
    """Return the history that the records of one part of a conversation give, oldest first.

    Texts of a prompt that do not stay are left out, because each prompt renders its own.

    Args:
        records: The records.
        tail: By place, the records that a summary or a control record kept.
        earlier: The number of messages that were cut off before the first one.
        earlier_users: The number of user messages among the ones that were cut off.
        earlier_replies: The number of replies among the ones that were cut off.
        segment: The number of the segment.
    """
    return History(
        _records_with_messages(records, tail),
        earlier=earlier,
        earlier_users=earlier_users,
        earlier_replies=earlier_replies,
        segment=segment,
    )


def project_newest(
    records: Iterable[Record],
    *,
    totals: MessageTotals,
    segment: int = 0,
    tail: Mapping[str, Record] = _NOTHING,
) -> History:
    """Return the history that ends with the newest records of a conversation.

    `totals` are the message counts of the whole history.
    """
    shown = _records_with_messages(records, tail)
    return History(
        shown,
        earlier=totals.messages - len(shown),
        earlier_users=totals.users - sum(message.is_user for message in shown),
        earlier_replies=totals.replies - sum(message.is_reply for message in shown),
        segment=segment,
    )


def extend_history(history: History, new: Sequence[Record]) -> History:
    """Return a history extended by the messages of new records, each at its place."""
    staying = [r for r in new if is_staying(r) and r.meta.get("before")]
    # Results whose tool calls are not among the new records, so they must be inserted after older
    # messages.
    called = {call for record in new for call in call_ids(record)}
    late_results = [
        record
        for record in new
        if record.kind is RecordKind.TOOL_RESULT and record.meta.get("tool_call_id") not in called
    ]
    elsewhere = {record.id for record in (*staying, *late_results)}
    for record in late_results:
        at = _index_after_call(history, record)
        history = _insert_message(history, _existing_message(record), at=at)
    ordered = order_records(r for r in new if r.id not in elsewhere)
    history = history.appended(*map(_existing_message, ordered))
    for record in staying:
        at = _index_of_place(history, record.meta["before"])
        history = _insert_message(history, _existing_message(record), at=at)
    return history


def _index_after_call(history: History, result: Record) -> int:
    """Return the index for a tool result: after its call and after earlier results of it."""
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


def _existing_message(record: Record) -> Message:
    message = message_of(record)
    assert message is not None  # `order_records` only returns records that have a message
    return message


def _index_of_place(history: History, place: str) -> int:
    """Return the index of the message whose record has this place.

    If the message was cut off, the index is lower than all indices of the history.
    """
    at = history.stop - 1
    while at >= history.earlier:
        record = record_of(history[at])
        if record is not None and record.place == place:
            break
        at -= 1
    return at


def _insert_message(history: History, message: Message, *, at: int) -> History:
    """Return the history with a message inserted before index `at`.

    If the message at that index was cut off, the new message counts as cut off too.
    """
    if at == history.stop:
        return history.appended(message)
    was_cut = at < history.earlier
    older = [] if was_cut else [*history.between(history.earlier, at), message]
    newer = history.between(history.earlier if was_cut else at, history.stop)
    return History(
        (*older, *newer),
        earlier=history.earlier + was_cut,
        earlier_users=history.earlier_users,
        earlier_replies=history.earlier_replies,
        segment=history.segment,
    )


def _records_with_messages(records: Iterable[Record], tail: Mapping[str, Record]) -> list[Message]:
    messages = (message_of(record) for record in order_records(records, tail=tail))
    return [message for message in messages if message is not None]


def _tail_records(first: Record, tail: Mapping[str, Record]) -> Iterable[Record]:
    """Yield the older records that a summary, reset or similar record kept."""
    for place in first.meta.get("tail", ()):
        if place not in tail:
            raise ReplayError(
                f"record {place} is missing; record {first.place} says that it still counts"
            )
        if not tail[place].is_erased:
            yield tail[place]


def _make_message(record: Record) -> Message:
    meta = record.meta
    is_text = record.kind in BOOKKEEPING
    return Message(
        role=record.role,
        content=with_time_line(body_for_prompt(record), minute_in(record)),
        name=record.name or None,
        counted=not is_text,
        stays=is_staying(record),
        of=str(meta.get("of", "")) if is_text else "",
        is_movement=record.kind is RecordKind.EVENT and meta.get("event") in MOVEMENT,
        origin=f"history:{record.id}",
        joined=parse_parts(meta.get("parts", ())) if is_text else (),
        record=record.id,
        tool_calls=tuple(ToolCall(**call) for call in meta.get("tool_calls", ())),
        tool_call_id=meta.get("tool_call_id"),
        # shared by record and message to save memory, because thousands of both are loaded
        memo=record.memo,
    )


def parse_parts(stored: Iterable[Any]) -> tuple[Part, ...]:
    """Parse the parts of a message from stored lists of [origin, start, end, revision]."""
    return tuple(
        Part(origin=origin, start=start, end=end, revision=revision)
        for origin, start, end, revision in stored
    )
