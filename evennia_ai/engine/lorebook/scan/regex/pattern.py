"""Keys that are regular expressions, in the dialect of JavaScript (Card V3, `use_regex`).

A key is written as `/body/flags`, or as its body only. It is parsed, checked, and searched with
PCRE2. Texts that lack the literal text that every match must contain are not searched.

PCRE2 counts its steps and stops at a limit. So the result depends only on the pattern and the text,
and never on the speed of the machine. A search that reaches the limit is given up for that text.
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
from evennia_ai.engine.lorebook.scan.regex.writing import (
    NO_GROUPS,
    uncounted_characters,
    write_search,
)

_DELIMITED: Final = re.compile(r"/(.+)/([dgimsuvy]*)", re.DOTALL)
_OPEN_SLASH: Final = re.compile(r"(?<!\\)/")
_UNESCAPED_SLASH: Final = re.compile(r"(?:^|[^\\])/")


def has_slashes(written: str) -> bool:
    """True if a text has the form `/body/flags`, with all slashes in the body escaped."""
    return _split(written) is not None


def with_slashes(written: str) -> str:
    """Return a regular expression as `/body/flags`; slashes are added if it has none."""
    return written if has_slashes(written) else "/" + _OPEN_SLASH.sub(r"\/", written) + "/"


def _split(written: str) -> tuple[str, str] | None:
    """Split `/body/flags` into body and flags; None if the text has another form.

    As in SillyTavern, a slash after any backslash counts as escaped, and only the first such
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
    """True if JavaScript refuses the text, too. Then a key that only looks like `/body/flags` is
    searched as an ordinary key."""


def read_pattern(written: str) -> "Pattern | Refused":
    """Parse a key as a regular expression, or return the reason why it cannot be one."""
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
"""The limits of steps for one search. A pattern is searched with the first limit, then with each
larger one until a search ends within its limit."""

MOST_SEARCHED: Final = 20_000
"""How many characters of a text are searched for regular expressions, from its beginning."""

# PCRE2's error code for a search that reached its limit of steps (`LIMIT_MATCH`).
_STEPS_EXCEEDED: Final = -47
_MEMORY_KIBIBYTES: Final = 8192
# PCRE2 walks over this many characters in about the time of one step.
_CHARACTERS_A_STEP: Final = 64
# Code points that are one character in Python. In JavaScript they are half of a surrogate pair, or
# a whole pair.
_HALVES: Final = CharSet(ranges=(SURROGATES, (0x10000, LAST)))


class StepsExceededError(Exception):
    """The error for a regular expression whose search needs more steps than allowed."""


