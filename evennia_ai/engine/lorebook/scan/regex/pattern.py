"""Keys that are regular expressions, in the dialect of JavaScript (Card V3, `use_regex`).

A key is `/body/flags`, or the bare body. It is parsed and checked first. PCRE2 then searches for
it, and only in texts that have the literal text which every match must contain.

PCRE2 counts its steps and stops at a limit. So what a pattern finds depends on the pattern and the
text, never on the machine. A search beyond the limit is given up for that text only.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import pcre2

from evennia_ai.engine.lorebook.scan.regex import BrokenPatternError, UnsupportedPatternError
from evennia_ai.engine.lorebook.scan.regex.chars import LAST, SURROGATES, CharSet
from evennia_ai.engine.lorebook.scan.regex.escapes import Flags
from evennia_ai.engine.lorebook.scan.regex.parsing import parse
from evennia_ai.engine.lorebook.scan.regex.tree import (
    Again,
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
    uncounted_characters,
    walk,
    without_surrogates,
    write_search,
)

STEP_LIMITS: Final = (1 << 9, 1 << 11, 1 << 13, 1 << 15, 1 << 17)
"""A pattern is searched with the first limit, then with each larger one until it has an answer."""

MOST_SEARCHED: Final = 20_000
"""Characters of a text that are searched."""

# The number of PCRE2 for a search that reached `LIMIT_MATCH`.
_STEPS_EXCEEDED: Final = -47
_MEMORY_KIBIBYTES: Final = 8192
# So many characters cost as much to walk over as one step.
_CHARACTERS_A_STEP: Final = 64


class StepsExceededError(Exception):
    """A search did not end within its steps."""


class OutOfMemoryError(Exception):
    """A search needed more memory than a pattern may have."""


class Search:
    """A search for one pattern; PCRE2 compiles it when it is first needed, because that is slow."""

    __slots__ = ("_compiled", "_refers_back", "_uncounted", "_written")

    def __init__(self, tree: Node) -> None:
        self._written = write_search(tree)
        self._uncounted = uncounted_characters(tree)
        self._refers_back = any(isinstance(node, Again) for node in walk(tree))
        self._compiled: dict[int, Any] = {}
        if any(isinstance(node, Chars) and node.chars.properties for node in walk(tree)):
            self.prepare()  # only the engine knows which scripts there are

    def __call__(self, text: str, steps: int, /) -> tuple[int, int] | None:
        """Return the span of the first match.

        Raises:
            StepsExceededError: The search takes more than `steps`.
            OutOfMemoryError: The search takes too much memory.
        """
        # A step costs more where it may walk over many characters, so there are fewer of them.
        # The limit is a power of 2, so that few limits are compiled.
        walked = self._uncounted + (len(text) if self._refers_back else 0)
        limit = max(1, steps >> (walked // _CHARACTERS_A_STEP).bit_length())
        try:
            found = self._compiled_with(limit).search(text)
        except pcre2.LibraryError as error:
            if error.code == _STEPS_EXCEEDED:
                raise StepsExceededError from None
            raise OutOfMemoryError from error
        return None if found is None else found.span()

    def prepare(self) -> None:
        """Compile the pattern; raise UnsupportedPatternError if PCRE2 refuses it."""
        self._compiled_with(STEP_LIMITS[0])

    def _compiled_with(self, limit: int) -> Any:
        if limit not in self._compiled:
            options = f"(*NO_JIT)(*NO_AUTO_POSSESS)(*LIMIT_MATCH={limit})"
            options += f"(*LIMIT_HEAP={_MEMORY_KIBIBYTES})"
            try:
                self._compiled[limit] = pcre2.compile(
                    options + self._written, flags=pcre2.ASCII, jit=False
                )
            except pcre2.PatternError as error:
                raise UnsupportedPatternError(f"the engine refuses it: {error}") from error
        return self._compiled[limit]


_DELIMITED: Final = re.compile(r"/(.+)/([dgimsuvy]*)", re.DOTALL)
_OPEN_SLASH: Final = re.compile(r"(?<!\\)/")
_UNESCAPED_SLASH: Final = re.compile(r"(?:^|[^\\])/")
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

    def search(self, text: str, *, steps: int = STEP_LIMITS[-1]) -> tuple[int, int] | None:
        """Return the span of the first match in code points; only the beginning is searched.

        Raises:
            StepsExceededError: The search takes more than `steps`.
            OutOfMemoryError: The search takes too much memory.
        """
        if not self.prepared():
            return None
        text = text[:MOST_SEARCHED]
        units = in_units(text) if self._sees_halves else text
        span = self._search(_searchable(units), steps)
        return span if span is None or units is text else in_points(units, *span)


@lru_cache(maxsize=4)
def _searchable(text: str) -> str:
    return without_surrogates(text)


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


TEXT_STEPS: Final = 1 << 19
"""For all patterns of a book in one text."""

TURN_STEPS: Final = 1 << 20
"""For all patterns in all messages of a turn, and as many in all its other texts."""

NO_STEPS: Final = "the other patterns had used up the steps"


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternHits:
    """What patterns found in one text."""

    places: Mapping[Pattern, tuple[int, int]]
    """The span of the first match of each pattern that has one, in code points."""
    given_up: Mapping[Pattern, str]
    """Why a pattern was not searched to the end."""
    steps: int
    """How many steps the searches were allowed."""
    is_whole: bool
    """False if the text is so long that its end was not searched."""


def search_patterns(
    text: str, patterns: Iterable[Pattern], *, steps: int = TEXT_STEPS
) -> PatternHits:
    """Search a text for patterns, with at most so many steps for all of them together.

    All patterns are searched with the smallest limit before any is searched with a larger one. So
    a slow pattern takes no steps from those that are quick.
    """
    lowered = text.lower()
    pending = [one for one in patterns if one.literal in lowered and one.prepared()]
    places: dict[Pattern, tuple[int, int]] = {}
    given_up: dict[Pattern, str] = {}
    used = 0
    for limit in STEP_LIMITS:
        unanswered: list[Pattern] = []
        for pattern in pending:
            if used + limit > steps:
                given_up[pattern] = NO_STEPS
                continue
            used += limit
            try:
                span = pattern.search(text, steps=limit)
            except StepsExceededError:
                unanswered.append(pattern)
            except OutOfMemoryError:
                given_up[pattern] = "took too much memory"
            else:
                if span is not None:
                    places[pattern] = span
        pending = unanswered
    given_up.update(dict.fromkeys(pending, f"took more than {STEP_LIMITS[-1]:,} steps"))
    return PatternHits(
        places=places, given_up=given_up, steps=used, is_whole=len(text) <= MOST_SEARCHED
    )


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
