"""Keys that are regular expressions, in the dialect of JavaScript (Card V3, `use_regex`).

`/body/flags`, or the bare body. A pattern is read and checked here first; what comes through is run
by an engine under a time limit, behind a text that each match must contain.
"""

import re
from dataclasses import dataclass
from typing import Final

from evennia_ai.lorebook.patterns.charsets import LAST, SURROGATES, CharSet
from evennia_ai.lorebook.patterns.engines import LIMIT_SECONDS, Search
from evennia_ai.lorebook.patterns.literals import required
from evennia_ai.lorebook.patterns.parsing import parse
from evennia_ai.lorebook.patterns.source import (
    BrokenPatternError,
    Flags,
    UnsupportedPatternError,
)
from evennia_ai.lorebook.patterns.tree import Chars, Node, WordEdge, walk
from evennia_ai.lorebook.patterns.units import in_points, in_units

_DELIMITED: Final = re.compile(r"/(.+)/([dgimsuvy]*)", re.DOTALL)
_UNESCAPED_SLASH: Final = re.compile(r"(?:^|[^\\])/")
# An engine looks at the time between steps, and one step may run over the whole text.
MOST_SEARCHED: Final = 20_000
# What is one character in Python and is, or has, a half of one in JavaScript.
_HALVES: Final = CharSet(ranges=(SURROGATES, (0x10000, LAST)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Why a text is no pattern that runs here.

    `is_broken`: it is none in JavaScript either, so a key that only looks like one is an ordinary
    key. Otherwise it is a fine pattern that cannot run here.
    """

    reason: str
    is_broken: bool


class PatternGivenUpError(Exception):
    """A search went beyond its limits; says nothing about other texts."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Pattern:
    """A pattern that is ready to search.

    `literal` stands in every lower-cased text that matches, "" where nothing is known to.
    `problem` says why the pattern runs in no text at all, "" while it does: that depends on the
    pattern alone, never on a text.
    """

    __slots__ = ("_is_prepared", "_search", "_sees_halves", "literal", "problem", "written")

    def __init__(self, written: str, *, literal: str, search: Search, sees_halves: bool) -> None:
        self.written = written
        self.literal = literal
        self.problem = ""
        self._search = search
        self._sees_halves = sees_halves
        self._is_prepared = False

    def __repr__(self) -> str:
        return f"Pattern({self.written!r})"

    @property
    def trouble(self) -> str:
        """What is wrong with the pattern, "" where nothing is."""
        return f"pattern '{self.written[:40]}' {self.problem}" if self.problem else ""

    def prepared(self) -> bool:
        """Make ready what is slow to make and made once; whether the pattern runs at all."""
        if not self._is_prepared:
            self._is_prepared = True
            try:
                self._search.prepare()
            except UnsupportedPatternError as error:
                self.problem = f"cannot run here: {error}"
        return not self.problem

    def search(self, text: str, *, seconds: float = LIMIT_SECONDS) -> tuple[int, int] | None:
        """The span of the first match in code points; of a long text the beginning is searched.

        Raises PatternGivenUpError where it takes longer than `seconds`, or too much memory.
        """
        if not self.prepared():
            return None
        text = text[:MOST_SEARCHED]
        units = in_units(text) if self._sees_halves else text
        try:
            span = self._search(units, seconds)
        except TimeoutError:
            raise PatternGivenUpError(f"took longer than {seconds * 1000:g} ms") from None
        except (MemoryError, RecursionError):
            raise PatternGivenUpError("took too much memory") from None
        return span if span is None or units is text else in_points(units, *span)


def is_delimited(written: str) -> bool:
    """Whether a text has the form `/body/flags`; every slash inside must have a backslash."""
    return _parts(written) is not None


def read_pattern(written: str) -> Pattern | Refused:
    """The pattern of a key, `/body/flags` or else the bare body, or why there is none."""
    body, letters = _parts(written) or (written, "")
    if not body:
        return Refused(reason="is no regular expression: it is empty", is_broken=True)
    try:
        flags = _flags(letters)
        tree = parse(body, flags)
        search = Search(tree)
    except BrokenPatternError as error:
        return Refused(reason=f"is no regular expression: {error}", is_broken=True)
    except UnsupportedPatternError as error:
        return Refused(reason=f"cannot run here: {error}", is_broken=False)
    halves = not flags.unicode and _sees_halves(tree)
    return Pattern(written, literal=required(tree), search=search, sees_halves=halves)


def _parts(written: str) -> tuple[str, str] | None:
    """Body and flags of the delimited form.

    As SillyTavern reads it: a slash behind any backslash counts as escaped, and the first such
    backslash goes.
    """
    found = _DELIMITED.fullmatch(written)
    if found is None or _UNESCAPED_SLASH.search(found[1]):
        return None
    return found[1].replace("\\/", "/", 1), found[2]


def _flags(letters: str) -> Flags:
    if len(set(letters)) < len(letters):
        raise BrokenPatternError("a flag stands there twice")
    if "u" in letters and "v" in letters:
        raise BrokenPatternError("the flags u and v exclude each other")
    return Flags(
        ignore_case="i" in letters,
        multiline="m" in letters,
        dot_all="s" in letters,
        unicode="u" in letters or "v" in letters,
        sets="v" in letters,
        sticky="y" in letters,
    )


def _sees_halves(tree: Node) -> bool:
    """Whether half of a wide character can be matched, or the place between two halves."""
    return any(
        (isinstance(node, Chars) and node.chars.overlaps(_HALVES))
        or (isinstance(node, WordEdge) and node.negated)
        for node in walk(tree)
    )
