"""The lore budget: which of the entries that are awake have room.

Constants come before matched entries, then high priority before low, then as in the file; entries
marked `@@ignore_on_max_context` come last of all. What does not fit is skipped and the next one is
tried, unless the rules say to stop.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from evennia_ai.lorebook.books import Lorebook
from evennia_ai.lorebook.entries import LoreEntry
from evennia_ai.lorebook.rules import ActivationRules
from evennia_ai.prompt.components import VOUCHED


@dataclass(frozen=True, slots=True)
class Awake:
    """An entry that its conditions let through, why, and its text; `rank` is the book's place."""

    rank: int
    book: Lorebook
    entry: LoreEntry
    reason: str
    text: str
    tokens: int


def over_budget(
    awake: Sequence[Awake], *, rules: ActivationRules, limit_tokens: int
) -> dict[int, str]:
    """For each entry that does not fit (by `id`) the reason.

    A book's own budget stands in place of the rules'; a book that nobody approved keeps to both.
    """
    room: dict[Lorebook | None, int] = {None: rules.budget(limit_tokens)}
    full: set[Lorebook | None] = set()
    over: dict[int, str] = {}
    for one in sorted(awake, key=_survival):
        purses = _purses(one.book)
        left = min(room.setdefault(purse, one.book.token_budget or 0) for purse in purses)
        if not full.isdisjoint(purses):
            over[id(one)] = "over the lore budget: an entry before it did not fit"
        elif one.tokens > left:
            over[id(one)] = f"over the lore budget: needs {one.tokens} tokens, {left} were left"
            full.update(purses if rules.overflow == "stop" else ())
        else:
            room.update({purse: room[purse] - one.tokens for purse in purses})
    return over


def _purses(book: Lorebook) -> tuple[Lorebook | None, ...]:
    """The budgets an entry of the book is paid from; None is the one of the rules."""
    if book.token_budget is None:
        return (None,)
    return (book,) if book.trust in VOUCHED else (book, None)


def _survival(one: Awake) -> tuple[bool, bool, float, int, int]:
    entry = one.entry
    return entry.first_to_go, not entry.constant, -entry.priority, one.rank, entry.index
