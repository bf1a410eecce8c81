"""The keys of the entries of a book, as numbers of its table of keys and as texts for reasons.

Of a long book few entries are ever asked for, so most of this is made when it is.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from evennia_ai.engine.lorebook.entry import (
    NO_GATES,
    NO_GROUPS,
    NO_RECURSION,
    NO_TIMING,
    LoreEntry,
)
from evennia_ai.engine.lorebook.scan.regex.pattern import Pattern
from evennia_ai.engine.prompt.memo import typed_frozen

# Numbers that stand for no key of the table: one that is always there, one that never is.
ALWAYS: Final = -1
NEVER: Final = -2


@typed_frozen
class EntryKeys:
    """The keys of one entry by number, and as texts for reasons."""

    primary: tuple[int, ...] = ()
    texts: tuple[str, ...] = ()
    secondary: tuple[int, ...] = ()
    secondary_texts: tuple[str, ...] = ()
    additional: tuple[tuple[int, ...], ...] = ()
    excluded: tuple[int, ...] = ()
    refused: str = ""
    """Which of its keys can never be found, and why."""
    scored: tuple[int, ...] = ()
    """Those that count where a group takes the member with the most."""
    scored_secondary: tuple[int, ...] = ()
    patterns: tuple[Pattern, ...] = ()
    barred: bool = False
    """Whether it has none that could wake it."""
    keys_decide: bool = False
    """Whether nothing else is to be asked."""
    hidden: str = ""
    """What its text hides for recursion alone, each key on a line of its own."""

    @property
    def numbers(self) -> Iterator[int]:
        """The numbers of all its keys."""
        yield from self.primary
        yield from self.secondary
        for line in self.additional:
            yield from line
        yield from self.excluded


def keys_decide(entry: LoreEntry) -> bool:
    """Whether the entry's keys alone say whether it is a candidate, once it has any."""
    timing, recursion = entry.timing, entry.recursion
    return not (
        entry.constant
        or entry.conditions
        or (entry.secondary_keys and entry.selective)
        or (entry.grouping is not NO_GROUPS and entry.grouping.names)
        or (timing is not NO_TIMING and (timing.delay or timing.cooldown))
        or (entry.gates is not NO_GATES and entry.gates != NO_GATES)
        or (recursion is not NO_RECURSION and (recursion.delay_level or recursion.excluded))
    )


class BookKeys(NamedTuple):
    """The keys of all entries of a book."""

    made: dict[int, EntryKeys]
    """By its index those of each entry that is not `plain`; the others can be made at any time."""
    owners: dict[int, tuple[int, ...]]
    """Which entries a key may wake."""
    plain: Sequence[int]
    """The entries whose keys are words and phrases, of which flags say how they are looked for."""
