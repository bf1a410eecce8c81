"""The differences between a prompt and the previous prompt, item by item.

An item has an origin in the reports of both prompts: a component, lore entry, note, memory or
block of facts. Messages of the conversation are only reported by their numbers. Everything is
computed from the two reports.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from evennia_ai.engine.prompt.report import Report, final_verdicts, number_of
from evennia_ai.engine.prompt.trace import Verdict
from evennia_ai.engine.text.differences import diff_texts

How = Literal["came", "went", "changed"]
MOST_LINES: Final = 40
"""The most lines shown of one item's text or differences. A last line counts the omitted ones."""

# Origins that are not compared as items. `compare_messages` reports the conversation. The tokens of
# the framing only change if other items change.
_NO_ITEMS: Final = frozenset({"history", "event", "framing", "tool"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One component, entry, note or other item that was added, removed or changed."""

    item: str
    how: How
    why: str
    """The reason in the newer prompt's verdict on the item; "" without a verdict."""
    lines: tuple[str, ...]
    """The text of an added item, or the differences sentence by sentence."""


def compare_reports(older: Report, newer: Report) -> list[Change]:
    """Return the items that were added, changed or removed between the prompts of two reports."""
    kept, left = final_verdicts(newer)
    before, now = _item_texts(older, final_verdicts(older)[0]), _item_texts(newer, kept)
    reasons = {one.item: one.cause or one.reason for one in (*kept, *left)}
    found: list[Change] = []
    for item, text in now.items():
        if item not in before:
            found.append(_change(item, "came", reasons, _limit_lines(text.splitlines())))
        elif text != before[item]:
            found.append(
                _change(
                    item, "changed", reasons, _limit_lines(list(diff_texts(before[item], text)))
                )
            )
    found += [_change(item, "went", reasons, ()) for item in before if item not in now]
    return found


def compare_messages(older: Report, newer: Report) -> tuple[list[str], list[str]]:
    """Return the numbers of the conversation's messages that were added, and of those left out."""
    before, now = _message_numbers(older), _message_numbers(newer)
    came = [number for number in now if number not in before]
    return came, [number for number in before if number not in now]


def _change(item: str, how: How, reasons: Mapping[str, str], lines: tuple[str, ...]) -> Change:
    return Change(item=item, how=how, why=reasons.get(item, ""), lines=lines)


def _item_texts(report: Report, kept: Iterable[Verdict]) -> dict[str, str]:
    """Return the text of each kept item by origin; "" if it is inside another item's text."""
    fragments: dict[str, list[str]] = {}
    for message in report.messages:
        for part in message.parts:
            fragments.setdefault(part.origin, []).append(message.content[part.start : part.end])
    for verdict in kept:
        fragments.setdefault(verdict.item, [])
    return {
        origin: "\n".join(texts)
        for origin, texts in fragments.items()
        if origin.partition(":")[0] not in _NO_ITEMS
    }


def _message_numbers(report: Report) -> dict[str, None]:
    """Return the numbers of the conversation's messages, including the event, as keys of a dict."""
    return {
        number_of(report, index): None
        for index, message in enumerate(report.messages)
        if message.block in ("history", "event", "tool") and not message.injected
    }


def _limit_lines(lines: list[str]) -> tuple[str, ...]:
    return tuple(_up_to(lines))


def _up_to(lines: list[str]) -> Iterator[str]:
    yield from lines[:MOST_LINES]
    if len(lines) > MOST_LINES:
        yield f"... and {len(lines) - MOST_LINES} more lines"
