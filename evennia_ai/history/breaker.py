"""The breaker: after failures in a row, summarising is left alone for some turns.

A value, so that it can be stored with the conversation. It only stops trying to make a summary; no
check of a prompt asks it, so an open breaker lets nothing through that would otherwise be stopped.
"""

from dataclasses import dataclass, replace

from evennia_ai.history.compaction import CompactionRules


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """Failures in a row, and the turn at which the last one opened the breaker.

    After the rest one try is allowed; it closes the breaker or opens it for as long.
    """

    failures: int = 0
    opened_at: int | None = None

    def after_failure(self, turn: int, *, rules: CompactionRules) -> "Breaker":
        """This breaker after a summary failed or was refused in `turn`."""
        failures = self.failures + 1
        if failures < rules.failures:
            return replace(self, failures=failures)
        return Breaker(failures=failures, opened_at=turn)

    def after_thrash(self, turn: int, *, rules: CompactionRules) -> "Breaker":
        """This breaker after a history was due again as soon as it was compacted: open."""
        return Breaker(failures=max(self.failures + 1, rules.failures), opened_at=turn)

    def after_success(self) -> "Breaker":
        """This breaker after a summary was accepted: closed, nothing counted."""
        return Breaker()

    def is_open(self, turn: int, *, rules: CompactionRules) -> bool:
        """Whether no summary is to be tried in `turn`."""
        return self.opened_at is not None and turn < self.opened_at + rules.rest_turns
