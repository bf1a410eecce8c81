"""Keys that are regular expressions, in the dialect of JavaScript (Card V3, `use_regex`).

A key is written as `/body/flags`, or as the body only. It is parsed and checked first. Then PCRE2
searches for it. A text is skipped if it lacks the literal text that every match must contain.

PCRE2 counts its steps and stops at a limit. So the matches depend on the pattern and the text,
never on the speed of the machine. If a search reaches the limit, it is given up for that text only.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pcre2

from evennia_ai.engine.lorebook.scan.regex import BrokenPatternError, UnsupportedPatternError
from evennia_ai.engine.lorebook.scan.regex.chars import LAST, CharSet
from evennia_ai.engine.lorebook.scan.regex.parsing import parse_flags, parse_pattern
from evennia_ai.engine.lorebook.scan.regex.tree import (
    Backreference,
    Chain,
    Chars,
    Group,
    LineAnchor,
    Lookaround,
    Node,
    Repeat,
    WordBoundary,
    walk_nodes,
)
from evennia_ai.engine.lorebook.scan.regex.units import (
    SURROGATES,
    to_code_points,
    to_utf16_units,
    without_surrogates,
)
from evennia_ai.engine.lorebook.scan.regex.writing import uncounted_characters, write_search

_DELIMITED: Final = re.compile(r"/(.+)/([dgimsuvy]*)", re.DOTALL)
_OPEN_SLASH: Final = re.compile(r"(?<!\\)/")
_UNESCAPED_SLASH: Final = re.compile(r"(?:^|[^\\])/")


def has_slashes(written: str) -> bool:
    """True if a text has the form `/body/flags`, with all slashes in the body escaped."""
    return _split(written) is not None


def with_slashes(written: str) -> str:
    """Return a regular expression as `/body/flags`, adding slashes if it has none."""
    return written if has_slashes(written) else "/" + _OPEN_SLASH.sub(r"\/", written) + "/"


def _split(written: str) -> tuple[str, str] | None:
    """Split `/body/flags` into body and flags; None if the text has another form.

    This follows SillyTavern: a slash after any backslash counts as escaped, and the first such
    backslash is removed.
    """
    found = _DELIMITED.fullmatch(written)
    if found is None or _UNESCAPED_SLASH.search(found[1]):
        return None
    return found[1].replace("\\/", "/", 1), found[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The reason why a text cannot be used as a regular expression."""

    reason: str
    is_broken: bool
    """True if JavaScript refuses the text, too. Then a key that only looks like a regular
    expression is searched as an ordinary key."""


def read_pattern(written: str) -> "Pattern | Refused":
    """Return a key as a regular expression, or the reason why it cannot be one."""
    body, letters = _split(written) or (written, "")
    if not body:
        return Refused(reason="is not a regular expression: it is empty", is_broken=True)
    try:
        flags = parse_flags(letters)
        pattern = Pattern(written, parse_pattern(body, flags), unicode=flags.unicode)
    except BrokenPatternError as error:
        return Refused(reason=f"is not a regular expression: {error}", is_broken=True)
    except UnsupportedPatternError as error:
        return Refused(reason=f"is not supported: {error}", is_broken=False)
    if pattern.problem:
        return Refused(reason=pattern.problem, is_broken=False)
    return pattern


STEP_LIMITS: Final = (1 << 9, 1 << 11, 1 << 13, 1 << 15, 1 << 17)
"""The limits of steps for a search. A pattern is searched with the first limit, then with each
larger one until the search ends."""

MOST_SEARCHED: Final = 20_000
"""The number of characters of a text that are searched for regular expressions."""

# PCRE2's error code for a search that reached its limit of steps (`LIMIT_MATCH`).
_STEPS_EXCEEDED: Final = -47
_MEMORY_KIBIBYTES: Final = 8192
# Walking over this many characters takes about as long as one step.
_CHARACTERS_A_STEP: Final = 64
# Characters that are one in Python, but in JavaScript half of a surrogate pair or a whole pair
_HALVES: Final = CharSet(ranges=(SURROGATES, (0x10000, LAST)))


class StepsExceededError(Exception):
    """The search for a regular expression that did not end within its limit of steps."""


class OutOfMemoryError(Exception):
    """The search for a regular expression that needed more memory than allowed."""


