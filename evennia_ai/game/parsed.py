"""Parsed: what was read from texts of the store, kept while there is room for it.

Parsed, a card or a book takes many times the memory of its text, and every change of its grants is
another version of it. So what is kept is bounded by the length of the texts too.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Final, Generic, Protocol, TypeVar

MOST_CHARACTERS: Final = 32_000_000
"""Characters of the texts whose values are kept; parsed they take ten times as much memory."""


class Text(Hashable, Protocol):
    """What is parsed: one version of a text."""

    @property
    def source(self) -> str: ...


T = TypeVar("T", bound=Text)
V = TypeVar("V")


class Parsed(Generic[T, V]):
    """Values by their text, each parsed when it is first asked for, those used longest ago dropped.

    The newest one is kept however long it is. Threads may share it.
    """

    def __init__(
        self, parse: Callable[[T], V], *, most: int, most_characters: int = MOST_CHARACTERS
    ) -> None:
        self._parse = parse
        self._most = most
        self._most_characters = most_characters
        self._kept: OrderedDict[T, V] = OrderedDict()
        self._characters = 0
        self._lock = Lock()

    def __call__(self, text: T) -> V:
        """The value of the text; what `parse` raises is raised each time."""
        with self._lock:
            if text in self._kept:
                self._kept.move_to_end(text)
                return self._kept[text]
        value = self._parse(text)  # not inside the lock: it may take seconds
        with self._lock:
            return self._keep(text, value)

    def _keep(self, text: T, value: V) -> V:
        """Keep the value, or give the one that another thread has kept meanwhile."""
        if text in self._kept:
            return self._kept[text]
        self._kept[text] = value
        self._characters += len(text.source)
        while len(self._kept) > 1 and self._is_full():
            dropped, _ = self._kept.popitem(last=False)
            self._characters -= len(dropped.source)
        return value

    def _is_full(self) -> bool:
        return len(self._kept) > self._most or self._characters > self._most_characters
