"""Tool results: all of one is recorded, a prompt shows its beginning.

How much is shown is decided when the result is recorded and is written down with it, so every
prompt shows the same bytes. The call that it answers is never touched.
"""

from typing import Final

from evennia_ai.history.records import NewRecord, Record, RecordKind, storable

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
