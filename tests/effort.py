"""How much work a hostile text may make, in processor time of this process.

What other programs do to the machine is not counted, and every bound leaves many times what is
needed: a text that costs more than its length takes far longer still. A slower machine, or one
whose cores are shared just then, has as much more. This holds bounds alone; how fast we are is
measured by `benchmarks/`.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_STEPS: Final = 1_000_000
_USUAL_SECONDS: Final = 0.06
"""What so many steps take on the machine for which the bounds were chosen."""


def slowness() -> float:
    """How many times slower than that machine this process is just now; 1 at least."""
    began = time.process_time()
    sum(number * number for number in range(_STEPS))
    return max(1.0, (time.process_time() - began) / _USUAL_SECONDS)


@contextmanager
def little_work(seconds: float = 2.0) -> Iterator[None]:
    """Fails where the block took more than `seconds` of processor time of the usual machine."""
    began = time.process_time()
    yield
    took = time.process_time() - began
    allowed = seconds if took < seconds else seconds * slowness()
    assert took < allowed, f"took {took:.1f} s of processor time, {allowed:.1f} are allowed"
