"""A table of a book's entries in the newest turns of an NPC: which were active, and why."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from evennia_ai.engine.errors import ReplayError
from evennia_ai.engine.lorebook.entry import LoreEntry
from evennia_ai.engine.prompt.trace import Verdict
from evennia_ai.npc.mind.viewers import seer_for, viewer_of
from evennia_ai.npc.views.looking import past_reader, visible_verdicts
from evennia_ai.npc.views.parse_cache import attached_book
from evennia_ai.store.authored import lorebooks
from evennia_ai.store.history import past_turns
from evennia_ai.store.history.branches import npc_of
from evennia_ai.web.site.book_editing import get_visible_book
from evennia_ai.web.site.page import Page, find_npc_ref, name_of

TURNS: Final = 12
PAGE_ENTRIES: Final = 40
LETTERS: Final[Mapping[str, str]] = {
    "K": "a key was found",
    "R": "activated by the text of another entry",
    "C": "constant",
    "s": "stays active (sticky)",
    "c": "cannot activate yet (cooldown)",
    "d": "waits at first (delay)",
    "b": "left out by the budget",
    "g": "lost its group",
    "%": "left out by chance",
    ".": "not active",
}
# The letter by a text that the reason of an entry contains, in the prompt or left out.
_KEPT: Final = (("in the text of", "R"), ("sticky", "s"), ("constant", "C"), ("@@activate", "C"))
_LEFT: Final = (
    ("cooldown", "c"),
    ("delay", "d"),
    ("group '", "g"),
    ("rolled", "%"),
)


@dataclass(frozen=True, slots=True)
class _Row:
    """An entry, and its letter in each turn."""

    entry: LoreEntry
    cells: tuple[str, ...]

    @property
    def was_awake(self) -> bool:
        return any(cell != "." for cell in self.cells)


class LoreTurnsPage(Page):
    """`/ai/lore/<book>/turns/`: a table with entries as rows, turns as columns, and letters as
    cells.
    """

    template = "evennia_ai/lore_turns.html"
    section = "lore"

    def page_values(self, name: str) -> dict[str, Any]:
        stored = get_visible_book(self, name)
        asked = self.request.GET.get("npc", "").strip()
        ref = find_npc_ref(asked) if asked else usual_npc(name)
        locks = lorebooks.entry_locks(name)
        may_view = viewer_of(self.request.user).may_view
        entries = [e for e in attached_book(stored).entries if may_view(locks.get(e.uid, ""))]
        by_turn = newest_lore_verdicts(self.request.user, ref, TURNS) if ref else {}
        touched = frozenset(item for one in by_turn.values() for item in one)
        rows = [
            _Row(entry, tuple(letter_of(one.get(item, ())) for one in by_turn.values()))
            for entry in entries
            if (item := verdict_item(name, entry.uid)) in touched
        ]
        awake = [row for row in rows if row.was_awake]
        page, pages = self.requested_page(len(awake), PAGE_ENTRIES)
        return {
            "book": name,
            "ref": ref,
            "npc": name_of(ref) if ref else "",
            "turns": list(by_turn),
            "letters": dict(_used(awake)),
            "rows": [
                {
                    "uid": row.entry.uid,
                    "name": row.entry.name or ", ".join(row.entry.keys[:3]),
                    "cells": list(row.cells),
                }
                for row in awake[(page - 1) * PAGE_ENTRIES : page * PAGE_ENTRIES]
            ],
            "page": page,
            "pages": pages,
            "never": len(entries) - len(awake),
            "always": sum(all(cell in "KRs" for cell in row.cells) for row in awake),
        }


def letter_of(verdicts: Sequence[Verdict]) -> str:
    """Return the letter of an entry from the decisions of all stages; "." if nothing activated it.

    If a stage left it out, the letter says why. Otherwise it says what activated the entry, which
    the first stage knows.
    """
    left = next((one for one in verdicts if not one.kept), None)
    if left is not None:
        by_budget = left.stage == "budget"
        words = ((words, letter) for words, letter in _LEFT if words in left.reason)
        return "b" if by_budget else next((letter for _, letter in words), ".")
    if not verdicts:
        return "."
    return next((letter for words, letter in _KEPT if words in verdicts[0].reason), "K")


Judged = Mapping[str, Sequence[Verdict]]


def newest_lore_verdicts(account: Any, ref: str, count: int) -> dict[int, Judged]:
    """Return the visible lore decisions of an NPC's newest turns, by the number of the turn.

    Turns are skipped if it is not known what of them must stay hidden.
    """
    seer, reader = seer_for(account, ref), past_reader()
    found: dict[int, Judged] = {}
    for turn in past_turns.newest_turns(ref, count):
        with suppress(ReplayError):
            found[turn.number] = lore_verdicts(visible_verdicts(seer, turn, reader))
    return found


def lore_verdicts(verdicts: Iterable[Verdict]) -> Judged:
    """Return the decisions on each lore entry, in the order of the stages."""
    found: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        if verdict.item.startswith("lore:"):
            found.setdefault(verdict.item, []).append(verdict)
    return found


def verdict_item(book: str, uid: str) -> str:
    """Return the name of a book's entry in decisions."""
    return f"lore:{book}#{uid}"


def usual_npc(name: str) -> str:
    """Return the NPC to show first: one the book is assigned to, else the one that spoke last."""
    attached = [one.ref for one in lorebooks.LOREBOOKS.assigned_to(name) if one.kind == "npc"]
    newest = past_turns.newest_of_all(1)
    return attached[0] if attached else npc_of(newest[0].npc_ref) if newest else ""


def _used(rows: Iterable[_Row]) -> Iterator[tuple[str, str]]:
    """Yield the letters that occur in these rows, with their meanings."""
    there = {cell for row in rows for cell in row.cells}
    return ((letter, words) for letter, words in LETTERS.items() if letter in there)
