"""Unmatched entries: verdicts on those that nothing in the conversation concerned.

In a large book that is nearly all of them, turn after turn the same. Their verdicts are made once
for a book and a scan depth, and told in bulk: which entries share which reason.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

from evennia_ai.lorebook.activation.active_books import ActiveBook
from evennia_ai.lorebook.activation.judging import PassView, judge
from evennia_ai.lorebook.activation.timers import NO_STATE, Clock, Timers
from evennia_ai.lorebook.scan.window import Scan, Window
from evennia_ai.prompt.history import History
from evennia_ai.prompt.memo import Slot
from evennia_ai.prompt.trace import Verdict

_NOTHING: Final = Scan(history=History())
# Widened scans have many depths, and a large book has many verdicts.
_MOST_KEPT: Final = 16
_Made = TypeVar("_Made")
# By scan depth, whether there is recursion, and how many patterns cannot run.
_State = tuple[int, bool, int]


@dataclass(frozen=True, slots=True)
class Unmatched:
    """The entries of one book that are silent for one reason.

    `uids` names them in short: ranges of numbers, then the others as a JSON list, as in
    `0-41,43;["gate"]`. An entry that has a verdict of its own may be among them; its own counts.
    """

    book: str
    reason: str
    uids: str

    def labels(self) -> Iterator[str]:
        """The labels of the entries."""
        return (f"{self.book}#{uid}" for uid in unpacked(self.uids))


_VERDICTS: Final = Slot[dict[_State, list[Verdict]]]("verdicts on unmatched entries")
_UNMATCHED: Final = Slot[dict[_State, tuple[Unmatched, ...]]]("unmatched entries")


def unmatched_verdicts(book: ActiveBook) -> list[Verdict]:
    """The verdict on each entry of the book where nothing concerns it; made once, to be copied."""
    return _once(book, _VERDICTS, _verdicts)


def unmatched_of(book: ActiveBook) -> tuple[Unmatched, ...]:
    """The same in bulk; made once."""
    return _once(book, _UNMATCHED, _unmatched)


def _once(
    book: ActiveBook, slot: Slot[dict[_State, _Made]], make: Callable[[ActiveBook], _Made]
) -> _Made:
    """What `make` gives, kept with the index for the scan depths that were asked for last."""
    known = book.key_index.memo.setdefault(slot, {})
    state = (book.seen, book.recursive, book.key_index.troubles)
    if state not in known:
        if len(known) >= _MOST_KEPT:
            known.clear()
        known[state] = make(book)
    return known[state]


def _verdicts(book: ActiveBook) -> list[Verdict]:
    return [
        Verdict(stage="activate", item=f"lore:{label}", kept=False, reason=reason)
        for label, reason in zip(book.labels, _reasons(book), strict=True)
    ]


def _unmatched(book: ActiveBook) -> tuple[Unmatched, ...]:
    by_reason: dict[str, list[str]] = {}
    for entry, reason in zip(book.entries, _reasons(book), strict=True):
        by_reason.setdefault(reason, []).append(entry.uid)
    return tuple(
        Unmatched(book.lorebook.label, reason, packed(uids)) for reason, uids in by_reason.items()
    )


def packed(uids: Iterable[str]) -> str:
    """Many uids as one short text."""
    named: list[str] = []
    ranges: list[list[int]] = []
    for uid in uids:
        if not _is_number(uid):
            named.append(uid)
        elif ranges and ranges[-1][1] + 1 == int(uid):
            ranges[-1][1] += 1
        else:
            ranges.append([int(uid), int(uid)])
    numbers = ",".join(f"{a}-{b}" if a < b else str(a) for a, b in ranges)
    return f"{numbers};{json.dumps(named)}" if named else numbers


def unpacked(text: str) -> Iterator[str]:
    """The uids that `packed` took."""
    numbers, _, named = text.partition(";")
    for part in numbers.split(",") if numbers else ():
        first, _, last = part.partition("-")
        yield from map(str, range(int(first), int(last or first) + 1))
    if named:
        yield from json.loads(named)


def _is_number(uid: str) -> bool:
    return uid.isascii() and uid.isdecimal() and (uid == "0" or uid[0] != "0") and len(uid) < 18


def _reasons(book: ActiveBook) -> list[str]:
    view = PassView(
        window=Window(_NOTHING, book.key_index, of=("unmatched",), include_names=False),
        judged={},
        kind="first",
        level=0,
        depth=book.seen,
        recursive=False,
        sees_fed=book.recursive,
        rules=book.rules,
        timers=Timers(NO_STATE, clock=Clock(), rules=book.rules, entry_of=lambda _: None),
        facts={},
        replies=0,
    )
    found = zip(book.entries, book.key_index.entry_keys, book.identities, strict=True)
    return [
        str(judge(entry, keys, view, identity=identity).reason) for entry, keys, identity in found
    ]
