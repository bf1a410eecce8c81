"""Measure the search for active lore, compared with a naive loop and with an automaton.

    python benchmarks/lore.py [--rounds 3] [--turns 20] [--preset sillytavern] [--count o200k]
                                [--cpu] [--brief | --small]

The workloads are in `lore_workload.py`, the drivers in `lore_drivers.py`. Three times are measured:

    build  from the parsed file to a book that is ready
    first  the first turn, with a chat that is new to the book
    next   a turn with one more message

The last lines are about a restart: the time from the stored JSON text to a book that is ready, and
from the packed text that a game keeps (`--restart` measures nothing else).

All drivers take turns in one process. Each answer is compared with that of the naive loop before
anything is timed. Compare the ratios, not the times. `docs/extend/benchmarks.md` lists the limits
that our times must meet.
"""

import argparse
import gc
import json
import platform
import statistics
import time
import tracemalloc
from functools import partial
from hashlib import sha256
from itertools import chain

from counters import COUNTERS
from lore_drivers import DRIVERS, Ours
from lore_workload import Shape, Workload

from evennia_ai.formats.lorebooks.books import read_book
from evennia_ai.formats.lorebooks.packed import pack_book, unpack_book

SIZES = (100, 1_000, 10_000)
LARGEST = 50_000
LARGE = 10_000
PERCENTS = (1, 10)
WINDOWS = ((50, 4), (50, 0), (500, 4), (500, 50), (500, 0))
BRIEF = ((50, 50), (500, 50))
FEWEST = 3
"""The least number of active entries."""
SLOW_SECONDS = 0.5
"""A driver whose turn takes longer than this is measured for one turn per row only."""


