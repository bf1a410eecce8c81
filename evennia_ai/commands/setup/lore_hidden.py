"""Prompts as somebody may see them: without the texts of entries that a lock hides from them.

A lock is for builders alone. What an NPC knows does not depend on it, so its prompts hold such
texts, and whoever looks at a prompt is shown where they stand and not what they say.
"""

from dataclasses import replace
from typing import Any, Final

from evennia_ai.commands.setup.lore_locks import allows
from evennia_ai.prompt.messages import Part
from evennia_ai.prompt.report import Report, ReportMessage
from evennia_ai.prompt.trace import Verdict
from evennia_ai.store import lorebooks as store

HIDDEN: Final = "(hidden by its lock)"
# Texts that lore may have become a part of: an outlet in a component, the places around a note.
_MAY_HOLD: Final = ("component:", "note:")


class HiddenLore:
    """Which entries the locks of books and entries hide from somebody."""

    def __init__(self, caller: Any) -> None:
        self._caller = caller
        self._names = frozenset(store.book_names())
        self._books: dict[str, bool] = {}
        self._entries: dict[str, frozenset[str]] = {}

    def covers(self, origin: str) -> bool:
        """Whether the entry of this origin may not be seen."""
        label = origin.removeprefix("lore:")
        return any(
            self._covers_book(label[:at]) or label[at + 1 :] in self._entries[label[:at]]
            for at, letter in enumerate(label)
            if letter == "#"
        )

    def _covers_book(self, name: str) -> bool:
        if name not in self._books:
            is_stored = name in self._names
            locks = store.get_book(name).locks if is_stored else ""
            entries = store.entry_locks(name) if is_stored else {}
            self._books[name] = not allows(self._caller, locks, "view")
            self._entries[name] = frozenset(
                uid for uid, lock in entries.items() if not allows(self._caller, lock, "view")
            )
        return self._books[name]


def seen_by(caller: Any, report: Report) -> Report:
    """The report with what `caller` may not see left out of its texts and reasons."""
    hidden = HiddenLore(caller)
    lore = {v.item for v in report.verdicts if v.item.startswith("lore:")}
    covered = frozenset(origin for origin in lore if hidden.covers(origin))
    if not covered:
        return report
    placed = {part.origin for message in report.messages for part in message.parts}
    kept = {verdict.item for verdict in report.verdicts if verdict.kept}
    loose = bool((covered & kept) - placed)  # its text stands in that of something else
    return replace(
        report,
        messages=tuple(_shown(message, covered, loose=loose) for message in report.messages),
        verdicts=tuple(_told(verdict, covered) for verdict in report.verdicts),
    )


def _shown(message: ReportMessage, covered: frozenset[str], *, loose: bool) -> ReportMessage:
    """The message with a mark in place of each stretch that may not be seen."""
    content, at = "", 0
    parts: list[Part] = []
    for part in message.parts:
        text = message.content[part.start : part.end]
        if part.origin in covered or (loose and part.origin.startswith(_MAY_HOLD)):
            text = HIDDEN
        content += message.content[at : part.start]
        parts.append(replace(part, start=len(content), end=len(content) + len(text)))
        content += text
        at = part.end
    return replace(message, content=content + message.content[at:], parts=tuple(parts))


def _told(verdict: Verdict, covered: frozenset[str]) -> Verdict:
    if verdict.item not in covered:
        return verdict
    return replace(verdict, reason=HIDDEN, cause=None)
