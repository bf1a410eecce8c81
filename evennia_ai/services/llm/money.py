"""Amounts of US dollars as integers, and in words.

Sums are counted in nanodollars, billionths of a dollar, because one call of a model may cost less
than a millionth of a dollar.
"""

from typing import Final

NANODOLLARS: Final = 10**9
"""Nanodollars in a dollar."""


def describe_cost(nanodollars: int | None, unpriced_calls: int = 0) -> str:
    """Return what calls cost, such as "$0.42, 2 calls without a known price"; "" for nothing.

    Args:
        nanodollars: The cost; None for one call without a known price.
        unpriced_calls: The calls without a known price that `nanodollars` does not contain.
    """
    if nanodollars is None:
        return "no known price"
    told = [in_dollars(nanodollars)] if nanodollars else []
    if unpriced_calls:
        calls = "1 call" if unpriced_calls == 1 else f"{unpriced_calls} calls"
        told.append(f"{calls} without a known price")
    return ", ".join(told)


def as_dollars(dollars: float) -> str:
    """Return an amount of dollars in words; see `in_dollars`."""
    return in_dollars(round(dollars * NANODOLLARS))


def in_dollars(nanodollars: int) -> str:
    """Return an amount such as "$12.34" or "$0.00042". Small amounts have two digits."""
    dollars = nanodollars / NANODOLLARS
    if dollars >= 1:
        return f"${dollars:,.2f}"
    if not dollars:
        return "$0"
    digits = next(n for n in range(2, 12) if round(dollars * 10**n, 1) >= 10)
    return f"${dollars:.{digits}f}"
