"""Corrections: other words in the place of what the NPC said, as records of their own.

What can be corrected is what others heard or saw of the NPC (its reply, the words of a tool that
speaks) and the summary that stands for what was said before. The words of a tool stand twice, in
its call and in its result, and are corrected in both. The first wording stays, and is named.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from evennia_ai.engine.history.compaction.summaries import FRAME
from evennia_ai.engine.history.records import NewRecord, Record, RecordKind, canonical_json

CORRECTS: Final = "corrects"
"""In the meta of a record: the place of the one that it is shown instead of."""

CORRECTIBLE: Final = frozenset({RecordKind.ASSISTANT, RecordKind.TOOL_CALL, RecordKind.SUMMARY})


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """Where the words of a tool stand that speaks."""

    argument: str
    """The argument of its call that holds them."""
    result: re.Pattern[str]
    """Its result where they were heard: the first group before the words, the last behind them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Utterance:
    """Words of the NPC in a record."""

    words: str
    call: str = ""
    """The id of the call of a tool that spoke them, "" for those of the record itself."""


def said_at(record: Record) -> str:
    """The place where it was said what a record says, perhaps in other words."""
    return str(record.meta.get(CORRECTS) or record.place)


def utterances(
    record: Record, results: Mapping[str, Record], *, tools: Mapping[str, Spoken]
) -> tuple[Utterance, ...]:
    """What of a record can be corrected, in its order; nothing of what others said.

    `results` are those of its calls by their ids, `tools` those that speak by their names.
    """
    if record.kind not in CORRECTIBLE:
        return ()
    own = (Utterance(words=record.body.removeprefix(FRAME)),) if record.body else ()
    return (*own, *_of_calls(record, results, tools))


def _of_calls(
    record: Record, results: Mapping[str, Record], tools: Mapping[str, Spoken]
) -> Iterator[Utterance]:
    for call in record.meta.get("tool_calls", ()):
        tool, result = tools.get(call["name"]), results.get(call["id"])
        told = tool.result.fullmatch(result.body) if tool and result else None
        if told is not None and tool is not None and tool.argument in _arguments(call):
            yield Utterance(words=told.string[told.end(1) : told.start(2)], call=call["id"])


def corrected(
    record: Record,
    results: Mapping[str, Record],
    said: Utterance,
    text: str,
    *,
    tools: Mapping[str, Spoken],
    by: str,
) -> Sequence[tuple[Record, NewRecord]]:
    """The records that say `text` instead of these words, each with the one it stands for."""
    if not said.call:
        frame = FRAME if record.body.startswith(FRAME) else ""
        return [(record, _instead(record, body=f"{frame}{text}", by=by))]
    result, calls = results[said.call], list(record.meta["tool_calls"])
    at = next(index for index, call in enumerate(calls) if call["id"] == said.call)
    tool = tools[calls[at]["name"]]
    arguments = {**_arguments(calls[at]), tool.argument: text}
    calls[at] = {**calls[at], "arguments": canonical_json(arguments)}
    told = tool.result.fullmatch(result.body)
    assert told is not None  # or these were no words of it
    return [
        (record, _instead(record, body=record.body, by=by, tool_calls=calls)),
        (result, _instead(result, body=f"{told[1]}{text}{told[2]}", by=by)),
    ]


def _instead(record: Record, *, body: str, by: str, **meta: Any) -> NewRecord:
    kept = {name: value for name, value in record.meta.items() if name != "tail"}
    told = {**kept, **meta, CORRECTS: said_at(record), "corrected_by": by}
    return NewRecord(kind=record.kind, role=record.role, name=record.name, body=body, meta=told)


def _arguments(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments of a call, nothing where they are none."""
    try:
        told = json.loads(call["arguments"])
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}
