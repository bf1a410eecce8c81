"""Followed: the candidates that keys alone wake, kept from turn to turn in one conversation.

A turn judges only those whose keys stand elsewhere than in the turn before.
"""

from collections.abc import Mapping

from evennia_ai.engine.lorebook.activation.candidate import PLACE, Candidate, Judgement
from evennia_ai.engine.lorebook.entry import LoreEntry
from evennia_ai.engine.lorebook.scan.entry_keys import EntryKeys
from evennia_ai.engine.lorebook.scan.hit_cache import FoundKey
from evennia_ai.engine.lorebook.scan.window import Window


def decided_by_keys(entry: LoreEntry, keys: EntryKeys) -> bool:
    """Whether nothing but keys in what all entries of its book see wakes this one."""
    return (
        keys.keys_decide
        and not keys.patterns
        and min(keys.primary) >= 0
        and entry.scan_depth is None
        and not entry.sources
        and not entry.timing.sticky
        and not entry.template.rolls
    )


class WokenByKeys:
    """The candidates that nothing but a key of theirs wakes in one pass, kept from turn to turn.

    Each stands in the first pass that wakes it. `others` have a key there, too, and are asked for
    more than that. Entries are named by their index; what is `stale` is to be judged again.
    """

    __slots__ = ("_has_newcomers", "candidates", "judgements", "others", "seen", "stale", "works")

    def __init__(self) -> None:
        self.judgements: dict[int, Judgement] = {}
        self.candidates: dict[int, Candidate] = {}
        self.others: set[int] = set()
        self.stale: set[int] = set()
        self.works: dict[int, int] = {}
        """The work of the candidates that have macros."""
        self._has_newcomers = False
        self.seen: Mapping[int, FoundKey] | None = None
        """What woke them beside the messages of the history: None before the first turn."""

    def changed(self, window: Window) -> set[int]:
        """The keys that stand elsewhere in the conversation than in the turn before."""
        newest, changed = window.newest, window.hits.changed
        elsewhere = window.standing() if self.seen is None else {*changed, *newest, *self.seen}
        changed.clear()
        self.seen = newest
        return elsewhere

    def newly_fed(self, window: Window) -> set[int]:
        """The keys that stand in other texts of entries than in the turn before."""
        before, fed = self.seen or {}, window.fed
        self.seen = fed
        return set() if before is fed else {number for number, _ in before.items() ^ fed.items()}

    def put(self, index: int, judgement: Judgement, candidate: Candidate | None) -> None:
        """An entry was judged; one that is no candidate, or has no text, is asked by itself."""
        if judgement.is_candidate and candidate is not None:
            self._has_newcomers |= index not in self.candidates
            self.judgements[index] = judgement
            self.candidates[index] = candidate
            if candidate.work:
                self.works[index] = candidate.work
            else:
                self.works.pop(index, None)
            self.others.discard(index)
        else:
            self.drop(index)
            self.others.add(index)

    def sort_in_newcomers(self) -> None:
        """Let the candidates stand as they are asked: what is nearly sorted is sorted soon."""
        if self._has_newcomers:
            ordered = sorted(self.candidates.values(), key=PLACE)
            self.candidates = {one.entry.index: one for one in ordered}
            self._has_newcomers = False

    def drop(self, index: int) -> None:
        """No key of an entry is there any more."""
        self.judgements.pop(index, None)
        self.candidates.pop(index, None)
        self.works.pop(index, None)
        self.others.discard(index)


class Followed:
    """What was made of a book's keys in one conversation, pass for pass, and what it was made for.

    `read` are the values that its entries' texts were made with.
    """

    __slots__ = ("made_for", "passes", "read")

    def __init__(self, made_for: object) -> None:
        self.made_for = made_for
        self.passes: list[WokenByKeys] = []
        self.read: dict[str, str | None] = {}
