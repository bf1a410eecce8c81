"""Passes: how often a scan goes over the books, and with what.

The first pass sees the conversation. Texts of entries that became active are passed on and make a
recursion pass; where the least number of activations is missing, the scan is widened by a message;
entries that wait for recursion come level by level. A pass sees what was there when it began: its
own entries do not see each other, and nothing that is active ever becomes silent again.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from evennia_ai.lorebook.rules import ActivationRules

PassKind = Literal["first", "recursion", "widened"]


# However the rules are set, a run ends: widening looks at no more messages than this, and of
# the delay levels so many of the lowest are reached.
MOST_WIDENED: Final = 1000
MOST_PASSES: Final = 10_000
MOST_LEVELS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PassResult:
    """What one pass brought: entries that pass text on, entries active so far."""

    passed_on: int
    active: int
    budget_is_full: bool


class PassSchedule:
    """The passes of one run: which one is on, and which one is next.

    `recursive` says whether recursion is on at all, `levels` are the delay levels of all entries,
    `depth` is where a widened scan begins, `length` how many messages there are.
    """

    def __init__(
        self,
        rules: ActivationRules,
        *,
        recursive: bool,
        levels: Iterable[int],
        length: int,
    ) -> None:
        self.kind: PassKind = "first"
        self.number = 1
        self.widened = 0
        self.recursive = recursive
        self._rules = rules
        self._length = min(length, MOST_WIDENED)
        self._levels = sorted(set(levels))[:MOST_LEVELS]
        self.level = self._levels.pop(0) if self._levels else 0
        self._recursions = 0
        self._has_passed_on = False

    def moves_on(self, result: PassResult) -> bool:
        """Whether there is another pass; it is on afterwards."""
        kind = self._next(result)
        if kind is None or self._is_over(kind):
            return False
        self._has_passed_on = bool(result.passed_on) or self._has_passed_on
        self._recursions += kind == "recursion"
        self.kind = kind
        self.number += 1
        return True

    def _next(self, result: PassResult) -> PassKind | None:
        if self.recursive and not result.budget_is_full and not self._is_over("recursion"):
            was_widened = self.kind == "widened"
            if result.passed_on or (was_widened and self._has_texts()):
                return "recursion"
        is_short = result.active < self._rules.min_activations
        if is_short and not result.budget_is_full and self._can_widen():
            self.widened += 1
            return "widened"
        return self._next_level()

    def _has_texts(self) -> bool:
        """Whether texts of entries are looked at again: there are any, and entries wait for it."""
        if self._rules.flags.levels_are_walked:  # it remembers the texts of a pass without any
            return self.number > 1
        return self._has_passed_on and self.level > 0

    def _next_level(self) -> PassKind | None:
        """The next delay level: only where recursion has begun, unless levels are walked alone."""
        begun = self.recursive and self._recursions > 0
        if not self._levels or not (begun or self._rules.flags.levels_are_walked):
            return None
        self.level = self._levels.pop(0)
        return "recursion"

    def _can_widen(self) -> bool:
        rules = self._rules
        depth = rules.scan_depth + self.widened
        limit = rules.min_activations_depth_max
        if rules.flags.widens_beyond:
            return not (limit and depth > limit) and depth <= self._length
        return not (limit and depth >= limit) and depth < self._length

    def _is_over(self, kind: PassKind) -> bool:
        """Whether the limit of steps is reached before a pass of this kind."""
        limit = self._rules.max_recursion_steps
        if self.number >= MOST_PASSES:
            return True
        if self._rules.flags.first_pass_counts:
            return bool(limit and self.number >= limit)
        return bool(limit and kind == "recursion" and self._recursions >= limit)
