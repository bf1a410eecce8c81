"""A prompt as a column of messages: the report as plain values for pages and their JSON.

This module decides nothing. The report says what was sent and why, and `npc.views.visibility` has
already removed what the viewer may not see.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from evennia_ai.engine.prompt.report import (
    KINDS,
    STAGES,
    Report,
    calls_in_words,
    describe_break,
    final_verdicts,
    hidden_in_words,
    number_of,
    token_shares,
)
from evennia_ai.engine.prompt.trace import Verdict
from evennia_ai.npc.views.lore_reasons import Because, marked_spans

BAR_CELLS: Final = 1000
MOST_ITEMS: Final = 50
"""The most items that are named for one reason. The page shows only the number of the others."""
MOST_SAID: Final = 24
"""The most messages of the conversation that get rows of their own, the newest. `?all` shows all.
"""


def column_of(report: Report) -> dict[str, Any]:
    """Return the report of a prompt as plain values."""
    kept, left = final_verdicts(report)
    return {
        "tokens": report.tokens,
        "limit_tokens": report.limit_tokens,
        "layout": report.layout,
        "counter": report.counter,
        "hidden": hidden_in_words(report),
        "sha256": report.sha256,
        "by_origin": dict(report.by_origin),
        "bar": list(_bar(report)),
        "messages": list(_messages(report)),
        "kept": [_verdict(one) for one in kept],
        "left_out": len(left),
        "left_out_by_reason": _by_reason(left),
        "cache": {
            "breakpoints": [number_of(report, spot) for spot in report.breakpoints],
            "stable_tokens": report.stable_tokens,
            "shared_tokens": report.shared_tokens,
            "told": "" if report.shared_tokens is None else describe_break(report),
        },
    }


def _bar(report: Report) -> Iterator[dict[str, Any]]:
    """Yield the segments of the token bar, which is `BAR_CELLS` wide, each with its start."""
    at = 0
    for share in token_shares(report, cells=BAR_CELLS):
        yield {
            "kind": share.kind,
            "mark": share.mark,
            "label": share.label,
            "tokens": share.tokens,
            "at": at,
            "cells": share.cells,
        }
        at += share.cells


def _messages(report: Report) -> Iterator[dict[str, Any]]:
    follow = sum(one.block == "history" and not one.injected for one in report.messages)
    breakpoints = set(report.breakpoints)
    for index, message in enumerate(report.messages):
        is_said = message.block == "history" and not message.injected
        if is_said:
            follow -= 1
        in_history = message.block == "history"
        yield {
            "index": index,
            "number": number_of(report, index),
            "record": message.record or "",
            "role": message.role,
            "speaker": message.name or "",
            "block": message.block,
            "said": is_said,
            "injected": message.injected,
            "depth": follow if in_history else None,
            "tokens": message.tokens,
            "calls": calls_in_words(message),
            "is_breakpoint": index in breakpoints,
            "parts": [
                {
                    "origin": part.origin,
                    "mark": KINDS.get(part.origin.partition(":")[0], ("?", ""))[0],
                    "text": message.content[part.start : part.end],
                }
                for part in message.parts
            ]
            or [{"origin": message.block, "mark": "?", "text": message.content}],
        }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "item": verdict.item,
        "stage": STAGES[verdict.stage],
        "reason": verdict.reason,
        "cause": verdict.cause or "",
        "tokens": verdict.tokens,
    }


def _by_reason(left: Sequence[Verdict]) -> list[dict[str, Any]]:
    """Return the items that were left out, grouped by reason; the largest group comes first."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for verdict in left:
        reasons.setdefault((STAGES[verdict.stage], verdict.reason), []).append(verdict.item)
    told = [
        {"stage": stage, "reason": reason, "count": len(items), "items": items[:MOST_ITEMS]}
        for (stage, reason), items in reasons.items()
    ]
    return sorted(told, key=lambda one: -int(str(one["count"])))


def sentences(reasons: Iterable[Because]) -> list[dict[str, str]]:
    """Return why lore is active as plain values."""
    return [{"item": one.item, "sentence": one.sentence} for one in reasons]


def why_values(
    messages: Sequence[Mapping[str, Any]], reasons: Sequence[Because], titles: Mapping[str, str]
) -> dict[str, Any]:
    """Return why lore is active, the names of texts, and the words to highlight in the messages.

    The words are named by message and part, such as "3.0".
    """
    spans = {
        f"{message['index']}.{at}": marked_spans(
            part["text"], reasons, record=message["record"], origin=part["origin"]
        )
        for message in messages
        for at, part in enumerate(message["parts"])
    }
    return {
        # Lore that somebody's words activated comes before lore that is always active.
        "because": {one.item: one for one in sorted(reasons, key=lambda one: not one.words)},
        "titles": titles,
        "marks": {at: found for at, found in spans.items() if found},
    }


def column_rows(
    messages: Sequence[Mapping[str, Any]], *, everything: bool
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a column. Unless `everything`, older messages are folded into one row."""
    said = [message["index"] for message in messages if message["said"]]
    folded = set() if everything else set(said[:-MOST_SAID])
    hidden: list[Mapping[str, Any]] = []
    for message in messages:
        if message["index"] in folded:
            hidden.append(message)
            continue
        if hidden:
            yield _fold(hidden)
            hidden = []
        yield {"message": message}
    if hidden:
        yield _fold(hidden)


def _fold(hidden: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "folded": len(hidden),
        "first": hidden[0]["number"],
        "last": hidden[-1]["number"],
        "tokens": sum(message["tokens"] for message in hidden),
    }
