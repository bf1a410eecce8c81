"""Orphans: what a turn that was cut short leaves open, and how its end closes it.

A provider refuses a prompt in which a call of a tool has no result. So each one gets a result that
says what is known. The tool itself is never run again: what it changes in the world may have been
changed already. And the start of a reply that was said before the rest came is what the NPC said.
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


def cut_short(records: Iterable[NewRecord | Record], *, turn: int) -> tuple[NewRecord, ...]:
    """The reply of a turn of which only the start was said, and nothing more will be.

    A reply that called tools is in the record of the calls, all of it.
    """
    said: list[str] = []
    for record in records:
        if record.kind is RecordKind.SPOKEN and record.meta.get("turn") == turn:
            said.append(record.body)
        elif record.kind is RecordKind.TOOL_CALL:
            said.clear()
    if not said:
        return ()
    body = f"{' '.join(said)} —"
    meta = {"cut_short": True}
    return (NewRecord(kind=RecordKind.ASSISTANT, role="assistant", body=body, meta=meta),)