class OutOfMemoryError(Exception):
    """The error for a regular expression whose search needs more memory than allowed."""


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

    def __init__(
        self,
        written: str,
        tree: Node,
        *,
        unicode: bool,
        captured: frozenset[int] = NO_GROUPS,
        from_offset: bool = False,
    ) -> None:
        """Prepare the search. `write_search` explains the last two arguments.

        Raises:
            UnsupportedPatternError: PCRE2 cannot search like JavaScript here.
        """
        nodes = list(walk_nodes(tree))
        sets = [node.chars for node in nodes if isinstance(node, Chars)]
        self.written = written
        # Every text with a match contains this literal in lower case, so other texts are not
        # searched.
        self.literal = required_literal(tree)
        # The reason why the pattern cannot run in any text; "" if it can run.
        self.problem = ""
        # True if the pattern can match half of a surrogate pair, or between the halves. Then texts
        # are searched as UTF-16 units, as in JavaScript.
        self._sees_halves = not unicode and (
            any(chars.overlaps(_HALVES) for chars in sets)
            or any(isinstance(node, WordBoundary) and node.negated for node in nodes)
        )
        self._refers_back = any(isinstance(node, Backreference) for node in nodes)
        self._uncounted = uncounted_characters(tree)
        self._written_search = write_search(tree, captured=captured, from_offset=from_offset)
        self._compiled: dict[int, Any] = {}
        if any(chars.properties for chars in sets):
            self.can_run()  # only PCRE2 knows all names of scripts, so compile at once

    def __repr__(self) -> str:
        return f"Pattern({self.written!r})"

    @property
    def trouble(self) -> str:
        """The reason why the regular expression cannot run; "" if it can run."""
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
        """Return the start and end of the first match in code points, or None.

        Only the first `MOST_SEARCHED` characters are searched.

        Raises:
            StepsExceededError: The search needs more than `steps` steps.
            OutOfMemoryError: The search needs too much memory.
        """
        if not self.can_run():
            return None
        text = text[:MOST_SEARCHED]
        units = self.to_units(text)
        found = self.match_from(units, 0, steps=steps)
        if found is None:
            return None
        start, end = found.span()
        return (start, end) if units is text else to_code_points(units, start, end)

    def to_units(self, text: str) -> str:
        """Return a text in the units in which this pattern is searched."""
        return to_utf16_units(text) if self._sees_halves else text

    def match_from(self, units: str, offset: int, *, steps: int) -> Any:
        """Return PCRE2's first match at or after an offset, or None.

        An offset other than 0 needs a pattern that was made with `from_offset`.

        Raises:
            StepsExceededError: The search needs more than `steps` steps.
            OutOfMemoryError: The search needs too much memory.
        """
        # A step that walks over many characters takes longer, so fewer steps are allowed. The limit
        # is a power of 2, because each limit needs a compiled pattern of its own.
        walked = self._uncounted + (len(units) if self._refers_back else 0)
        limit = max(1, steps >> (walked // _CHARACTERS_A_STEP).bit_length())
        try:
            return self._compiled_with(limit).search(without_surrogates(units), offset)
        except pcre2.LibraryError as error:
            if error.code == _STEPS_EXCEEDED:
                raise StepsExceededError from None
            raise OutOfMemoryError from error

    def _compiled_with(self, limit: int) -> Any:
        if limit not in self._compiled:
            options = f"(*NO_JIT)(*NO_AUTO_POSSESS)(*LIMIT_MATCH={limit})"
            options += f"(*LIMIT_HEAP={_MEMORY_KIBIBYTES})"
            self._compiled[limit] = pcre2.compile(
                options + self._written_search, flags=pcre2.ASCII, jit=False
            )
        return self._compiled[limit]


_MOST_ALIKE: Final = 4
# The small letter of this capital depends on its neighbours, so a required literal never contains
# it.
_SIGMA: Final = "Σ"


def required_literal(tree: Node) -> str:
    """Return the longest text, in lower case, that every match must contain; "" if there is none.

    Each place of the pattern adds one character to that text. The condition is that all characters
    allowed at this place have the same small letter. An `s` that also matches the long s adds none,
    for example.
    """
    runs = [""]
    _add_runs(tree, runs)
    return max(runs, key=len)


def _add_runs(node: Node, runs: list[str]) -> None:
    """Add the literal texts that a node requires to `runs`. The last run may be extended."""
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
    """Return the small letter that all characters of the set share; "" if they share none."""
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
"""How many steps all regular expressions of a lorebook may take in one text."""

TURN_STEPS: Final = 1 << 20
"""How many steps all regular expressions may take in all messages of a turn together.

They may take the same number of steps again in all other texts of the turn.
"""

NO_STEPS: Final = "the other patterns had used up the steps"


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternHits:
    """The result of searching one text for several regular expressions."""

    places: Mapping[Pattern, tuple[int, int]]
    """The first match of each regular expression that matches: start and end in code points."""
    given_up: Mapping[Pattern, str]
    """The reason why a search was given up, by regular expression."""
    steps: int
    """The steps that the searches used up: each search counts with its full limit."""
    is_whole: bool
    """False if the text is so long that its end was not searched."""


def search_patterns(
    text: str, patterns: Iterable[Pattern], *, steps: int = TEXT_STEPS
) -> PatternHits:
    """Search a text for regular expressions. All searches together may take at most `steps` steps.

    All patterns are searched with the smallest limit first, then the unfinished ones with a larger
    limit. So a slow pattern takes no steps away from fast patterns.
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
