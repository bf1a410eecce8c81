"""The one place that says what somebody may see of what an NPC was sent, said and learnt.

What an NPC knows does not depend on who looks at it, so its prompts and records hold texts that a
lock hides from some builders. Every screen of them goes through a `Seer`, which leaves those texts
out and says so in their place; hashes stay those of what was sent.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from evennia_ai.history.records import Record, RecordKind
from evennia_ai.inputs import Inputs
from evennia_ai.memory.memories import Memory
from evennia_ai.minds.withheld.knowledge import META_PROMPT, HiddenKnowledge
from evennia_ai.minds.withheld.lore import HiddenLore, alias_of
from evennia_ai.minds.withheld.pages import HiddenPages
from evennia_ai.minds.withheld.viewer import Viewer
from evennia_ai.minds.withheld.whispers import HiddenWhispers
from evennia_ai.prompt.messages import Part
from evennia_ai.prompt.report import Report, ReportMessage
from evennia_ai.prompt.trace import Verdict
from evennia_ai.store.history import record_rows
from evennia_ai.store.knowledge.knowledge_searches import StoredSearch

HIDDEN: Final = "(hidden by its lock)"
_LORE: Final = "lore:"
_MEMORY: Final = "memory:"
# What was said, in a text that repeats it as it was sent: with another name, or in quotes.
_SAID: Final = "history:"
# Texts that lore or memories may have become a part of: an outlet in a component, a note.
_MAY_HOLD: Final = ("component:", "note:")


class Seer:
    """What somebody may see of one NPC."""

    def __init__(self, viewer: Viewer, npc_ref: str) -> None:
        self._lore: Final = HiddenLore(viewer)
        self._knowledge: Final = HiddenKnowledge(viewer, npc_ref)
        self._whispers: Final = HiddenWhispers(viewer, npc_ref)

    def report(self, report: Report) -> Report:
        """The account of a prompt, without what may not be seen in its texts and reasons."""
        marks = self._marks(report)
        hides = self._knowledge.is_there or self._whispers.are_some
        if not (marks or hides):
            return report
        placed = {part.origin for message in report.messages for part in message.parts}
        kept = {verdict.item for verdict in report.verdicts if verdict.kept}
        loose = bool((marks.keys() & kept) - placed)  # its text stands in that of something else
        records = self._records(report) if hides else {}
        marks = {**marks, **self._marks_of_repeated(report, records)}
        messages = []
        for message in report.messages:
            record = records.get(message.record or "")
            shown = self._without_record(message, record, records.values())
            messages.append(self._without_parts(shown, record, marks, loose=loose))
        seen = replace(
            report,
            messages=tuple(messages),
            verdicts=tuple(_without_reason(verdict, marks) for verdict in report.verdicts),
            by_origin={o: cost for o, cost in report.by_origin.items() if o not in marks},
        )
        return _without_names(seen, [one for one in marks if one.startswith(_LORE)])

    def origin(self, origin: str) -> str:
        """Return the origin of a text, with another name where its lore is hidden."""
        return alias_of(origin) if origin.startswith(_LORE) and self._mark(origin) else origin

    def revisions(self, revisions: Mapping[str, str]) -> dict[str, str]:
        """Return which revisions a prompt was made from, as far as they may be seen."""
        return self._lore.shown_revisions(revisions)

    def record(self, record: Record, beside: Iterable[Record] = ()) -> Record:
        """The record as it may be seen; `beside` are those that are shown with it."""
        mark = self._knowledge.mark_of_record(record) or self._mark_of_repeated(record)
        heard = self._whispers.without_words(record)
        seen = self._knowledge.without_hidden_calls(heard, beside)
        return replace(seen, body=mark) if mark else seen

    def _mark_of_repeated(self, record: Record) -> str:
        """The mark of a text that repeats what may not be seen, "" for every other record."""
        if record.kind not in _TEXTS or _SAID not in str(record.meta.get("parts", "")):
            return ""
        origins = [part[0] for part in record.meta["parts"]]
        return next(iter(self._marks_of_said(origins).values()), "")

    def _marks_of_repeated(
        self, report: Report, records: Mapping[str, Record]
    ) -> Mapping[str, str]:
        """What stands in place of what was said where a text of the prompt repeats it."""
        said = {record.id for record in records.values() if record.kind not in _TEXTS}
        texts = (message for message in report.messages if message.record not in said)
        return self._marks_of_said(part.origin for message in texts for part in message.parts)

    def _marks_of_said(self, origins: Iterable[str]) -> Mapping[str, str]:
        """The marks of those origins that are records which may not be seen."""
        named = (one.removeprefix(_SAID) for one in origins if one.startswith(_SAID))
        ids = [one for one in named if one.isdecimal()]
        known = record_rows.records(ids) if ids else ()
        seen = {f"{_SAID}{record.id}": (record, self.record(record)) for record in known}
        return {origin: now.body for origin, (was, now) in seen.items() if now.body != was.body}

    def memory(self, memory: Memory) -> str:
        """What stands in place of a memory's text, "" where it may be seen."""
        return self._whispers.mark_of_memory(memory) or self._knowledge.mark_of_memory(memory)

    def search(self, search: StoredSearch) -> str:
        """What stands in place of what is told of a search, "" where it may be seen."""
        return self._knowledge.mark_of_search(search) if self._knowledge.is_there else ""

    def hides_some(self, records: Iterable[Record]) -> bool:
        """Whether something of these records may not be seen."""
        known = tuple(records)
        return any(self.record(record, known) != record for record in known)

    def hides_some_input(self, inputs: Inputs) -> bool:
        """True if the viewer may not see something that a prompt is composed from.

        What was said is not looked at: `hides_some` does that for the records of the conversation.
        """
        entries = (entry.origin for book in inputs.books for entry in book.entries)
        if self._lore.are_some and any(map(self._lore.covers, entries)):
            return True
        if any(map(self.memory, inputs.memories)):
            return True
        blocks = ((f"block:{block.key}", block.text) for block in inputs.blocks)
        return any(self._mark_of_text(origin, text) for origin, text in blocks)

    def _marks(self, report: Report) -> Mapping[str, str]:
        """What stands in place of the texts of these origins."""
        if not (self._lore.are_some or self._knowledge.is_there or self._whispers.are_some):
            return {}
        items = dict.fromkeys(
            [
                *(verdict.item for verdict in report.verdicts),
                *(part.origin for message in report.messages for part in message.parts),
            ]
        )
        marks = {item: self._mark(item) for item in items}
        return {item: mark for item, mark in marks.items() if mark}

    def _mark(self, origin: str) -> str:
        if origin.startswith(_LORE):
            return HIDDEN if self._lore.covers(origin) else ""
        if origin.startswith(_MEMORY):
            number = origin.removeprefix(_MEMORY)
            whispered = self._whispers.mark_of_memory_id(number)
            return whispered or self._knowledge.mark_of_memory_id(number)
        return ""

    def _records(self, report: Report) -> Mapping[str, Record]:
        ids = [message.record for message in report.messages if message.record]
        return {record.id: record for record in record_rows.records(ids)}

    def _without_record(
        self, message: ReportMessage, record: Record | None, beside: Iterable[Record]
    ) -> ReportMessage:
        """The message without what its record may not tell."""
        if record is None or record.kind in _TEXTS:
            return message
        seen = self.record(record, beside)
        calls = tuple(f"{c['name']} {c['arguments']}" for c in seen.meta.get("tool_calls", ()))
        shown = replace(message, calls=calls)
        if seen.body == record.body:
            return shown
        origin = message.parts[0].origin if message.parts else message.block
        part = Part(origin=origin, start=0, end=len(seen.body))
        return replace(shown, content=seen.body, parts=(part,), tokens=0)

    def _without_parts(
        self,
        message: ReportMessage,
        record: Record | None,
        marks: Mapping[str, str],
        *,
        loose: bool,
    ) -> ReportMessage:
        """The message with a mark in place of each stretch that may not be seen."""
        is_said = record is not None and record.kind not in _TEXTS
        content, at = "", 0
        parts: list[Part] = []
        for part in message.parts:
            text = message.content[part.start : part.end]
            mark = marks.get(part.origin, "")
            if not mark and loose and part.origin.startswith(_MAY_HOLD):
                mark = HIDDEN
            text = mark or ("" if is_said else self._mark_of_text(part.origin, text)) or text
            content += message.content[at : part.start]
            parts.append(replace(part, start=len(content), end=len(content) + len(text)))
            content += text
            at = part.end
        return replace(message, content=content + message.content[at:], parts=tuple(parts))

    def _mark_of_text(self, origin: str, text: str) -> str:
        """The mark of a text that was made for the prompt; what was just said has none."""
        if origin.partition(":")[0] in ("history", "event") or not self._knowledge.is_there:
            return ""
        of_block = self._knowledge.mark_of_block(text) if origin == META_PROMPT else ""
        return of_block or self._knowledge.mark_of_text(text)


