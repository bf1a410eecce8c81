"""Replace what a JavaScript regular expression matches, with a limit of steps.

A search stops at a limit of steps, as in `pattern`. Each search of a text counts with its full
limit. So the steps of a replacement depend only on the pattern and the text, and never on the speed
of the machine.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from evennia_ai.engine.lorebook.scan.regex import BrokenPatternError, UnsupportedPatternError
from evennia_ai.engine.lorebook.scan.regex.parsing import find_groups, parse_flags, parse_pattern
from evennia_ai.engine.lorebook.scan.regex.pattern import (
    MOST_SEARCHED,
    STEP_LIMITS,
    TEXT_STEPS,
    OutOfMemoryError,
    Pattern,
    Refused,
    StepsExceededError,
)
from evennia_ai.engine.lorebook.scan.regex.tree import Lookaround, walk_nodes

MOST_RESULT: Final = 4 * MOST_SEARCHED
"""How many characters a text may have after a replacement."""

GroupOf = Callable[[int | str], str]
"""Returns the text of a group of a match, by its number or its name. Group 0 is the whole match. A
group that did not match, or that the pattern lacks, is ""."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """A text after a replacement."""

    text: str
    places: int
    """How many matches were replaced."""
    steps: int


@dataclass(frozen=True, slots=True)
class NotReplaced:
    """The reason why a text was left as it is."""

    reason: str
    steps: int


class ReplacePattern:
    """A regular expression whose matches are replaced: all with the flag g, else the first one."""

    __slots__ = ("_looks_behind", "_numbers", "_pattern", "is_global")

    def __init__(
        self,
        pattern: Pattern,
        numbers: Mapping[int | str, int],
        *,
        is_global: bool,
        looks_behind: bool,
    ) -> None:
        self._pattern = pattern
        self._looks_behind = looks_behind
        # By each number or name that a replacement uses: the number of the group
        self._numbers = numbers
        self.is_global = is_global

    @property
    def known_groups(self) -> frozenset[int | str]:
        """The groups of the replacement that the expression has; 0 is always there."""
        return frozenset((0, *self._numbers))

    @property
    def literal(self) -> str:
        """The text, in lower case, that every match contains; "" if there is none."""
        return self._pattern.literal

    def replace(
        self, text: str, make: Callable[[GroupOf], str], *, steps: int = TEXT_STEPS
    ) -> Replaced | NotReplaced:
        """Replace the matches in a text by what `make` returns for each.

        The text is left as it is if it is too long, or if the searches need more than `steps`
        steps. The result has at most `MOST_RESULT` characters.
        """
        if self._pattern.literal not in text.lower():
            return Replaced(text, 0, 0)
        if not self._pattern.can_run():
            return NotReplaced(f"its regular expression {self._pattern.problem}", 0)
        if len(text) > MOST_SEARCHED:
            return NotReplaced(f"the text has more than {MOST_SEARCHED:,} characters", 0)
        units = self._pattern.to_units(text)
        last = len(units)
        if units is text and not self._looks_behind and len(text.lower()) == len(text):
            # Every match contains the literal. A search after its last place would find nothing,
            # and patterns such as `[^]*</think>` need the most steps for finding nothing.
            last = text.lower().rfind(self._pattern.literal)
        made = self._replaced(units, make, steps, last=last)
        if units is text or isinstance(made, NotReplaced):
            return made
        # A replacement between the halves of a surrogate pair leaves halves that are no text.
        whole = made.text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return Replaced(whole, made.places, made.steps)

    def _replaced(
        self, units: str, make: Callable[[GroupOf], str], steps: int, *, last: int
    ) -> Replaced | NotReplaced:
        parts: list[str] = []
        at = copied = places = used = size = 0
        while at <= last and (self.is_global or not places):
            found, spent = self._find(units, at, steps - used)
            used += spent
            if isinstance(found, str):
                return NotReplaced(found, used)
            if found is None:
                break
            start, end = found.span()
            new = make(self._groups_of(found, units))
            parts += (units[copied:start], new)
            size += start - copied + len(new)
            if size > MOST_RESULT:
                problem = f"the text would get more than {MOST_RESULT:,} characters"
                return NotReplaced(problem, used)
            places, copied = places + 1, end
            at = end + (end == start)  # an empty match: look for the next one character later
        return Replaced("".join((*parts, units[copied:])), places, used)

    def _find(self, units: str, at: int, left: int) -> tuple[Any, int]:
        """Return the next match, None, or the reason why the search was given up, and its steps."""
        used = 0
        for limit in STEP_LIMITS:
            if used + limit > left:
                return "the search needs more steps than one text may take", used
            used += limit
            try:
                return self._pattern.match_from(units, at, steps=limit), used
            except StepsExceededError:
                continue
            except OutOfMemoryError:
                return "the search took too much memory", used
        return f"the search took more than {STEP_LIMITS[-1]:,} steps", used

    def _groups_of(self, found: Any, units: str) -> GroupOf:
        def group_of(group: int | str) -> str:
            if group == 0:
                start, end = found.span()
            elif group in self._numbers:
                start, end = found.span(f"g{self._numbers[group]}")
            else:
                return ""
            return units[start:end] if start >= 0 else ""

        return group_of


def read_replace_pattern(
    body: str, letters: str, groups: frozenset[int | str]
) -> ReplacePattern | Refused:
    """Parse a regular expression whose matches are to be replaced.

    Args:
        body: The expression without slashes.
        letters: Its flags.
        groups: The numbers and names of the groups that the replacement uses.
    """
    try:
        flags = parse_flags(letters)
        tree = parse_pattern(body, flags)
        count, names = find_groups(body, flags)
        numbers: dict[int | str, int] = {}
        for group in groups:
            if isinstance(group, str) and group in names:
                numbers[group] = names[group]
            elif isinstance(group, int) and 0 < group <= count:
                numbers[group] = group
        pattern = Pattern(
            f"/{body}/{letters}",
            tree,
            unicode=flags.unicode,
            captured=frozenset(numbers.values()),
            from_offset=True,
        )
    except BrokenPatternError as error:
        return Refused(reason=f"is not a regular expression: {error}", is_broken=True)
    except UnsupportedPatternError as error:
        return Refused(reason=f"is not supported: {error}", is_broken=False)
    if pattern.problem:
        return Refused(reason=pattern.problem, is_broken=False)
    looks_behind = any(isinstance(one, Lookaround) and one.behind for one in walk_nodes(tree))
    return ReplacePattern(pattern, numbers, is_global="g" in letters, looks_behind=looks_behind)
