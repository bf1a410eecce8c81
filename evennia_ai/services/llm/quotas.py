"""Quotas: limits on calls and tokens per minute and per day, and meters that count their use.

Pure. Times are in seconds since 1970, days in UTC. A meter keeps the last minute by seconds and the
day as one sum, so its size does not grow with the use.
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
    """Limits for one player, one NPC or the whole game. None means no limit."""

    calls_per_minute: Most = None
    tokens_per_minute: Most = None
    calls_per_day: Most = None
    tokens_per_day: Most = None

    def narrowed(self, by: Mapping[str, int]) -> "Quota":
        """Return the lower of both limits for each field.

        Names in `by` that are not limits are ignored.
        """
        smaller = {name: most for name, most in by.items() if self._narrows(name, most)}
        return replace(self, **smaller) if smaller else self

    def _narrows(self, name: str, most: int) -> bool:
        mine = getattr(self, name, 0)  # A name that is not a limit changes nothing.
        return mine is None or most < mine


LIMITS: Final = tuple(one.name for one in fields(Quota))
"""The names of the limits, as settings and refusals use them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotas:
    """The limits of each player, of each NPC and of the whole game.

    The defaults allow conversation at typing speed and stop a flood of requests.
    """

    player: Quota = Quota(calls_per_minute=20, calls_per_day=2000)
    npc: Quota = Quota(calls_per_minute=60, calls_per_day=10_000)
    game: Quota = Quota(calls_per_minute=600, calls_per_day=100_000)


SCOPES: Final = tuple(one.name for one in fields(Quotas))


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaReached:
    """A limit that is reached, and the seconds until another call is possible."""

    limit: str
    most: int
    retry_in_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaUse:
    """The use during the last minute and the current day.

    Running calls count with their reserved tokens.
    """

    calls_per_minute: int = 0
    tokens_per_minute: int = 0
    calls_per_day: int = 0
    tokens_per_day: int = 0


NOTHING_USED: Final = QuotaUse()


@dataclass(slots=True, eq=False)
class Meter:
    """A counter of the calls and tokens of one player, one NPC or the game.

    A call counts from its start, with reserved tokens. At its end the tokens that it really used
    replace them.
    """

    _minute: deque[tuple[int, int, int]] = field(default_factory=deque)
    """One entry per second with use, oldest first: the second, its calls and its tokens."""
    _day: int = -1
    _day_calls: int = 0
    _day_tokens: int = 0
    _reserved: int = 0

    def begun(self, now: float, *, reserved_tokens: int) -> None:
        """Count a call that starts now, and reserve tokens for it."""
        self._reserved += reserved_tokens
        self._count(now, calls=1, tokens=0)

    def ended(self, now: float, *, reserved_tokens: int, tokens: int) -> None:
        """Count the tokens that a call used, and release the tokens reserved for it."""
        self._reserved -= reserved_tokens
        self._count(now, calls=0, tokens=tokens)

    def undo_start(self, began_at: float) -> None:
        """Undo the count of a call that never reached a model.

        `began_at` is the time of its start.
        """
        if int(began_at // DAY_SECONDS) == self._day:
            self._day_calls -= 1
        for index, (second, calls, tokens) in enumerate(self._minute):
            if second == int(began_at):
                self._minute[index] = (second, calls - 1, tokens)

    def restored(self, now: float, *, calls: int, tokens: int) -> None:
        """Add today's use from before this meter was made."""
        self._turn_to(now)
        self._day_calls += calls
        self._day_tokens += tokens

    def is_idle(self, now: float) -> bool:
        """True if the meter can be removed: no call is running, and no earlier use counts now."""
        self._turn_to(now)
        return not (self._minute or self._reserved or self._day_calls or self._day_tokens)

    def reading(self, now: float) -> QuotaUse:
        """Return the use of the current minute and day."""
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
        """Return the limit that another call would exceed, or None if the call is allowed.

        Args:
            tokens: The tokens that the call will need, as far as known.
            others: The use that other processes report.
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
        """Remove the counts of past minutes and days."""
        while self._minute and self._minute[0][0] <= now - MINUTE_SECONDS:
            self._minute.popleft()
        day = int(now // DAY_SECONDS)
        if day != self._day:
            self._day, self._day_calls, self._day_tokens = day, 0, 0

    def _room_in(self, limit: str, now: float) -> float:
        """Return the seconds until the oldest use stops counting."""
        if limit.endswith("day"):
            return DAY_SECONDS - now % DAY_SECONDS
        oldest = self._minute[0][0] if self._minute else int(now)
        return max(1.0, oldest + MINUTE_SECONDS - now)


def read_quotas(given: Any, *, where: str) -> Quotas:
    """Return the default limits, changed by the dictionary `given`.

    Raises:
        FormatError: a value is not allowed; the message names it.
    """
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
