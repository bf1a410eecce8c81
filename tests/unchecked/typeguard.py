"""A replacement for the package `typeguard` in tests that start Evennia. It checks nothing.

Evennia imports `inflect`, whose functions typeguard rewrites one by one at import. That takes more
than half of Evennia's start, and no test is about `inflect`.
"""

from collections.abc import Callable
from typing import Any


def typechecked(target: Any = None, **_: Any) -> Any:
    """Return the target unchanged, or this decorator if it is called with options."""
    if target is None:
        return _as_it_is
    return target


_as_it_is: Callable[[Any], Any] = typechecked
