"""Stands in for the package `typeguard` where tests start Evennia: it checks nothing.

Evennia imports `inflect`, which lets typeguard rewrite it function by function at import. That is
more than half of the time in which Evennia starts, and no test is about `inflect`.
"""

from collections.abc import Callable
from typing import Any


def typechecked(target: Any = None, **_: Any) -> Any:
    """The target as it is; the decorator itself where it is called with options."""
    if target is None:
        return _as_it_is
    return target


_as_it_is: Callable[[Any], Any] = typechecked
