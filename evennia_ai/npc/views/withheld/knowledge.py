"""Hides knowledge that an NPC found from viewers who may not see its source.

The table of searches names the sources of each result. A result with an unknown source is hidden
from everybody who may not see everything. So are the arguments of its call, later summaries of the
conversation, memories learnt from it, and other texts of the NPC that repeat a passage of it.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Final

from evennia_ai.engine.errors import NotStoredError
from evennia_ai.engine.history.records import Record, RecordKind
from evennia_ai.engine.knowledge.meta_prompt import TOOL, listed_base_ids
from evennia_ai.engine.knowledge.restricted.leaks import Protected, find_leak, protect_texts
from evennia_ai.engine.memory.memories import OF_NPC, Memory
from evennia_ai.npc.views.withheld.pages import HiddenPages
from evennia_ai.npc.views.withheld.viewer import Viewer, withheld_mark
from evennia_ai.store.history import conversations, record_rows, turns
from evennia_ai.store.history.branches import npc_of
from evennia_ai.store.knowledge import knowledge_searches
from evennia_ai.store.knowledge.knowledge_searches import StoredSearch

META_PROMPT: Final = "block:kb_meta_prompt"
_REPEATS: Final = ("words", "letters")
_SAID_BY_OTHERS: Final = (RecordKind.USER, RecordKind.EVENT)


class HiddenKnowledge:
    """Decides which of the knowledge that one NPC found is hidden from one viewer."""

    def __init__(self, viewer: Viewer, npc_ref: str) -> None:
        self._viewer: Final = viewer
        self._pages: Final = HiddenPages(viewer)
        self._npc_ref: Final = npc_of(npc_ref)
        self._turns: dict[int, bool] = {}

    @cached_property
    def is_there(self) -> bool:
        """True if anything may be hidden from the viewer, which is rare."""
        if not self._pages.may_cover(knowledge_searches.bases_of(self._npc_ref)):
            return False
        return bool(self._hidden) or self._pages.are_some

    def mark_of_record(self, record: Record) -> str:
        """Return the mark that replaces a record's text, "" if the viewer may see it."""
        if not self.is_there or record.is_erased or record.kind in _SAID_BY_OTHERS:
            return ""
        if record.kind is RecordKind.TOOL_RESULT:
            return self._mark_of_result(record)
        if record.kind is RecordKind.SUMMARY and self._was_told_before(record):
            return withheld_mark("a summary with words of a knowledge base")
        return self.mark_of_text(record.body)

    def mark_of_text(self, text: str) -> str:
        """Return the mark for a text of the NPC that repeats a hidden passage, else ""."""
        if not self.is_there or not text or not self._bodies:
            return ""
        if find_leak(text, _protected(self._bodies)) in _REPEATS:
            return withheld_mark("words that repeat a page of a knowledge base")
        return ""

    def mark_of_memory(self, memory: Memory) -> str:
        """Return the mark that replaces a memory, "" if the viewer may see it.

        Memories written by builders are never hidden.
        """
        if not self.is_there or memory.author != OF_NPC:
            return ""
        if memory.turn and self._is_of_hidden(memory.turn):
            return withheld_mark("learnt from a knowledge base")
        return self.mark_of_text(memory.text)

    def mark_of_block(self, text: str) -> str:
        """Return the mark for the prompt's block about knowledge bases, "" if no base is hidden."""
        hidden = [key for key in listed_base_ids(text) if self._pages.covers_base(key)]
        return withheld_mark(_base(hidden[0])) if hidden else ""

    def mark_of_search(self, search: StoredSearch) -> str:
        """Return the mark for a search with a hidden base or hidden results, "" for any other."""
        hidden = next((key for key in search.bases if self._pages.covers_base(key)), "")
        return withheld_mark(_base(hidden)) if hidden else self._why_hidden(search)

    def without_hidden_calls(self, record: Record, results: Iterable[Record]) -> Record:
        """Return a record of tool calls, without the arguments of searches with hidden results.

        Args:
            results: The records of results that are shown next to it.
        """
        if not self.is_there or record.kind is not RecordKind.TOOL_CALL:
            return record
        seen = {
            str(one.meta.get("tool_call_id"))
            for one in results
            if one.kind is RecordKind.TOOL_RESULT and self._search_of(one) is not None
        }
        calls = [
            call
            if call.get("name") != TOOL or str(call.get("id")) in seen
            else {**call, "arguments": withheld_mark("the words of a search")}
            for call in record.meta.get("tool_calls", ())
        ]
        return replace(record, meta={**record.meta, "tool_calls": calls})

    def _mark_of_result(self, record: Record) -> str:
        if self._search_of(record) is not None:
            return ""
        if not self._is_search(record):
            return self.mark_of_text(record.body)
        for search in self._hidden:
            if self._recorded(search) == record.body:
                return self._why_hidden(search)
        return withheld_mark("a result of a knowledge base, from an unknown page")

    def _search_of(self, record: Record) -> StoredSearch | None:
        """Return the visible search to which this result belongs, None if there is none."""
        return self._seen.get((record.conversation, record.body))

    def _is_search(self, record: Record) -> bool:
        """True if the record is the result of a search, or if its call no longer exists."""
        called = str(record.meta.get("tool_call_id", ""))
        return record_rows.tool_called(record.conversation, called) in (TOOL, "")

    def _was_told_before(self, record: Record) -> bool:
        is_copy = record.conversation not in self._conversations
        return any(
            (is_copy or search.conversation.id == record.conversation)
            and search.began_at <= record.created_at
            for search in self._hidden
        )

    @cached_property
    def _conversations(self) -> frozenset[int]:
        """Return the ids of the NPC's own conversations, without branches.

        A branch may have copied a summary of another conversation.
        """
        return frozenset(one.id for one in conversations.conversations_of(self._npc_ref))

    def _is_of_hidden(self, number: int) -> bool:
        """True if the prompt of this turn contained a hidden search result or summary."""
        if number not in self._turns:
            try:
                shown = turns.get_turn(self._npc_ref, number).manifest.record_ids
            except NotStoredError:
                shown = ()
            self._turns[number] = any(
                self.mark_of_record(record)
                for record in record_rows.records(shown)
                if record.kind in (RecordKind.TOOL_RESULT, RecordKind.SUMMARY)
            )
        return self._turns[number]

    @cached_property
    def _searches(self) -> tuple[StoredSearch, ...]:
        return knowledge_searches.searches_of(self._npc_ref)

    @cached_property
    def _hidden(self) -> tuple[StoredSearch, ...]:
        return tuple(search for search in self._searches if self._why_hidden(search))

    @cached_property
    def _seen(self) -> dict[tuple[int, str], StoredSearch]:
        return {
            (search.conversation.id, self._recorded(search)): search
            for search in self._searches
            if not self._why_hidden(search)
        }

    @cached_property
    def _bodies(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(search.result for search in self._hidden if search.result))

    def _recorded(self, search: StoredSearch) -> str:
        """Return the result of a search as its record stores it."""
        return self._viewer.as_recorded(search.result)

    def _why_hidden(self, search: StoredSearch) -> str:
        """Return the mark that replaces a search's result, "" if the viewer may see all of it."""
        for base, title in _sources(search):
            if self._pages.covers_base(base):
                return withheld_mark(_base(base))
            if title and self._pages.covers(base, title):
                return withheld_mark(f"a page of knowledge base '{base}'")
        return ""


def _base(key: str) -> str:
    return f"knowledge base '{key}'"


def _sources(search: StoredSearch) -> Iterator[tuple[str, str]]:
    """Yield the knowledge base and title of each page in a result.

    For pages of guarded bases, the title is "".
    """
    for source in search.sources:
        yield str(source["base"]), "" if search.restricted else str(source["title"])
    if search.restricted:
        yield from _open_base_pages(search.result)


def _open_base_pages(result: str) -> Iterator[tuple[str, str]]:
    """Yield the knowledge base and the title of each unrestricted page in a search result.

    Such pages are listed next to a safe summary.
    """
    try:
        told = json.loads(result or "{}")
    except ValueError:
        return
    for one in told.get("results", ()):
        yield str(one["knowledge_base_id"]), str(one["title"])


@lru_cache(maxsize=8)
def _protected(bodies: tuple[str, ...]) -> Protected:
    return protect_texts(bodies)
