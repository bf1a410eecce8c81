"""Changes: the differences between a prompt and the one before it, item by item.

Items are the origins in reports: components, lore entries, notes, memories, blocks. What was said
in between is reported as numbers of messages. Everything is read from two reports.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from evennia_ai.engine.prompt.report import Report, final_verdicts, number_of
from evennia_ai.engine.text.differences import diff_texts

How = Literal["came", "went", "changed"]
MOST_LINES: Final = 40
"""The most lines of one item's text or differences. The rest is only counted."""

# `compare_messages` reports what was said, and framing follows from the rest.
_NO_ITEMS: Final = frozenset({"history", "event", "framing", "tool"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One item that came, went or has another text."""

    item: str
    how: How
    why: str
    """The reason of the newer prompt's verdict, "" without one."""
    lines: tuple[str, ...]
    """The new text, or the differences sentence by sentence."""


def compare_reports(older: Report, newer: Report) -> list[Change]:
    """Return the items that came, changed and went, each in the order of its prompt."""
    before, now = _texts(older), _texts(newer)
    kept, left = final_verdicts(newer)
    reasons = {one.item: one.cause or one.reason for one in (*kept, *left)}
    found: list[Change] = []
    for item, text in now.items():
        if item not in before:
            found.append(_change(item, "came", reasons, _bounded(text.splitlines())))
        elif text != before[item]:
            found.append(
                _change(item, "changed", reasons, _bounded(list(diff_texts(before[item], text))))
            )
    found += [_change(item, "went", reasons, ()) for item in before if item not in now]
    return found


def compare_messages(older: Report, newer: Report) -> tuple[list[str], list[str]]:
    """Return the numbers of conversation messages that are new, and of those no longer shown."""
    before, now = _said(older), _said(newer)
    came = [number for number in now if number not in before]
    return came, [number for number in before if number not in now]


def _change(item: str, how: How, reasons: Mapping[str, str], lines: tuple[str, ...]) -> Change:
    return Change(item=item, how=how, why=reasons.get(item, ""), lines=lines)


def _texts(report: Report) -> dict[str, str]:
    """Return the text of each item that counted, "" if it is part of another item's text."""
    fragments: dict[str, list[str]] = {}
    for message in report.messages:
        for part in message.parts:
            fragments.setdefault(part.origin, []).append(message.content[part.start : part.end])
    for verdict in final_verdicts(report)[0]:
        fragments.setdefault(verdict.item, [])
    return {
        origin: "\n".join(texts)
        for origin, texts in fragments.items()
        if origin.partition(":")[0] not in _NO_ITEMS
    }


def _said(report: Report) -> dict[str, None]:
    """Return the numbers of messages that were said, with the event that is answered."""
    return {
        number_of(report, index): None
        for index, message in enumerate(report.messages)
        if message.block in ("history", "event", "tool") and not message.injected
    }


def _bounded(lines: list[str]) -> tuple[str, ...]:
    return tuple(_up_to(lines))


def _up_to(lines: list[str]) -> Iterator[str]:
    yield from lines[:MOST_LINES]
    if len(lines) > MOST_LINES:
        yield f"... and {len(lines) - MOST_LINES} more lines"
