"""Quotas: how many calls and tokens somebody may use a minute and a day, and what they used.

Pure: time comes as seconds since 1970, and days are those of UTC. A meter costs the same however
much was used: a minute is kept by the second, a day as a sum.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, Final

from pydantic import Field

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.fields import Must, read_fields, suggest_or_list

MINUTE_SECONDS: Final = 60
DAY_SECONDS: Final = 24 * 60 * 60

Most = Annotated[Annotated[int, Field(ge=1)] | None, Must("a whole number from 1 on, or None")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """How much one of a kind may use; None is as much as there is."""

    calls_per_minute: Most = None
    tokens_per_minute: Most = None
    calls_per_day: Most = None
    tokens_per_day: Most = None

    def narrowed(self, by: Mapping[str, int]) -> "Quota":
        """The smaller of the two, limit by limit; `by` has names of limits, others do not count."""
        smaller = {name: most for name, most in by.items() if self._narrows(name, most)}
        return replace(self, **smaller) if smaller else self

    def _narrows(self, name: str, most: int) -> bool:
        mine = getattr(self, name, 0)  # an unknown name narrows nothing
        return mine is None or most < mine


LIMITS: Final = tuple(one.name for one in fields(Quota))
"""The names of the limits, as settings and refusals have them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotas:
    """What each player, each NPC and the whole game may use.

    The defaults let everybody talk as fast as people type, and stop a flood.
    """

    player: Quota = Quota(calls_per_minute=20, calls_per_day=2000)
    npc: Quota = Quota(calls_per_minute=60, calls_per_day=10_000)
    game: Quota = Quota(calls_per_minute=600, calls_per_day=100_000)


SCOPES: Final = tuple(one.name for one in fields(Quotas))


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaReached:
    """A limit that is reached, what it is, and in how many seconds there is room again."""

    limit: str
    most: int
    retry_in_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaUse:
    """What was used in the last minute and on this day; tokens with those of calls under way."""

    calls_per_minute: int = 0
    tokens_per_minute: int = 0
    calls_per_day: int = 0
    tokens_per_day: int = 0


NOTHING_USED: Final = QuotaUse()


@dataclass(slots=True, eq=False)
class Meter:
    """What one player, one NPC or the game used. A call counts from its begin, its tokens are
    reserved then and become those that were used at its end."""

    _minute: deque[tuple[int, int, int]] = field(default_factory=deque)
    """(second, calls, tokens), the oldest first."""
    _day: int = -1
    _day_calls: int = 0
    _day_tokens: int = 0
    _reserved: int = 0

    def begun(self, now: float, *, reserved_tokens: int) -> None:
        """A call begins that may take so many tokens."""
        self._reserved += reserved_tokens
        self._count(now, calls=1, tokens=0)

    def ended(self, now: float, *, reserved_tokens: int, tokens: int) -> None:
        """A call for which so many tokens were reserved ended, and took so many."""
        self._reserved -= reserved_tokens
        self._count(now, calls=0, tokens=tokens)

    def taken_back(self, began_at: float) -> None:
        """A call that began then was none: no model was asked."""
        if int(began_at // DAY_SECONDS) == self._day:
            self._day_calls -= 1
        for index, (second, calls, tokens) in enumerate(self._minute):
            if second == int(began_at):
                self._minute[index] = (second, calls - 1, tokens)

    def restored(self, now: float, *, calls: int, tokens: int) -> None:
        """So much was used today before there was this meter."""
        self._turn_to(now)
        self._day_calls += calls
        self._day_tokens += tokens

    def is_idle(self, now: float) -> bool:
        """True if it may be forgotten: nothing under way, and nothing that would still count."""
        self._turn_to(now)
        return not (self._minute or self._reserved or self._day_calls or self._day_tokens)

    def reading(self, now: float) -> QuotaUse:
        """What was used up to now."""
        self._turn_to(now)
        return QuotaUse(
            calls_per_minute=sum(calls for _, calls, _ in self._minute),
            tokens_per_minute=sum(tokens for *_, tokens in self._minute) + self._reserved,
            calls_per_day=self._day_calls,
            tokens_per_day=self._day_tokens + self._reserved,
        )

    def reached(
        self, now: float, quota: Quota, *, tokens: int = 0, others: QuotaUse = NOTHING_USED
    ) -> QuotaReached | None:
        """The limit that another call of so many tokens, as far as known, would go over.

        `others` is what other processes used of the same.
        """
        read = self.reading(now)
        for limit in LIMITS:
            most = getattr(quota, limit)
            wanted = max(1, tokens) if limit.startswith("tokens") else 1
            used = getattr(read, limit) + getattr(others, limit)
            if most is not None and used + wanted > most:
                return QuotaReached(
                    limit=limit, most=most, retry_in_seconds=self._room_in(limit, now)
                )
        return None

    def _count(self, now: float, *, calls: int, tokens: int) -> None:
        self._turn_to(now)
        self._day_calls += calls
        self._day_tokens += tokens
        second = int(now)
        if self._minute and self._minute[-1][0] == second:
            _, more_calls, more_tokens = self._minute.pop()
            calls, tokens = calls + more_calls, tokens + more_tokens
        self._minute.append((second, calls, tokens))

    def _turn_to(self, now: float) -> None:
        """Leave behind what is over."""
        while self._minute and self._minute[0][0] <= now - MINUTE_SECONDS:
            self._minute.popleft()
        day = int(now // DAY_SECONDS)
        if day != self._day:
            self._day, self._day_calls, self._day_tokens = day, 0, 0

    def _room_in(self, limit: str, now: float) -> float:
        """Seconds until the first of what fills the limit does not count any more."""
        if limit.endswith("day"):
            return DAY_SECONDS - now % DAY_SECONDS
        oldest = self._minute[0][0] if self._minute else int(now)
        return max(1.0, oldest + MINUTE_SECONDS - now)


def read_quotas(given: Any, *, where: str) -> Quotas:
    """The defaults with what is given instead; FormatError names what is wrong and where."""
    if not isinstance(given, Mapping):
        raise FormatError("setting", f"{where}: must be a dictionary")
    made = Quotas()
    for scope, limits in given.items():
        if scope not in SCOPES:
            told = f"there is no scope {scope!r}{suggest_or_list(scope, SCOPES)}"
            raise FormatError("setting", f"{where}: {told}")
        place = f"{where}.{scope}"
        read_fields(Quota, limits, where=place, what="limit ", hint=suggest_or_list)
        made = replace(made, **{scope: replace(getattr(made, scope), **limits)})
    return made
