"""Decides what a viewer may see of what an NPC was sent, said and learnt.

What an NPC knows does not depend on the viewer, so its prompts and records contain texts that a
lock hides from some builders. Hidden words also spread: a component may repeat a whisper, a key of
lore may match it, a reason may quote it. Cleaning a finished prompt would miss such words.

A `Seer` therefore removes what is hidden from the *inputs*, and the prompt is composed from the
rest. What a viewer is shown then depends only on what they may see (Devriese and Piessens,
"Noninterference through secure multi-execution", 2010).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from evennia_ai.engine.history.projection import message_of, record_of
from evennia_ai.engine.history.records import BOOKKEEPING, Record
from evennia_ai.engine.inputs import Inputs
from evennia_ai.engine.lorebook.activation.timers import NO_STATE
from evennia_ai.engine.lorebook.book import Lorebook
from evennia_ai.engine.memory.memories import Memory
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.memo import Memo
from evennia_ai.engine.prompt.messages import Message
from evennia_ai.npc.views.withheld.knowledge import META_PROMPT, HiddenKnowledge
from evennia_ai.npc.views.withheld.lore import HiddenLore, alias_of
from evennia_ai.npc.views.withheld.pages import HiddenPages
from evennia_ai.npc.views.withheld.viewer import Viewer
from evennia_ai.npc.views.withheld.whispers import HiddenWhispers
from evennia_ai.store.knowledge.knowledge_searches import StoredSearch

_LORE: Final = "lore:"
_BLOCK: Final = "block:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The inputs of a prompt without what is hidden from a viewer."""

    inputs: Inputs
    hidden: tuple[str, ...] = ()
    """What was removed, such as "2 entries of lore". If empty, the inputs are unchanged."""