class Pattern:
    """A compiled regular expression, ready to search texts."""

    __slots__ = (
        "_compiled",
        "_refers_back",
        "_sees_halves",
        "_uncounted",
        "_written_search",
        "literal",
        "problem",
        "written",
    )

    def __init__(self, written: str, tree: Node, *, unicode: bool) -> None:
        """Prepare the search, or raise UnsupportedPatternError if PCRE2 cannot do it."""
        nodes = list(walk_nodes(tree))
        sets = [node.chars for node in nodes if isinstance(node, Chars)]
        self.written = written
        # Every matching text contains this literal once it is lower-cased, so a search may skip
        # texts without it.
        self.literal = required_literal(tree)
        # The reason why the pattern can run in no text at all, "" if it can.
        self.problem = ""
        # True if the pattern can match one half of a surrogate pair, or the place between both
        # halves. Then texts are searched as UTF-16 units, like in JavaScript.
        self._sees_halves = not unicode and (
            any(chars.overlaps(_HALVES) for chars in sets)
            or any(isinstance(node, WordBoundary) and node.negated for node in nodes)
        )
        self._refers_back = any(isinstance(node, Backreference) for node in nodes)
        self._uncounted = uncounted_characters(tree)
        self._written_search = write_search(tree)
        self._compiled: dict[int, Any] = {}
        if any(chars.properties for chars in sets):
            self.can_run()  # compile at once: only PCRE2 can say whether a script name exists

    def __repr__(self) -> str:
        return f"Pattern({self.written!r})"

    @property
    def trouble(self) -> str:
        """The reason why the regular expression cannot run, "" if it can."""
        return f"pattern '{self.written[:40]}' {self.problem}" if self.problem else ""

    def can_run(self) -> bool:
        """True if PCRE2 accepts the regular expression. The first call compiles it (slow)."""
        if not self.problem and not self._compiled:
            try:
                self._compiled_with(STEP_LIMITS[0])
            except pcre2.PatternError as error:
                self.problem = f"is not supported: the engine refuses it: {error}"
        return not self.problem

    def search(self, text: str, *, steps: int = STEP_LIMITS[-1]) -> tuple[int, int] | None:
        """Return the span of the first match in code points, or None.

        Only the first `MOST_SEARCHED` characters are searched.

        Raises:
            StepsExceededError: The search takes more than `steps`.
            OutOfMemoryError: The search takes too much memory.
        """
        if not self.can_run():
            return None
        text = text[:MOST_SEARCHED]
        units = to_utf16_units(text) if self._sees_halves else text
        # A step that walks over many characters takes longer, so allow fewer steps then. The limit
        # is rounded to a power of 2, because each limit needs a compiled pattern of its own.
        walked = self._uncounted + (len(units) if self._refers_back else 0)
        limit = max(1, steps >> (walked // _CHARACTERS_A_STEP).bit_length())
        try:
            found = self._compiled_with(limit).search(without_surrogates(units))
        except pcre2.LibraryError as error:
            if error.code == _STEPS_EXCEEDED:
                raise StepsExceededError from None
            raise OutOfMemoryError from error
        if found is None:
            return None
        start, end = found.span()
        return (start, end) if units is text else to_code_points(units, start, end)

    def _compiled_with(self, limit: int) -> Any:
        if limit not in self._compiled:
            options = f"(*NO_JIT)(*NO_AUTO_POSSESS)(*LIMIT_MATCH={limit})"
            options += f"(*LIMIT_HEAP={_MEMORY_KIBIBYTES})"
            self._compiled[limit] = pcre2.compile(
                options + self._written_search, flags=pcre2.ASCII, jit=False
            )
        return self._compiled[limit]


_MOST_ALIKE: Final = 4
# The small letter of this capital depends on its neighbours, so no required literal contains it.
_SIGMA: Final = "Σ"


def required_literal(tree: Node) -> str:
    """Return the longest text, in lower case, that every match must contain; "" if there is none.

    A place of the pattern adds a character to that text only if all characters that may match there
    have the same small letter. For example, an `s` that also matches the long s ends the text.
    """
    runs = [""]
    _add_runs(tree, runs)
    return max(runs, key=len)


def _add_runs(node: Node, runs: list[str]) -> None:
    """Add the literal texts that a node requires to `runs`. The last of them may be extended."""
    match node:
        case Chain(parts=parts):
            for part in parts:
                _add_runs(part, runs)
        case Group(body=body):
            _add_runs(body, runs)
        case Chars(chars=chars):
            letter = _small_letter(chars)
            runs[-1] += letter
            if not letter:
                runs.append("")
        case LineAnchor() | WordBoundary():
            pass
        case _:
            runs.append("")
            if (isinstance(node, Repeat) and node.least) or (
                isinstance(node, Lookaround) and not node.negative
            ):
                _add_runs(node.body, runs)
            runs.append("")


def _small_letter(chars: CharSet) -> str:
    """Return the small letter that all characters of the set share; "" if they differ."""
    if chars.negated or chars.properties:
        return ""
    if sum(last - first + 1 for first, last in chars.ranges) > _MOST_ALIKE:
        return ""
    members = [chr(code) for first, last in chars.ranges for code in range(first, last + 1)]
    letters = {member.lower() for member in members}
    if len(letters) != 1 or _SIGMA in members:
        return ""
    return "" if any("\ud800" <= member <= "\udfff" for member in members) else letters.pop()


TEXT_STEPS: Final = 1 << 19
"""The most steps that all regular expressions of a lorebook may take in one text."""

TURN_STEPS: Final = 1 << 20
"""The most steps that all regular expressions may take in all messages of a turn together.

The same number applies once more to all other texts of the turn.
"""

NO_STEPS: Final = "the other patterns had used up the steps"


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternHits:
    """The result of searching one text for several regular expressions."""

    places: Mapping[Pattern, tuple[int, int]]
    """The first match of each regular expression that matches: start and end in code points."""
    given_up: Mapping[Pattern, str]
    """Why the search was given up, by regular expression."""
    steps: int
    """The sum of the steps that the searches were allowed to take."""
    is_whole: bool
    """False if the text is so long that its end was not searched."""


def search_patterns(
    text: str, patterns: Iterable[Pattern], *, steps: int = TEXT_STEPS
) -> PatternHits:
    """Search a text for regular expressions. All searches together may take at most `steps`.

    All patterns are searched with the smallest limit before any is searched with a larger one. So
    a slow pattern takes no steps away from fast patterns.
    """
    lowered = text.lower()
    pending = [one for one in patterns if one.literal in lowered and one.can_run()]
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
