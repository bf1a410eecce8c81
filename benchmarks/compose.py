"""Measure the time to compose one turn, compared with a naive loop and with other libraries.

    python benchmarks/compose.py [--rounds 9] [--turns 6] [--count o200k|chars] [--memo] [--cpu]

The workload W1 (`workload.py`) has a system prompt, 8 components of which 2 change every turn, 200
messages, 6 injections and a budget of 4,096 tokens. Three times are measured:

    cold   a new driver and texts that are new to the process, in turn 0
    known  the same for an NPC whose components another NPC has used; only what was said is new
    warm   a later turn, with one new message and new changing values

All drivers run alternately in one process, and every answer is checked first. Compare the ratios,
not the microseconds. `--memo` gives every driver a counter that caches its answers. `--cpu` counts
processor time, for a machine that others use too. `docs/extend/benchmarks.md` says how to install
the other libraries, and which limits our time must meet.
"""

import argparse
import gc
import platform
import statistics
import time

import workload
from counters import COUNTERS, remembered
from drivers import DRIVERS, Naive, Ours

LONG = 20_000
# The least ratio of each driver's time to the time of our warm turn, for each way of counting.
ASKED = {
    "plain": {
        "naive loop": 1 / 0.15,
        "langchain trim_messages": 35,
        "prompt-poet": 250,
        "promptbudget pack_chat": 70,
    },
    "remembered": {"naive loop": 1 / 0.8, "langchain trim_messages": 4},
    "free": {"naive loop": 1 / 0.7, "langchain trim_messages": 6, "promptbudget pack_chat": 30},
}


def plain(messages):
    """Return the messages of any driver as (role, content) pairs."""
    return [
        (m["role"], m["content"]) if isinstance(m, dict) else (m.role, m.content) for m in messages
    ]


def difference(got, want):
    got, want = plain(got), plain(want)
    if got == want:
        return "same"
    extra = len([m for m in got if m not in want])
    missing = len([m for m in want if m not in got])
    return f"{len(got)} messages, {extra} other, {missing} missing"


def checked(count, encode, turns):
    """Return the installed drivers, each with a text on how right its answers are."""
    ready = {}
    for name, make in DRIVERS.items():
        w = workload.W1(turns + 1)
        try:
            driver = make(count, encode)
        except ImportError as missing:
            print(f"left out: {name}: {missing}")
            continue
        said = {difference(driver.turn(w, t), workload.expected(w, t, count)) for t in range(3)}
        if make.exact and said != {"same"}:
            raise SystemExit(f"{name} gives a wrong answer: {said}")
        ready[name] = (make, "same" if said == {"same"} else said.pop())
    return ready


def timed(driver, w, t, clock):
    start = clock()
    driver.turn(w, t)
    return clock() - start


def first(driver, w, clock, *, count, encode):
    """Return the seconds of a driver's first turn in a process that has seen other texts."""
    gc.collect()
    # This loads the tokenizer's tables and its code into the processor's caches.
    for make in (Naive, type(driver)):
        make(count, encode).turn(workload.W1(0), 0)
    return timed(driver, w, 0, clock)


def _turned(names, by):
    """Yield the names in an order in which each is first equally often.

    The first driver is the only one that meets texts that are new to the processor's caches.
    """
    by %= len(names)
    return names[by:] + names[:by]


def measure(ready, options, count, encode):
    """Return the median seconds of a cold, a known and a warm turn, each by the driver's name."""
    cold, known, warm = ({name: [] for name in ready} for _ in range(3))
    for seed in range(options.rounds):
        for name in _turned(list(ready), seed):
            make, _ = ready[name]
            pair = (remembered(count), remembered(encode)) if options.memo else (count, encode)
            w, driver = workload.W1(options.turns + 1, texts=seed, talk=seed), make(*pair)
            used = {"count": count, "encode": encode}
            cold[name].append(first(driver, w, options.clock, **used))
            turns = range(1, options.turns + 1)
            warm[name] += [timed(driver, w, t, options.clock) for t in turns]
            other = workload.W1(options.turns + 1, texts=seed, talk=1_000 + seed)
            beside = make(*pair, beside=driver) if make is Ours else make(*pair)
            known[name].append(first(beside, other, options.clock, **used))
    return [
        {name: statistics.median(times) for name, times in one.items()}
        for one in (cold, known, warm)
    ]


def by_length(options, count, encode):
    """Return the seconds of our warm turn with 200 and with 20,000 messages."""
    turns = options.turns * options.rounds
    times = {workload.HISTORY: [], LONG: []}
    runs = {n: (workload.W1(turns, n), Ours(count, encode)) for n in times}
    for w, driver in runs.values():
        driver.turn(w, 0)
    for t in range(1, turns):
        for n, (w, driver) in runs.items():
            times[n].append(timed(driver, w, t, options.clock))
    return {n: statistics.median(values) for n, values in times.items()}


def judge(what, ratio, *, at_least=None, at_most=None):
    """Print one line about a ratio and its limit. Return True if it is met."""
    met = ratio >= at_least if at_least is not None else ratio <= at_most
    asked = f"at least {at_least:.2f}" if at_least is not None else f"at most {at_most:.2f}"
    print(f"{what}: {ratio:.2f}, asked {asked}: {'met' if met else 'MISSED'}")


def report(options, ready, cold, known, warm):
    """Print the table and the ratios that have limits. Return True if all limits are met."""
    memo = ", remembered" if options.memo else ""
    print(f"python {platform.python_version()}, counter {options.count}{memo}")
    print(f"{'driver':26} {'cold us':>9} {'known us':>9} {'warm us':>9} {'warm/ours':>10}  answer")
    ours = warm["evennia_ai"]
    for name in sorted(ready, key=warm.__getitem__):
        us = " ".join(f"{one[name] * 1e6:9.1f}" for one in (cold, known, warm))
        print(f"{name:26} {us} {warm[name] / ours:10.1f}  {ready[name][1]}")
    kind = "remembered" if options.memo else "free" if options.count == "chars" else "plain"
    for name, asked in ASKED[kind].items():
        if name in warm:
            judge(f"{name} / evennia_ai, warm", warm[name] / ours, at_least=asked)
    judge("cold / naive cold", cold["evennia_ai"] / cold["naive loop"], at_most=1.5)
    judge("known / naive known", known["evennia_ai"] / known["naive loop"], at_most=1.5)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--count", choices=COUNTERS, default="o200k")
    parser.add_argument("--memo", action="store_true")
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args()
    options.clock = time.process_time if options.cpu else time.perf_counter
    try:
        count, encode = COUNTERS[options.count]()
    except ImportError as missing:
        raise SystemExit(f"{missing}; install rs-bpe or use --count chars") from None
    ready = checked(count, encode, options.turns)
    report(options, ready, *measure(ready, options, count, encode))
    length = by_length(options, count, encode)
    judge(
        f"warm at {LONG:,} messages / at {workload.HISTORY}",
        length[LONG] / length[workload.HISTORY],
        at_most=1.3,
    )


if __name__ == "__main__":
    main()