class Seer:
    """Decides what one viewer may see of one NPC."""

    def __init__(self, viewer: Viewer, npc_ref: str) -> None:
        self._lore: Final = HiddenLore(viewer)
        self._knowledge: Final = HiddenKnowledge(viewer, npc_ref)
        self._whispers: Final = HiddenWhispers(viewer, npc_ref)

    @cached_property
    def may_hide(self) -> bool:
        """True if anything in the NPC's prompts may be hidden from the viewer, which is rare."""
        return self._lore.are_some or self._knowledge.is_there or self._whispers.are_hidden

    def seen(self, inputs: Inputs) -> Seen:
        """Return the inputs without what is hidden.

        Hidden messages become marks; the rest is removed.

        If the viewer reads something private, that is written to the security log.
        """
        shown = [*inputs.history, *inputs.tools, *([inputs.event] if inputs.event else [])]
        records = [record for message in shown if (record := record_of(message)) is not None]
        if not self.may_hide:
            self.note_reading(records)
            return Seen(inputs=inputs)
        now = {m.record: self._message(m, records) for m in shown if m.record}
        messages = sum(now.get(m.record, m) is not m for m in shown)
        texts = {record.id for record in records if self.leaves_out(record)}
        books = tuple(map(self._book, inputs.books)) if self._lore.are_some else inputs.books
        memories = tuple(memory for memory in inputs.memories if not self.memory(memory))
        is_private = any(map(self._whispers.hides, records))
        # A provider gets the words of the event, so any fact may repeat a hidden whisper.
        blocks = (
            ()
            if is_private
            else tuple(b for b in inputs.blocks if not self._hides_block(b.text, b.origin))
        )
        gone = (
            (messages, "message", "messages"),
            (_entries(inputs.books) - _entries(books), "entry of lore", "entries of lore"),
            (len(inputs.memories) - len(memories), "memory", "memories"),
            (len(inputs.blocks) - len(blocks), "fact", "facts"),
        )
        hidden = [f"{n} {one if n == 1 else several}" for n, one, several in gone if n]
        if texts:  # without their number, which could reveal what a hidden text activated
            hidden.append("texts of earlier prompts")
        if not hidden:
            return Seen(inputs=inputs)
        history, left = inputs.history, {memory.id for memory in memories}
        before_cut = history.between(history.earlier, max(history.earlier, inputs.cut))
        without = replace(
            inputs,
            history=History(
                [now.get(m.record, m) for m in history if m.record not in texts],
                earlier=history.earlier,
                earlier_users=history.earlier_users,
                earlier_replies=history.earlier_replies,
                segment=history.segment,
            ),
            cut=inputs.cut - sum(message.record in texts for message in before_cut),
            anchors={},
            event=inputs.event and now.get(inputs.event.record, inputs.event),
            tools=tuple(now.get(message.record, message) for message in inputs.tools),
            books=books,
            memories=memories,
            near=tuple(one for one in inputs.near if one[0] in left),
            blocks=blocks,
            lore_state=NO_STATE,  # its sticky and cooling entries may reveal hidden words
        )
        return Seen(inputs=without, hidden=tuple(hidden))

    def origin(self, origin: str) -> str:
        """Return the origin of a text. For a hidden lore entry, return an alias."""
        is_hidden = origin.startswith(_LORE) and self._lore.covers(origin)
        return alias_of(origin) if is_hidden else origin

    def revisions(self, revisions: Mapping[str, str]) -> dict[str, str]:
        """Return the revisions of a prompt that the viewer may see."""
        return self._lore.shown_revisions(revisions)

    def leaves_out(self, record: Record) -> bool:
        """True if a record is a text of an earlier prompt that no page may show to the viewer.

        Hidden words may be part of such a text, because its sources are unknown. A text made only
        of blocks of facts is judged by its own words.
        """
        if record.kind not in BOOKKEEPING or record.is_erased or not self.may_hide:
            return False
        if self._whispers.hides(record):
            return True
        origins = [str(part[0]) for part in record.meta.get("parts", ())]
        if origins and all(origin.startswith(_BLOCK) for origin in origins):
            return bool(self._knowledge.mark_of_text(record.body))
        return self._lore.are_some or self._knowledge.is_there

    def record(self, record: Record, beside: Iterable[Record] = ()) -> Record:
        """Return the record as the viewer may see it. `beside` are the records shown with it."""
        if record.kind in BOOKKEEPING:
            return record
        mark = self._knowledge.mark_of_record(record)
        heard = self._whispers.without_words(record)
        seen = self._knowledge.without_hidden_calls(heard, beside)
        return replace(seen, body=mark) if mark else seen

    def note_reading(self, records: Iterable[Record]) -> None:
        """Write to the security log which of these records were said in private."""
        for record in records:
            self._whispers.without_words(record)

    def memory(self, memory: Memory) -> str:
        """Return the mark that replaces a memory's text, "" if the viewer may see it."""
        return self._whispers.mark_of_memory(memory) or self._knowledge.mark_of_memory(memory)

    def search(self, search: StoredSearch) -> str:
        """Return the mark that replaces a search, "" if the viewer may see the search."""
        if mark := self._whispers.mark_of_search(search):
            return mark
        return self._knowledge.mark_of_search(search) if self._knowledge.is_there else ""

    def hides_some(self, records: Iterable[Record]) -> bool:
        """True if the viewer may not see all parts of these records."""
        known = tuple(records)
        return any(self.leaves_out(one) or self.record(one, known) != one for one in known)

    def _message(self, message: Message, records: Sequence[Record]) -> Message:
        """Return the message as the viewer may see it.

        If nothing is hidden, return the same object.
        """
        record = record_of(message)
        if record is None:
            return message
        seen = self.record(record, records)
        if seen == record:
            return message
        shown = message_of(replace(seen, memo=Memo()))
        assert shown is not None  # only an erased record has no message
        return replace(shown, block=message.block, origin=message.origin, injected=message.injected)

    def _book(self, book: Lorebook) -> Lorebook:
        kept = tuple(entry for entry in book.entries if not self._lore.covers(entry.origin))
        if len(kept) == len(book.entries):
            return book
        return replace(book, entries=kept, memo=Memo(), of_entries=Memo())

    def _hides_block(self, text: str, origin: str) -> bool:
        if not self._knowledge.is_there:
            return False
        mark = self._knowledge.mark_of_block(text) if origin == META_PROMPT else ""
        return bool(mark or self._knowledge.mark_of_text(text))


def _entries(books: Iterable[Lorebook]) -> int:
    return sum(len(book.entries) for book in books)


def may_see_package(viewer: Viewer, context_meta: Mapping[str, Any]) -> bool:
    """True if the viewer may see every page that the lorekeeper's model was shown."""
    pages = HiddenPages(viewer)
    told = (*context_meta.get("pages", ()), *context_meta.get("dropped", ()))
    of_bases = [(one["base"], one["page"]) for one in told if one["base"]]
    return not any(pages.covers(base, page) for base, page in of_bases)