# Texts of prompts: each stretch of them has an origin of its own.
_TEXTS: Final = (RecordKind.CONTEXT_BLOCK, RecordKind.COMPONENT_REV, RecordKind.NOTE_ANCHOR)


def may_see_package(viewer: Viewer, context_meta: Mapping[str, Any]) -> bool:
    """Whether somebody may see every page that the lorekeeper's model was shown for a text."""
    pages = HiddenPages(viewer)
    told = (*context_meta.get("pages", ()), *context_meta.get("dropped", ()))
    of_bases = [(one["base"], one["page"]) for one in told if one["base"]]
    return not any(pages.covers(base, page) for base, page in of_bases)


def _without_reason(verdict: Verdict, marks: Mapping[str, str]) -> Verdict:
    if verdict.item not in marks:
        return verdict
    return replace(verdict, reason=marks[verdict.item], cause=None, tokens=0)


def _without_names(report: Report, hidden: Sequence[str]) -> Report:
    """The report with another name for each of these entries: their own tell a book and an uid.

    Reasons of other items name an entry by its label, such as "in the text of vault#0".
    """
    if not hidden:
        return report
    aliases = {origin: alias_of(origin) for origin in hidden}
    labels = sorted((one.removeprefix(_LORE) for one in hidden), key=len, reverse=True)
    named = re.compile(r"(?<!\w)(?:" + "|".join(map(re.escape, labels)) + r")(?!\w)")

    def renamed(text: str) -> str:
        return named.sub(lambda found: alias_of(_LORE + found[0]).removeprefix(_LORE), text)

    messages = (
        replace(
            message,
            parts=tuple(replace(p, origin=aliases.get(p.origin, p.origin)) for p in message.parts),
        )
        for message in report.messages
    )
    verdicts = (
        replace(
            one,
            item=aliases.get(one.item, one.item),
            reason=renamed(one.reason),
            cause=one.cause and renamed(one.cause),
        )
        for one in report.verdicts
    )
    broken = report.broken_by
    return replace(
        report,
        messages=tuple(messages),
        verdicts=tuple(verdicts),
        broken_by=broken and aliases.get(broken, broken),
    )
