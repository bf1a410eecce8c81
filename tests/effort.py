"""Limit how much work a hostile text may cause, in processor time of this process.

The time of other programs is not counted, and every limit is many times what is needed: a text with
more than linear cost takes far longer still. A slower or busier machine gets proportionally more
time. `benchmarks/` measures our real speed.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_STEPS: Final = 1_000_000
_USUAL_SECONDS: Final = 0.06
"""The seconds that a fixed amount of work takes on the machine for which the limits were chosen."""


def slowness() -> float:
    """Return how many times slower than that machine this process is now; at least 1."""
    began = time.process_time()
    sum(number * number for number in range(_STEPS))
    return max(1.0, (time.process_time() - began) / _USUAL_SECONDS)


@contextmanager
def little_work(seconds: float = 2.0) -> Iterator[None]:
    """Fail if the block takes more than `seconds` of processor time on that machine."""
    began = time.process_time()
    yield
    took = time.process_time() - began
    allowed = seconds if took < seconds else seconds * slowness()
    assert took < allowed, f"took {took:.1f} s of processor time, {allowed:.1f} are allowed"
