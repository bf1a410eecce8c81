"""The patterns of one book in one text: each at most once, all of them in bounded time.

A pattern has a time limit of its own, and thousands of them that stay just below it would still
keep the game waiting. So what they take together is limited for each text, and a book that goes
beyond it again and again has its patterns switched off. As with the limit of one pattern, what is
found then depends on the machine; no book that anybody plays with comes near.
"""

from collections.abc import Iterable
from time import thread_time
from typing import Final

from evennia_ai.lorebook.patterns.pattern import Pattern

LIMIT_SECONDS: Final = 0.05
MOST_CUT: Final = 20
_TOGETHER: Final = f"the patterns of its book take longer than {LIMIT_SECONDS * 1000:g} ms together"
OFF: Final = f"{_TOGETHER}, {MOST_CUT} times by now"


class Patience:
    """How long the patterns of a book may go on; shared by all texts they are searched in."""

    __slots__ = ("_cut", "_patterns")

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        self._patterns = tuple(patterns)
        self._cut = 0

    @property
    def troubles(self) -> int:
        """How many of the patterns do not work as they should."""
        return sum(bool(pattern.trouble) for pattern in self._patterns)

    def cut_short(self) -> None:
        """A text was not searched to the end."""
        self._cut += 1
        if self._cut >= MOST_CUT:
            for pattern in self._patterns:
                pattern.problem = pattern.problem or OFF


class SearchedText:
    """A text in which patterns are looked for, as they are asked for."""

    __slots__ = ("_found", "_left", "_lowered", "_patience", "is_whole", "text")

    def __init__(self, text: str, patience: Patience) -> None:
        self.text = text
        self.is_whole = True  # no pattern was left out
        self._lowered = text.lower()
        self._patience = patience
        self._left = LIMIT_SECONDS
        self._found: dict[Pattern, tuple[int, int] | None] = {}

    def place(self, pattern: Pattern) -> tuple[int, int] | None:
        """The span of the first match of a pattern; None also where there was no time for it."""
        if pattern in self._found:
            return self._found[pattern]
        if pattern.problem or pattern.literal not in self._lowered:
            return None
        if self._left <= 0:
            self._leave_out(pattern)
            return None
        began = thread_time()
        found = self._found[pattern] = pattern.search(self.text, self._lowered)
        self._left -= thread_time() - began
        return found

    def _leave_out(self, pattern: Pattern) -> None:
        pattern.was_skipped = True
        if self.is_whole:
            self.is_whole = False
            self._patience.cut_short()
