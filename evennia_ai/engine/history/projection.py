"""Projection: what of the records a prompt shows, and as which message.

A pure function of the records: the same records give the same bytes. It chooses and packs; it
never changes what happened. The messages of a history are what was said and done, a compaction's
summary with the tail it kept, the tail alone where a builder's control says what counts, and texts
of earlier prompts that stay where those had them. What a
tool returned stands right behind the call it answers, whatever was heard meanwhile. How much of it
is shown, and the time that a line bears, were decided when they were recorded, and stand there.
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
    calls_of,
    is_staying,
    storable,
)
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.memo import Slot, SpentMemo, forget
from evennia_ai.engine.prompt.messages import MOVEMENT, Message, Part, ToolCall
from evennia_ai.engine.prompt.time_line import with_time_line

MINUTE: Final = "minute"
"""In the meta of a record: the date and the minute that prompts show with it."""


def minute_in(record: Record) -> str:
    """The minute that was written down with a record, "" for none."""
    minute = record.meta.get(MINUTE, "")
    return minute if isinstance(minute, str) else ""


MOST_SHOWN: Final = 4000
"""Characters of a result that prompts show."""

_SHOWN: Final = "shown"


def tool_result(body: str, *, call_id: str, most_shown: int = MOST_SHOWN) -> NewRecord:
    """The result of the call `call_id`; of a longer one prompts show `most_shown` characters."""
    body = storable(body)
    boundary = {_SHOWN: most_shown} if len(body) > most_shown else {}
    return NewRecord(
        kind=RecordKind.TOOL_RESULT,
        role="tool",
        body=body,
        meta={"tool_call_id": call_id, **boundary},
    )


def shown_body(record: Record) -> str:
    """What prompts show of a record: all of it, of a long tool result the recorded beginning."""
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
    """The record as a message, made once; None where it has nothing to say to a model."""
    known = record.memo.get(_MESSAGE)
    if known is not None:
        return known
    if record.is_erased or record.kind not in _MESSAGES:
        return None
    message = _message(record)
    if isinstance(record.memo, SpentMemo):
        object.__setattr__(message, "memo", SpentMemo({RECORD: record}))
    message.memo[_MESSAGE], message.memo[RECORD] = message, record
    return message


def record_of(message: Message) -> Record | None:
    """The record that `message_of` made this message from, or made it from a changed copy of."""
    known = message.memo.get(RECORD)
    return known if known is not None and known.id == message.record else None


def let_go(messages: Iterable[Message]) -> None:
    """These left the window that held them: what else holds them may go on, nothing else is held.

    A message and its record know each other and share a memo; from here on the message knows the
    record, and not the other way round. A turn that has them still works out what it needs.
    """
    for message in messages:
        record, known = message.memo.get(RECORD), message.memo
        object.__setattr__(message, "memo", SpentMemo({} if record is None else {RECORD: record}))
        if record is not None:
            object.__setattr__(record, "memo", SpentMemo())
        known.pop(_MESSAGE, None)
        forget(known, but=RECORD)  # copies of the message, for another block, share it


def let_go_records(records: Iterable[Record]) -> None:
    """Do the same for records that are kept no more, whether or not messages were made of them."""
    for record in records:
        message = record.memo.get(_MESSAGE)
        if message is None:
            object.__setattr__(record, "memo", SpentMemo())
        else:
            let_go([message])


def in_order(
    records: Iterable[Record], *, tail: Mapping[str, Record] = _NOTHING
) -> tuple[Record, ...]:
    """Those of successive records that are messages of the history, as a prompt shows them.

    A text that stays stands before the record it was made for, and is left out where that one is
    not there. A tool's result stands behind its call; one whose call is not there comes first, to
    be left behind with it. `tail` are the records by place that a summary or a control among them
    kept.
    """
    said: list[Record] = []
    staying: dict[str, list[Record]] = {}
    for record in records:
        if record.kind is RecordKind.CONTROL:
            said += _kept(record, tail)
        elif is_staying(record) and record.meta.get("before"):
            staying.setdefault(record.meta["before"], []).append(record)
        elif (record.kind in CONVERSATION and not record.is_erased) or is_staying(record):
            said += [record, *_kept(record, tail)]
    said = _behind_their_calls(said)
    if not staying:
        return tuple(said)
    return tuple(one for record in said for one in (*staying.get(record.place, ()), record))


def _behind_their_calls(said: list[Record]) -> list[Record]:
    """The records with each tool's result behind the call it answers, in the order they came."""
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
            answers = [results.pop(call, []) for call in calls_of(record)]
            ordered += sorted((one for found in answers for one in found), key=_when)
    without_call = [record for found in results.values() for record in found]
    return [*sorted(without_call, key=_when), *ordered]


