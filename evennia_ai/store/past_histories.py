"""Past histories: what a conversation's history was when a past turn was composed.

Turns are mostly gone through forwards: the records of a segment are read once, and those that no
later turn shows are left behind. Memory is that of some windows, however long a conversation is.
"""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from evennia_ai import models
from evennia_ai.errors import ReplayError
from evennia_ai.history.projection import is_staying, message_of, project
from evennia_ai.history.records import Record
from evennia_ai.prompt.history import History
from evennia_ai.prompt.messages import Message
from evennia_ai.store.record_rows import record_from, records_from
from evennia_ai.store.windows import records_at

_MOST_OPEN: Final = 16


class PastHistories:
    """Reads the histories of past turns; best asked in the order of the turns."""

    def __init__(self) -> None:
        self._open: OrderedDict[tuple[int, int], _Segment] = OrderedDict()

    def history(
        self, conversation_id: int, told: Mapping[str, Any], *, event: str, newest_record: int
    ) -> History:
        """The history that `told` describes, as a manifest's inputs have it.

        `event` is the id of the record that was answered, `newest_record` the number of the newest
        one there was. ReplayError: a record of it is gone or erased.
        """
        segment = self._segment(conversation_id, told["segment"])
        messages = segment.messages(told, event=event, newest_record=newest_record)
        earlier, users, replies = told["earlier"]
        return History(
            messages,
            earlier=earlier,
            earlier_users=users,
            earlier_replies=replies,
            segment=told["segment"],
        )

    def event(self, conversation_id: int, segment: int, record_id: str) -> Message:
        """The record that a turn answered, as a message."""
        record = self._segment(conversation_id, segment).record(record_id)
        message = message_of(record)
        if message is None:
            raise ReplayError(f"record {record_id}, which the turn answered, says nothing any more")
        return message

    def _segment(self, conversation_id: int, number: int) -> "_Segment":
        key = (conversation_id, number)
        if key not in self._open:
            self._open[key] = _Segment(conversation_id, number)
            while len(self._open) > _MOST_OPEN:
                self._open.popitem(last=False)
        self._open.move_to_end(key)
        return self._open[key]


class _Segment:
    """The records of one segment from some number on, as far as they were needed."""

    def __init__(self, conversation_id: int, number: int) -> None:
        self._conversation_id = conversation_id
        self._number = number
        self._records: list[Record] = []
        self._from = self._upto = 0
        self._tail: Mapping[str, Record] = {}

    def record(self, record_id: str) -> Record:
        for record in reversed(self._records):
            if record.id == record_id:
                return record
        return _one(record_id)

    def messages(self, told: Mapping[str, Any], *, event: str, newest_record: int) -> list[Message]:
        if told["first"] is None:
            return []
        self._read(self._start(told["first"]), newest_record)
        records = [record for record in self._records if record.seq <= newest_record]
        shown = list(project(records, tail=self._tail, segment=self._number))
        at = {message.record: index for index, message in enumerate(shown)}
        for wanted in (told["first"], told["last"]):
            if wanted not in at:
                raise ReplayError(f"record {wanted} of the turn's history is gone or erased")
        left_out = {*told["left_out"], event}
        history = shown[at[told["first"]] : at[told["last"]] + 1]
        return [message for message in history if message.record not in left_out]

    def _start(self, first: str) -> int:
        """The number from which on records are needed; the segment's first for what it kept."""
        record = self.record(first)
        place = record.meta.get("before") if is_staying(record) else None
        segment, _, seq = (place or record.place).partition(".")
        return int(seq) if int(segment) == self._number else 1

    def _read(self, first: int, last: int) -> None:
        """Have the records from `first` to `last`, and forget those before `first`."""
        if not self._from or first < self._from:
            self._records, self._from, self._upto = [], first, first - 1
        elif first > self._from:
            self._records = [record for record in self._records if record.seq >= first]
            self._from = first
        if last > self._upto:
            self._records += records_from(self._rows(max(self._upto, first - 1), last))
            self._upto = last
        if first == 1 and self._records and not self._tail:
            kept = self._records[0].meta.get("tail", ())
            self._tail = records_at(self._conversation_id, kept) if kept else {}

    def _rows(self, after: int, last: int) -> Any:
        rows = models.Record.objects.filter(
            conversation_id=self._conversation_id,
            segment=self._number,
            seq__gt=after,
            seq__lte=last,
        )
        return rows.order_by("seq")


def _one(record_id: str) -> Record:
    row = models.Record.objects.filter(pk=int(record_id)).first()
    if row is None:
        raise ReplayError(f"record {record_id} is not there")
    return record_from(row)
