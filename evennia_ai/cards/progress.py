"""Progress of an import, as whoever shows it is told: what is done now, and how much of it.

A place that has nobody to show it to uses `silent`.
"""

from collections.abc import Callable

# What is done ("assets"), how many of them are done, how many there are.
Progress = Callable[[str, int, int], None]


def silent(what: str, done: int, total: int) -> None:
    """Show nothing."""