def _when(record: Record) -> tuple[int, int]:
    return record.segment, record.seq


def project(
    records: Iterable[Record],
    *,
    tail: Mapping[str, Record] = _NOTHING,
    earlier: int = 0,
    earlier_users: int = 0,
    earlier_replies: int = 0,
    segment: int = 0,
) -> History:
    """The history of these records of one segment, oldest first.

    `earlier` messages were left behind before the first one, `earlier_users` of them of role
    user and `earlier_replies` of role assistant. Texts of a prompt that do not stay are left out:
    each prompt shows its own.
    """
    return History(
        _shown(records, tail),
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
    """The history whose newest records these are; `totals` are those of the whole history."""
    shown = _shown(records, tail)
    return History(
        shown,
        earlier=totals.messages - len(shown),
        earlier_users=totals.users - sum(message.is_user for message in shown),
        earlier_replies=totals.replies - sum(message.is_reply for message in shown),
        segment=segment,
    )


def extended(history: History, new: Sequence[Record]) -> History:
    """`history` with the messages of records that were appended to it, each at its place."""
    staying = [r for r in new if is_staying(r) and r.meta.get("before")]
    results = _late_results(new)
    elsewhere = {record.id for record in (*staying, *results)}
    for record in results:
        history = _inserted(history, _in_history(record), at=_behind_call(history, record))
    said = [_in_history(record) for record in in_order(r for r in new if r.id not in elsewhere)]
    history = history.appended(*said)
    for record in staying:
        at = _where(history, record.meta["before"])
        history = _inserted(history, _in_history(record), at=at)
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


def _in_history(record: Record) -> Message:
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


def _shown(records: Iterable[Record], tail: Mapping[str, Record]) -> list[Message]:
    messages = (message_of(record) for record in in_order(records, tail=tail))
    return [message for message in messages if message is not None]


def _kept(first: Record, tail: Mapping[str, Record]) -> Iterable[Record]:
    """The records that the first one of a segment says were kept of those before it."""
    for place in first.meta.get("tail", ()):
        if place not in tail:
            raise ReplayError(f"record {place}, which record {first.place} kept, is not there")
        if not tail[place].is_erased:
            yield tail[place]


def _message(record: Record) -> Message:
    meta = record.meta
    is_text = record.kind in BOOKKEEPING
    return Message(
        role=record.role,
        content=with_time_line(shown_body(record), minute_in(record)),
        name=record.name or None,
        counted=not is_text,
        stays=is_staying(record),
        of=str(meta.get("of", "")) if is_text else "",
        is_movement=record.kind is RecordKind.EVENT and meta.get("event") in MOVEMENT,
        origin=f"history:{record.id}",
        joined=parts_from(meta.get("parts", ())) if is_text else (),
        record=record.id,
        tool_calls=tuple(ToolCall(**call) for call in meta.get("tool_calls", ())),
        tool_call_id=meta.get("tool_call_id"),
        memo=record.memo,  # one for both: a window holds them by the thousand
    )


def parts_from(told: Iterable[Any]) -> tuple[Part, ...]:
    """The parts of a message, from [origin, start, end, revision] each."""
    return tuple(
        Part(origin=origin, start=start, end=end, revision=revision)
        for origin, start, end, revision in told
    )
