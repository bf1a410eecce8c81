"""The engine that searches: `regex`, which can be stopped, as Python's own `re` cannot."""

from typing import Any, Final

import regex

from evennia_ai.lorebook.patterns.source import UnsupportedPatternError
from evennia_ai.lorebook.patterns.tree import Chars, Node, walk
from evennia_ai.lorebook.patterns.writing import write

LIMIT_SECONDS: Final = 0.005


class Search:
    """A search for one pattern; what runs is compiled when it is first needed, for that is slow."""

    __slots__ = ("_compiled", "_written")

    def __init__(self, tree: Node) -> None:
        self._written = write(tree)
        self._compiled: Any = None
        if any(isinstance(node, Chars) and node.chars.properties for node in walk(tree)):
            self.prepare()  # the engine alone knows which scripts there are

    def __call__(self, text: str, seconds: float, /) -> tuple[int, int] | None:
        """The span of the first match; TimeoutError where that takes too long."""
        self.prepare()
        found = self._compiled.search(text, timeout=seconds)
        return None if found is None else found.span()

    def prepare(self) -> None:
        """Compile it; UnsupportedPatternError where the engine does not take it."""
        if self._compiled is None:
            try:
                self._compiled = regex.compile(self._written, cache_pattern=False)
            except (regex.error, ValueError, OverflowError, RecursionError) as error:
                raise UnsupportedPatternError(f"the engine refuses it: {error}") from error
