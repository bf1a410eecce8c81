"""Quotas: limits on calls, tokens and money, and meters that count their use.

Pure. Times are in seconds since 1970, days and months in UTC. A meter keeps the last minute by
seconds, and the day and the month as sums, so its size does not grow with the use.

A call whose price is not known counts as a call, but not as money.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from pydantic import Field

from evennia_ai.engine.errors import FormatError
from evennia_ai.engine.foreign.fields import Must, read_fields, suggest_or_list
from evennia_ai.services.llm.money import NANODOLLARS, as_dollars

MINUTE_SECONDS: Final = 60
DAY_SECONDS: Final = 24 * 60 * 60

Most = Annotated[Annotated[int, Field(ge=1)] | None, Must("a whole number from 1 on, or None")]
MostDollars = Annotated[
    Annotated[float, Field(gt=0)] | None, Must("a number of dollars over 0, or None")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """Limits for one player, one NPC or the whole game. None means no limit."""

    calls_per_minute: Most = None
    tokens_per_minute: Most = None
    calls_per_day: Most = None
    tokens_per_day: Most = None
    dollars_per_day: MostDollars = None
    dollars_per_month: MostDollars = None

    def narrowed(self, by: Mapping[str, float]) -> "Quota":
        """Return the lower of both limits for each field.

        Names in `by` that are not limits are ignored.
        """
        smaller: dict[str, Any] = {
            name: most for name, most in by.items() if self._narrows(name, most)
        }
        return replace(self, **smaller) if smaller else self

    def _narrows(self, name: str, most: float) -> bool:
        mine = getattr(self, name, 0)  # A name that is not a limit changes nothing.
        return mine is None or most < mine


LIMITS: Final = tuple(one.name for one in fields(Quota))
"""The names of the limits, as settings and refusals use them."""
MONEY: Final = "dollars_per_"
"""How the names of limits of money begin."""


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
    most: float
    retry_in_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaUse:
    """The use during the last minute, the current day and the current month.

    Running calls count with their reserved tokens.
    """

    calls_per_minute: int = 0
    tokens_per_minute: int = 0
    calls_per_day: int = 0
    tokens_per_day: int = 0
    dollars_per_day: float = 0.0
    dollars_per_month: float = 0.0


NOTHING_USED: Final = QuotaUse()


@dataclass(slots=True, eq=False)
class Meter:
    """A counter of the calls, tokens and money of one player, one NPC or the game.

    A call counts from its start, with reserved tokens. At its end the tokens that it really used
    replace them, and its price counts.
    """

    _minute: deque[tuple[int, int, int]] = field(default_factory=deque)
    """One entry per second with use, oldest first: the second, its calls and its tokens."""
    _day: int = -1
    _day_calls: int = 0
    _day_tokens: int = 0
    _day_nanodollars: int = 0
    _month_nanodollars: int = 0
    _month_ends_at: float = 0.0
    _reserved: int = 0

    def begun(self, now: float, *, reserved_tokens: int) -> None:
        """Count a call that starts now, and reserve tokens for it."""
        self._reserved += reserved_tokens
        self._count(now, calls=1, tokens=0)

    def ended(self, now: float, *, reserved_tokens: int, tokens: int, nanodollars: int) -> None:
        """Count what a call used, and release the tokens reserved for it."""
        self._reserved -= reserved_tokens
        self._count(now, calls=0, tokens=tokens)
        self._day_nanodollars += nanodollars
        self._month_nanodollars += nanodollars

    def undo_start(self, began_at: float) -> None:
        """Undo the count of a call that never reached a model.

        `began_at` is the time of its start.
        """
        if int(began_at // DAY_SECONDS) == self._day:
            self._day_calls -= 1
        for index, (second, calls, tokens) in enumerate(self._minute):
            if second == int(began_at):
                self._minute[index] = (second, calls - 1, tokens)

    def restored(self, now: float, *, calls: int, tokens: int, nanodollars: int) -> None:
        """Add use of today that this meter has not counted."""
        self._turn_to(now)
        self._day_calls += calls
        self._day_tokens += tokens
        self._day_nanodollars += nanodollars

    def restored_month(self, now: float, *, nanodollars: int) -> None:
        """Add money that was spent this month, also today, and that this meter has not counted."""
        self._turn_to(now)
        self._month_nanodollars += nanodollars

    def is_idle(self, now: float) -> bool:
        """True if the meter can be removed: no call is running, and no earlier use counts now."""
        self._turn_to(now)
        return not (
            self._minute
            or self._reserved
            or self._day_calls
            or self._day_tokens
            or self._month_nanodollars
        )

    def reading(self, now: float) -> QuotaUse:
        """Return the use of the last minute, and of the current day and month."""
        self._turn_to(now)
        return QuotaUse(
            calls_per_minute=sum(calls for _, calls, _ in self._minute),
            tokens_per_minute=sum(tokens for *_, tokens in self._minute) + self._reserved,
            calls_per_day=self._day_calls,
            tokens_per_day=self._day_tokens + self._reserved,
            dollars_per_day=self._day_nanodollars / NANODOLLARS,
            dollars_per_month=self._month_nanodollars / NANODOLLARS,
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
            if most is None:
                continue
            wanted: float = max(1, tokens) if limit.startswith("tokens") else 1
            if limit.startswith(MONEY):
                wanted = 1 / NANODOLLARS  # what a call will cost is not known
            used = getattr(read, limit) + getattr(others, limit)
            if used + wanted > most:
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
            self._day, self._day_calls, self._day_tokens, self._day_nanodollars = day, 0, 0, 0
            if now >= self._month_ends_at:
                self._month_nanodollars, self._month_ends_at = 0, month_of(now)[1]

    def _room_in(self, limit: str, now: float) -> float:
        """Return the seconds until the oldest use stops counting."""
        if limit.endswith("month"):
            return self._month_ends_at - now
        if limit.endswith("day"):
            return DAY_SECONDS - now % DAY_SECONDS
        oldest = self._minute[0][0] if self._minute else int(now)
        return max(1.0, oldest + MINUTE_SECONDS - now)


def month_of(now: float) -> tuple[float, float]:
    """Return when the month of a time begins and ends, in seconds since 1970."""
    at = datetime.fromtimestamp(now, UTC)
    begin = datetime(at.year, at.month, 1, tzinfo=UTC)
    end = datetime(at.year + at.month // 12, at.month % 12 + 1, 1, tzinfo=UTC)
    return begin.timestamp(), end.timestamp()


def most_in_words(limit: str, most: float) -> str:
    """Return a limit as people read it, such as "20 calls per minute" or "$2.50 per day"."""
    words = limit.replace("_", " ")
    if not limit.startswith(MONEY):
        return f"{most} {words}"
    return f"{as_dollars(most)} {words.removeprefix('dollars ')}"


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
