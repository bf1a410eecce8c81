"""Orphans: calls of tools that have no result, because their turn was cut short.

A provider refuses a prompt in which a call has no result. So the end of such a turn gives each one
a result that says what is known. The tool itself is never run again: what it changes in the world
may have been changed already.
"""

from collections.abc import Iterable

from evennia_ai.history.records import NewRecord, Record, RecordKind


def orphan_calls(records: Iterable[NewRecord | Record]) -> tuple[str, ...]:
    """The ids of the calls in successive records that have no result among them, in order."""
    open_calls: dict[str, None] = {}
    for record in records:
        open_calls.update((call["id"], None) for call in record.meta.get("tool_calls", ()))
        open_calls.pop(str(record.meta.get("tool_call_id")), None)
    return tuple(open_calls)


def closing_results(
    records: Iterable[NewRecord | Record], *, outcome: str
) -> tuple[NewRecord, ...]:
    """A result for each call in successive records that has none; `outcome` is how the turn ended.

    `closes` in its meta tells it from what a tool returned.
    """
    body = f"There is no result: {outcome}. It is not known whether this was done."
    return tuple(
        NewRecord(
            kind=RecordKind.TOOL_RESULT,
            role="tool",
            body=body,
            meta={"tool_call_id": call, "closes": "orphan"},
        )
        for call in orphan_calls(records)
    )
