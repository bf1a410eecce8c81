"""The engines that search: `regex`, which can be stopped, and Python's own `re`, which cannot.

`regex` comes with the extra `evennia-ai[regex]`. Without it only patterns of trusted books run, and
of those only the ones that cannot take long.
"""

import importlib
import importlib.util
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from evennia_ai.lorebook.patterns.charsets import CharSet, merged, others
from evennia_ai.lorebook.patterns.costs import reach
from evennia_ai.lorebook.patterns.properties import ranges_of
from evennia_ai.lorebook.patterns.source import UnsupportedPatternError
from evennia_ai.lorebook.patterns.tree import (
    Chain,
    Chars,
    Choice,
    Group,
    Look,
    Node,
    Repeat,
    walk,
)
from evennia_ai.lorebook.patterns.writing import write

LIMIT_SECONDS: Final = 0.005
EXTRA: Final = "needs the extra evennia-ai[regex]"


class Search(Protocol):
    """Searches texts for one pattern.

    `prepare` makes ready what is made once; UnsupportedPatternError where it turns out only now
    that the engine does not take the pattern. A call gives the span of the first match in a text;
    TimeoutError where that takes longer than so many seconds.
    """

    def prepare(self) -> None: ...

    def __call__(self, text: str, seconds: float, /) -> tuple[int, int] | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """One way to run patterns; `make` raises UnsupportedPatternError for what it cannot run."""

    name: str
    make: Callable[[Node], Search]
    only_trusted: bool


class _Stoppable:
    """A search by `regex`; what it runs is compiled when it is first needed, for that is slow."""

    __slots__ = ("_compiled", "_written")

    def __init__(self, written: str) -> None:
        self._written = written
        self._compiled: Any = None

    def __call__(self, text: str, seconds: float, /) -> tuple[int, int] | None:
        self.prepare()
        found = self._compiled.search(text, timeout=seconds)
        return None if found is None else found.span()

    def prepare(self) -> None:
        """Make the pattern of the engine; raises UnsupportedPatternError."""
        if self._compiled is None:
            module: Any = importlib.import_module("regex")
            try:
                self._compiled = module.compile(self._written, cache_pattern=False)
            except (module.error, ValueError, OverflowError, RecursionError) as error:
                raise UnsupportedPatternError(f"the engine refuses it: {error}") from error


class _Bounded:
    """A search by `re`, which nothing stops: it sees so many characters that it ends soon."""

    __slots__ = ("_characters", "_compiled")

    def __init__(self, compiled: re.Pattern[str], *, characters: int) -> None:
        self._compiled = compiled
        self._characters = characters

    def __call__(self, text: str, seconds: float, /) -> tuple[int, int] | None:
        found = self._compiled.search(text[: self._characters])
        return None if found is None else found.span()

    def prepare(self) -> None:
        """It was compiled when it was read."""


def _make_with_regex(tree: Node) -> Search:
    search = _Stoppable(write(tree))
    if any(isinstance(node, Chars) and node.chars.properties for node in walk(tree)):
        search.prepare()  # it alone knows which scripts there are
    return search


def _make_with_re(tree: Node) -> Search:
    write(tree)  # what cannot be written at all is told first: the extra would not help
    try:
        tree = _without_properties(tree)
        characters = reach(tree)
        compiled = re.compile(write(tree))
    except (UnsupportedPatternError, re.error, ValueError, OverflowError, RecursionError) as error:
        raise UnsupportedPatternError(f"{error}; it {EXTRA}") from error

    return _Bounded(compiled, characters=characters)


def _without_properties(node: Node) -> Node:
    """The tree with general categories written out as ranges of characters."""
    match node:
        case Chars(chars=chars):
            return Chars(chars=_spelled(chars))
        case Chain(parts=parts):
            return Chain(parts=tuple(map(_without_properties, parts)))
        case Choice(options=options):
            return Choice(options=tuple(map(_without_properties, options)))
        case Repeat(body=body) | Group(body=body) | Look(body=body):
            return replace(node, body=_without_properties(body))
        case _:
            return node


def _spelled(chars: CharSet) -> CharSet:
    ranges = list(chars.ranges)
    for one in chars.properties:
        if not one.category:
            raise UnsupportedPatternError(f"the property {one.name}")
        members = ranges_of(one.category)
        ranges += others(members) if one.negated else members
    return CharSet(ranges=merged(ranges), negated=chars.negated)


REGEX: Final = Engine(name="regex", make=_make_with_regex, only_trusted=False)
RE: Final = Engine(name="re", make=_make_with_re, only_trusted=True)
# The one that is used unless another is asked for.
INSTALLED: Final = REGEX if importlib.util.find_spec("regex") else RE
