"""Corrections: records with new words in place of words that an NPC said.

A builder can correct what others heard or saw of the NPC (its reply, the words of a tool that
speaks), and the summary of earlier messages. The words of a tool are in its call and in its result,
so both are corrected. The original words stay in their record, and the correction names this
record.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from evennia_ai.engine.history.compaction.summaries import FRAME
from evennia_ai.engine.history.records import NewRecord, Record, RecordKind, canonical_json

CORRECTS: Final = "corrects"
"""The key in a correction's meta for the place of the record that it replaces."""

CORRECTIBLE: Final = frozenset({RecordKind.ASSISTANT, RecordKind.TOOL_CALL, RecordKind.SUMMARY})


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeakingTool:
    """A tool with which the NPC speaks, and where the words are in its call and its result."""

    argument: str
    """The name of the tool's argument that contains the spoken words."""
    result: re.Pattern[str]
    """Matches the tool's result if others heard the words.

    The groups are the text before the words and the text after them.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Utterance:
    """Words that the NPC said, as one record has them. A builder can correct them."""

    words: str
    call: str = ""
    """The id of the tool call that spoke the words, or "" if the record's own text has them."""


def original_place(record: Record) -> str:
    """Return the place of the record with the original words, which corrections name."""
    return str(record.meta.get(CORRECTS) or record.place)


def find_utterances(
    record: Record, results: Mapping[str, Record], *, tools: Mapping[str, SpeakingTool]
) -> tuple[Utterance, ...]:
    """Return the words of the NPC in a record that a builder can correct, in order.

    Args:
        record: The record. Words of other speakers cannot be corrected.
        results: The results of the record's tool calls by call id.
        tools: The tools that speak, by name.
    """
    if record.kind not in CORRECTIBLE:
        return ()
    found = [Utterance(words=record.body.removeprefix(FRAME))] if record.body else []
    for call in record.meta.get("tool_calls", ()):
        tool, result = tools.get(call["name"]), results.get(call["id"])
        heard = tool.result.fullmatch(result.body) if tool and result else None
        if heard is not None and tool is not None and tool.argument in _arguments(call):
            words = heard.string[heard.end(1) : heard.start(2)]
            found.append(Utterance(words=words, call=call["id"]))
    return tuple(found)


def correct_records(
    record: Record,
    results: Mapping[str, Record],
    said: Utterance,
    text: str,
    *,
    tools: Mapping[str, SpeakingTool],
    by: str,
) -> Sequence[tuple[Record, NewRecord]]:
    """Return records that correct words of the NPC, each with the record that it replaces.

    `text` replaces the words in `said`.
    """
    if not said.call:
        frame = FRAME if record.body.startswith(FRAME) else ""
        return [(record, _correction(record, body=f"{frame}{text}", by=by))]
    result, calls = results[said.call], list(record.meta["tool_calls"])
    at = next(index for index, call in enumerate(calls) if call["id"] == said.call)
    tool = tools[calls[at]["name"]]
    arguments = {**_arguments(calls[at]), tool.argument: text}
    calls[at] = {**calls[at], "arguments": canonical_json(arguments)}
    heard = tool.result.fullmatch(result.body)
    assert heard is not None  # the expression matched when `find_utterances` returned `said`
    return [
        (record, _correction(record, body=record.body, by=by, tool_calls=calls)),
        (result, _correction(result, body=f"{heard[1]}{text}{heard[2]}", by=by)),
    ]


def _correction(record: Record, *, body: str, by: str, **changes: Any) -> NewRecord:
    kept = {name: value for name, value in record.meta.items() if name != "tail"}
    meta = {**kept, **changes, CORRECTS: original_place(record), "corrected_by": by}
    return NewRecord(kind=record.kind, role=record.role, name=record.name, body=body, meta=meta)


def _arguments(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of a tool call; {} if they are not a JSON object."""
    try:
        arguments = json.loads(call["arguments"])
    except ValueError:
        return {}
    return arguments if isinstance(arguments, dict) else {}