def shapes(sizes, windows):
    """Return the shapes of the table's rows: plain books first, then mixed ones."""
    for size in sizes:
        for percent in PERCENTS:
            for recursive in (False, True):
                active = max(FEWEST, size * percent // 100)
                for messages, depth in windows:
                    yield Shape(
                        entries=size,
                        active=active,
                        messages=messages,
                        depth=depth,
                        recursive=recursive,
                    )
    for size in sizes:
        yield Shape(entries=size)
    for recursive in (False, True):
        yield with_strays(max(sizes), recursive=recursive)


def with_strays(size, *, recursive):
    """Return the shape of a book with additional entries, of which each message activates three."""
    active = max(FEWEST, size // 100)
    return Shape(entries=size, active=active, recursive=recursive, strays=3)


class Times:
    """The seconds that one driver took for a workload."""

    def __init__(self):
        self.build, self.first, self.next, self.verdicts = [], [], [], []

    def median(self, what):
        times = getattr(self, what)
        return statistics.median(times) if times else None


class Clock:
    """A clock of elapsed time or, with `--cpu`, of this process's processor time."""

    read = time.perf_counter


def timed(call, *args):
    start = Clock.read()
    result = call(*args)
    return Clock.read() - start, result


def check(workload, makers):
    """Return the installed drivers, after comparing their answers with those of the naive loop.

    Raises:
        SystemExit: a driver gives another answer.
    """
    loop = makers["naive loop"](workload)
    expected = {turn: loop.turn(turn) for turn in (0, workload.turns)}
    ready = {}
    for name, make in makers.items():
        try:
            driver = make(workload)
        except ImportError as missing:
            print(f"left out: {name}: {missing}")
            continue
        for turn, want in expected.items():
            got = driver.answer(driver.turn(turn))
            if got != want:
                extra, lost = sorted(got - want)[:5], sorted(want - got)[:5]
                raise SystemExit(
                    f"{name} is wrong in turn {turn} of {workload.shape}: {len(got)} active, not "
                    f"{len(want)}; too many: {extra}, missing: {lost}"
                )
        ready[name] = make
    return ready, len(expected[0])


def measure(workload, ready, rounds):
    """Return the times of each driver. A slow driver is measured once."""
    times = {name: Times() for name in ready}
    for number in range(rounds):
        for name, make in ready.items():
            if number and is_slow(times[name]):
                continue
            gc.collect()
            seconds, driver = timed(make, workload)
            times[name].build.append(seconds)
            times[name].first.append(timed(driver.turn, 0)[0])
            for turn in range(1, workload.turns + 1):
                if turn > 1 and is_slow(times[name]):
                    break
                seconds, last = timed(driver.turn, turn)
                times[name].next.append(seconds)
            # The first read of every entry's verdict is part of the measured time.
            if name == "evennia_ai":
                times[name].verdicts.append(timed(lambda result: result.verdicts, last)[0])
    return times


def is_slow(times):
    return max(times.first + times.next) > SLOW_SECONDS


def memory(shape):
    """Return the bytes that the book takes when it is ready, and after a first turn."""
    workload = Workload(shape, turns=0)
    gc.collect()
    tracemalloc.start()
    driver = Ours(workload)
    book = tracemalloc.get_traced_memory()[0]
    driver.turn(0)
    gc.collect()
    turn = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return book, turn


def restart(shape, rounds):
    """Print how long a book takes until it is ready, from its JSON and from its packed text."""
    workload = Workload(shape, turns=0)
    text, rules = json.dumps(workload.book), Ours(workload).rules
    book = read_book(json.loads(text), label="bench")
    packed = pack_book(book, workload.book, rules=rules).encode()
    del book

    def from_json():
        return Ours(workload, book=read_book(json.loads(text), label="bench"))

    def from_packed():
        sha256(packed)  # the game compares it, because the file may be damaged
        return Ours(workload, book=unpack_book(packed.decode(), label="bench", rules=rules))

    times = {make: [] for make in (from_json, from_packed)}
    for _ in range(rounds):
        for make, took in times.items():
            gc.collect()
            took.append(timed(make)[0] * 1e3)
    for make, took in times.items():
        print(f"{make.__name__}: {min(took):.0f} to {max(took):.0f} ms, {shape}")
    judge("ready again after a restart", min(times[from_packed]), at_most=50, unit=" ms")


def row(shape, active, times):
    """Return one line of the table, in milliseconds."""
    ours, naive = times["evennia_ai"], times["naive loop"]
    rivals = [ms(times[name].median("next")) if name in times else "-" for name in RIVALS]
    figures = [ms(ours.median(what)) for what in ("build", "first", "next")]
    ratios = [naive.median(what) / ours.median(what) for what in ("first", "next")]
    kind = "mixed" if shape.mixed else "rec" if shape.recursive else "flat"
    kind += f" +{shape.strays}" if shape.strays else ""
    return (
        f"| {shape.entries:,} | {active:,} | {kind} | {shape.messages} | {shape.depth or 'all'} | "
        + " | ".join([*figures, *rivals, *(f"{ratio:,.0f}" for ratio in ratios)])
        + " |"
    )


RIVALS = [name for name in DRIVERS if name != "evennia_ai"]
HEAD = (
    ["entries", "active", "kind", "messages", "depth", "build", "first", "next"]
    + [f"{name}, next" for name in RIVALS]
    + ["naive / first", "naive / next"]
)


def ms(seconds):
    return (
        "-"
        if seconds is None
        else f"{seconds * 1e3:.3g}"
        if seconds < 1
        else f"{seconds * 1e3:.0f}"
    )


def judge(what, value, *, at_least=None, at_most=None, unit=""):
    """Print one line about a measurement and its limit. Return True if it is met."""
    met = value >= at_least if at_least is not None else value <= at_most
    asked = f"at least {at_least:,g}" if at_least is not None else f"at most {at_most:,g}"
    print(f"{what}: {value:,.3g}{unit}, asked {asked}{unit}: {'met' if met else 'MISSED'}")


def judgements(found, alike):
    """Check our limits, on the largest book that was measured."""
    large = max(shape.entries for shape in found)
    mixed = Shape(entries=large)
    ours, naive = found[mixed]["evennia_ai"], found[mixed]["naive loop"]
    judge(f"naive / next turn, {mixed}", naive.median("next") / ours.median("next"), at_least=1000)
    judge(f"naive / first turn, {mixed}", naive.median("first") / ours.median("first"), at_least=50)
    few = Shape(entries=large, active=max(FEWEST, large // 100), recursive=True)
    for recursive in (False, True):
        strays = with_strays(large, recursive=recursive)
        ms_next = found[strays]["evennia_ai"].median("next") * 1e3
        judge(f"next turn, {strays}", ms_next, at_most=1, unit=" ms")
    if few in found:
        for what, most in (("next", 0.7), ("verdicts", 5)):
            took = found[few]["evennia_ai"].median(what) * 1e3
            judge(f"{what}, {few}", took, at_most=most, unit=" ms")
    for small, same in alike:
        ratio = found[same]["evennia_ai"].median("next") / found[small]["evennia_ai"].median("next")
        judge(f"next turn: {same} / {small}", ratio, at_most=1.5)
    rows = [shape for shape in found if shape.entries == large]
    slowest = max(rows, key=lambda shape: found[shape]["evennia_ai"].median("next"))
    worst = found[slowest]["evennia_ai"].median("next") * 1e3
    judge(f"slowest next turn of {large:,} entries, {slowest}", worst, at_most=2, unit=" ms")


def equally_active(sizes):
    """Yield pairs of a small and a large book that have equally many active entries."""
    for recursive in (False, True):
        for depth in (4, 50):
            pair = [
                Shape(entries=size, active=10, depth=depth, recursive=recursive)
                for size in (min(sizes), max(sizes))
            ]
            yield tuple(pair)
    yield Shape(entries=min(sizes)), Shape(entries=max(sizes))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--preset", choices=["evennia_ai", "sillytavern"], default="evennia_ai")
    parser.add_argument("--count", choices=list(COUNTERS), default="chars", help="tokens, for ours")
    parser.add_argument(
        "--cpu", action="store_true", help="count the processor time of this process"
    )
    parser.add_argument("--brief", action="store_true", help="measure only scan depth 50")
    parser.add_argument(
        "--small", action="store_true", help="a short test run: small books, few turns"
    )
    parser.add_argument("--restart", action="store_true", help="measure only a restart")
    options = parser.parse_args()
    # This is set as in a running server (`game.service`).
    gc.set_threshold(*gc.get_threshold()[:2], 100_000)
    if options.cpu:
        Clock.read = time.process_time
    if options.restart:
        restart(Shape(entries=LARGE, active=LARGE // 100, recursive=True), options.rounds)
        return
    sizes, windows = (SIZES[:2], WINDOWS[:2]) if options.small else (SIZES, WINDOWS)
    windows = BRIEF if options.brief else windows
    rounds, turns = (1, 3) if options.small else (options.rounds, options.turns)
    makers = {name: partial(make, preset=options.preset) for name, make in DRIVERS.items()}
    makers["evennia_ai"] = partial(makers["evennia_ai"], count=options.count)
    alike = list(equally_active(sizes))
    rows = dict.fromkeys([*shapes(sizes, windows), *chain.from_iterable(alike)])
    if not options.small:
        rows[Shape(entries=LARGEST, active=LARGEST // 100, recursive=True)] = None
    unit = "ms of this process" if options.cpu else "ms"
    print(f"python {platform.python_version()}, preset {options.preset}, times in {unit}\n")
    print("| " + " | ".join(HEAD) + " |\n" + "|---" * len(HEAD) + "|")
    found = {}
    for shape in rows:
        workload = Workload(shape, turns=turns)
        ready, active = check(workload, makers)
        found[shape] = measure(workload, ready, rounds)
        print(row(shape, active, found[shape]), flush=True)
    print()
    for size in sizes:
        book, turn = memory(Shape(entries=size, active=max(FEWEST, size // 100), recursive=True))
        print(
            f"memory of {size:,} entries: {book / 1e6:.1f} MB ready, {turn / 1e6:.1f} after a turn"
        )
    large = max(sizes)
    restart(Shape(entries=large, active=max(FEWEST, large // 100), recursive=True), rounds)
    judgements({shape: times for shape, times in found.items() if shape.entries <= LARGE}, alike)


if __name__ == "__main__":
    main()
