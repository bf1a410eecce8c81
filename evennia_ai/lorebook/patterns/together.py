"""The patterns of one book in one text and in one turn: each at most once, in bounded time.

A pattern has a time limit of its own, and thousands of them that stay just below it would still
keep the game waiting. So each message has a share of time for all patterns together, which depends
on its age alone: what somebody wrote never takes time from what others did, and whatever is written
in however many messages, all shares together stay below a second. A pattern that goes beyond its
limit is given up for that text alone. What is found then depends on the machine; no book that
anybody plays with comes near.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from time import thread_time
from typing import Final

from evennia_ai.lorebook.patterns.engines import LIMIT_SECONDS
from evennia_ai.lorebook.patterns.pattern import Pattern, PatternGivenUpError

TEXT_SECONDS: Final = 0.05
"""For all patterns in one text."""

TURN_SECONDS: Final = 0.25
"""For all texts of one turn that are no message: notes, sources, texts of active entries."""

NEWEST: Final = 4
"""So many messages have the whole of it; older ones have less by the square of their age."""

LEAST_SECONDS: Final = 0.0002
NO_TIME: Final = "there was no time left for it beside the other patterns"


class Patience:
    """How long the patterns of one book may go on in one turn, of `books` that have any."""

    __slots__ = ("_books", "_left")

    def __init__(self, *, books: int = 1) -> None:
        self._books = max(1, books)
        self._left = TURN_SECONDS / self._books

    def with_message(self, age: int) -> float:
        """Seconds for the message of this age, the newest being 0."""
        share = min(1.0, (NEWEST / (age + 1)) ** 2)
        return max(LEAST_SECONDS, TEXT_SECONDS * share) / self._books

    @contextmanager
    def with_text(self) -> Iterator[float]:
        """Seconds for a text that is no message; what is used of them is gone."""
        began = thread_time()
        yield max(0.0, min(TEXT_SECONDS, self._left))
        self._left -= thread_time() - began


class SearchedText:
    """A text in which patterns are looked for, as they are asked for.

    `given_up` says why of each pattern that was not looked for to the end.
    """

    __slots__ = ("_found", "_left", "_lowered", "_out_of_time", "_over_limit", "text")

    def __init__(self, text: str, *, seconds: float = TEXT_SECONDS) -> None:
        self.text = text
        self._lowered = text.lower()
        self._left = seconds
        self._found: dict[Pattern, tuple[int, int] | None] = {}
        self._over_limit: dict[Pattern, str] = {}
        self._out_of_time: dict[Pattern, str] = {}

    @property
    def is_whole(self) -> bool:
        """Whether there was time for every pattern; one that went beyond its limit had its."""
        return not self._out_of_time

    @property
    def given_up(self) -> Mapping[Pattern, str]:
        return {**self._over_limit, **self._out_of_time}

    def go_on(self, *, seconds: float) -> None:
        """Allow more time for the patterns that had none."""
        self._left = seconds
        self._out_of_time = {}

    def place(self, pattern: Pattern) -> tuple[int, int] | None:
        """The span of the first match of a pattern; None also where it was given up."""
        if pattern in self._found or pattern in self._over_limit:
            return self._found.get(pattern)
        if pattern.literal not in self._lowered or not pattern.prepared():
            return None
        if self._left <= 0:
            self._out_of_time[pattern] = NO_TIME
            return None
        return self._searched(pattern)

    def _searched(self, pattern: Pattern) -> tuple[int, int] | None:
        seconds = min(LIMIT_SECONDS, self._left)
        began = thread_time()
        try:
            found = self._found[pattern] = pattern.search(self.text, seconds=seconds)
        except PatternGivenUpError as given_up:
            found = None
            if seconds < LIMIT_SECONDS:
                self._out_of_time[pattern] = NO_TIME
            else:
                self._over_limit[pattern] = given_up.reason
        self._left -= thread_time() - began
        return found
