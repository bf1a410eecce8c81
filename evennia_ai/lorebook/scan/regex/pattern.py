"""Keys that are regular expressions, in the dialect of JavaScript (Card V3, `use_regex`).

`/body/flags`, or the bare body. A pattern is read and checked first; what comes through is run by
the package `regex`, which can be stopped, behind a text that each match must contain.

A pattern has a time limit of its own, and thousands of them that stay just below it would still
keep the game waiting. So each message has a share of time for all patterns together, which depends
on its age alone: what somebody wrote never takes time from what others did, and whatever is written
in however many messages, all shares together stay below a second. A pattern that goes beyond its
limit is given up for that text alone. What is found then depends on the machine; no book that
anybody plays with comes near.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from time import thread_time
from typing import Any, Final

import regex

from evennia_ai.lorebook.scan.regex import BrokenPatternError, UnsupportedPatternError
from evennia_ai.lorebook.scan.regex.chars import LAST, SURROGATES, CharSet
from evennia_ai.lorebook.scan.regex.escapes import Flags
from evennia_ai.lorebook.scan.regex.parsing import parse
from evennia_ai.lorebook.scan.regex.tree import (
    Chain,
    Chars,
    Edge,
    Group,
    Look,
    Node,
    Repeat,
    WordEdge,
    in_points,
    in_units,
    walk,
    write,
)

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


_DELIMITED: Final = re.compile(r"/(.+)/([dgimsuvy]*)", re.DOTALL)
_OPEN_SLASH: Final = re.compile(r"(?<!\\)/")
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


def delimited(written: str) -> str:
    """A pattern in the form `/body/flags`: as it is where it has it, else between slashes."""
    return written if is_delimited(written) else "/" + _OPEN_SLASH.sub(r"\/", written) + "/"


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


_MOST_ALIKE: Final = 4


# Its small letter depends on its neighbours.
_SIGMA: Final = "Σ"


def required(tree: Node) -> str:
    """The longest text, in lower case, that every match must contain; "" where there is none.

    A character may be part of it only if all that the pattern takes in its place have one and the
    same small letter: an `s` that also means the long s does not, and ends the run.
    """
    return max(_runs(tree), key=len, default="")


def _runs(tree: Node) -> list[str]:
    """The texts that must all be there."""
    runs = [""]
    for node in _flat(tree):
        match node:
            case Chars(chars=chars):
                letter = _letter(chars)
                runs[-1:] = [runs[-1] + letter] if letter else [runs[-1], ""]
            case Repeat(body=body, least=least) if least:
                runs += [*_runs(body), ""]
            case Look(body=body, negative=False):
                runs += [*_runs(body), ""]
            case Edge() | WordEdge():
                pass
            case _:
                runs.append("")
    return runs


def _flat(tree: Node) -> list[Node]:
    """The nodes that follow one another, groups opened."""
    match tree:
        case Chain(parts=parts):
            return [node for part in parts for node in _flat(part)]
        case Group(body=body):
            return _flat(body)
        case _:
            return [tree]


def _letter(chars: CharSet) -> str:
    """The small letter of all members, "" where they have several."""
    if chars.negated or chars.properties:
        return ""
    if sum(last - first + 1 for first, last in chars.ranges) > _MOST_ALIKE:
        return ""
    members = [chr(code) for first, last in chars.ranges for code in range(first, last + 1)]
    letters = {member.lower() for member in members}
    if len(letters) != 1 or _SIGMA in members:
        return ""
    return (
        "" if any(SURROGATES[0] <= ord(one) <= SURROGATES[1] for one in members) else letters.pop()
    )
