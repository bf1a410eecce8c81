"""How much work a hostile text may make, in processor time of this process.

What other programs do to the machine is not counted, and every bound leaves many times what is
needed: a text that costs more than its length takes far longer still. This holds bounds alone;
how fast we are is measured by `benchmarks/`.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def little_work(seconds: float = 2.0) -> Iterator[None]:
    """Fails where the block took more than `seconds` of processor time."""
    began = time.process_time()
    yield
    took = time.process_time() - began
    assert took < seconds, f"took {took:.1f} s of processor time, {seconds} are allowed"
