"""Make tables of what `load_units` measured: what occupies the reactor, and for how long."""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.load_units import GARBAGE, NAMES, ROW, ROWS, SPAN, TURN, UNIT

MOST_LINES: Final = 20
"""How many units of a period are printed: those that took most time."""
_HEAD: Final = (
    "| what | count | share | processor: p50 | p99 | worst | clock: p50 | p99 | worst |",
    "|---|---|---|---|---|---|---|---|---|",
)


class Period(NamedTuple):
    """A period between two times of `time.monotonic`."""

    name: str
    began: float
    ended: float

    @property
    def seconds(self) -> float:
        return self.ended - self.began


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """How long one thing took each time, in milliseconds."""

    name: str
    kind: int
    clock: "array[float]" = field(default_factory=lambda: array("f"))
    processor: "array[float]" = field(default_factory=lambda: array("f"))

    @property
    def worst(self) -> float:
        """The most processor time that it took once, in milliseconds."""
        return max(self.processor)


Measured = dict[str, list[Times]]
"""What the Server did in each period, by the period's name."""


def percentile(values: Iterable[float], percent: int) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def measured_in(root: Path, periods: Sequence[Period]) -> Measured:
    """Return what the Server of the game in `root` did in these periods, most time first."""
    names = (root / NAMES).read_text(encoding="utf-8").splitlines()
    data = (root / ROWS).read_bytes()
    found: dict[tuple[str, int], Times] = {}
    for at, clock, processor, number, kind in ROW.iter_unpack(
        data[: len(data) // ROW.size * ROW.size]
    ):
        for period in periods:
            if period.began <= at < period.ended:
                key = (period.name, number)
                if key not in found:
                    found[key] = Times(name=names[number], kind=kind)
                found[key].clock.append(clock)
                found[key].processor.append(processor)
    by_period: Measured = {period.name: [] for period in periods}
    for (period_name, _), times in found.items():
        by_period[period_name].append(times)
    for all_times in by_period.values():
        all_times.sort(key=lambda one: -sum(one.processor))
    return by_period


def table(measured: Sequence[Times], period: Period) -> str:
    """Return a table of a period: the time of the reactor's units, then of our spans in them."""
    units = [one for one in measured if one.kind == UNIT]
    ours = [one for one in measured if one.kind != UNIT]
    busy = sum(sum(one.processor) for one in units)
    share, count = busy / 10 / period.seconds, sum(len(one.clock) for one in units)
    title = (
        f"{period.name}, {period.seconds:.0f} s: {count} units took {share:.1f} % of a processor"
    )
    lines = [
        f"{title}; times in ms",
        *_HEAD,
        *(_line(one, period) for one in units[:MOST_LINES]),
        "",
        "of these, ours (what holds other lines holds their time too) and the collector",
        *_HEAD,
        *(_line(one, period) for one in sorted(ours, key=lambda one: one.name)),
    ]
    return "\n".join(lines)


def _line(times: Times, period: Period) -> str:
    share = sum(times.processor) / 10 / period.seconds
    figures = [
        f"{figure:.2f}"
        for values in (times.processor, times.clock)
        for figure in (percentile(values, 50), percentile(values, 99), max(values))
    ]
    return f"| {times.name} | {len(times.clock)} | {share:.2f} % | {' | '.join(figures)} |"


START: Final = "turn: its start, all of the reactor"
START_P50_MS: Final = 3.0
START_P99_MS: Final = 8.0
OURS_MS: Final = 20.0


def slow(measured: Sequence[Times]) -> list[str]:
    """Return which of our functions took too much processor time in the reactor."""
    ours = [one for one in measured if one.kind in (SPAN, GARBAGE) and one.name[:7] != "Evennia"]
    found = [
        f"{one.name} took {one.worst:.0f} ms of the reactor once"
        for one in ours
        if one.worst > OURS_MS
    ]
    start = next((one for one in measured if one.kind == TURN and one.name == START), None)
    if start is not None:
        for percent, most in ((50, START_P50_MS), (99, START_P99_MS)):
            took = percentile(start.processor, percent)
            if took > most:
                found.append(
                    f"the start of a turn took {took:.1f} ms at p{percent}, asked {most:g}"
                )
    return found
