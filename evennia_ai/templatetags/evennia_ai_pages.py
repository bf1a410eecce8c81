"""Template filters for our web pages: times, and texts that anybody may have written."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from django import template
from django.utils.html import format_html
from django.utils.timezone import localtime

from evennia_ai.engine.text.columns import escape_controls
from evennia_ai.engine.text.columns import first_line as first
from evennia_ai.services.llm.money import describe_cost, in_dollars
from evennia_ai.store.history import branches

register = template.Library()
_LINE_WIDTH: Final = 96


@register.filter  # type: ignore[untyped-decorator]
def shown(text: object) -> str:
    """Return a text without effective control characters or changes of the reading direction.

    Line breaks stay. The result is not marked as safe, so Django escapes markup in it.
    """
    return "\n".join(escape_controls(line) for line in str(text).splitlines())


@register.filter  # type: ignore[untyped-decorator]
def line(text: object) -> str:
    """Return the first line of a text, without control characters."""
    return first(str(text))


@register.filter  # type: ignore[untyped-decorator]
def when(seconds: float | None) -> str:
    """Return a time in the time zone of the server."""
    if seconds is None:
        return "-"
    return str(localtime(datetime.fromtimestamp(seconds, tz=UTC)).strftime("%Y-%m-%d %H:%M:%S"))


@register.filter  # type: ignore[untyped-decorator]
def taken(seconds: float | None) -> str:
    """Return a duration in seconds as text, or "under way" for None."""
    return "under way" if seconds is None else f"{seconds:.1f} s"


@register.filter  # type: ignore[untyped-decorator]
def cost(nanodollars: int | None, unpriced_calls: int = 0) -> str:
    """Return what calls of models cost, in dollars."""
    return describe_cost(nanodollars, unpriced_calls)


@register.filter  # type: ignore[untyped-decorator]
def amount(nanodollars: int) -> str:
    """Return an amount of money, in dollars."""
    return in_dollars(nanodollars)


@register.filter  # type: ignore[untyped-decorator]
def as_line(percents: Sequence[int]) -> str:
    """Return a line chart of percentages as SVG, oldest first.

    Screen readers get the numbers.
    """
    step = _LINE_WIDTH / max(1, len(percents) - 1)
    points = " ".join(
        f"{at * step:.1f},{20 - percent / 5:.1f}" for at, percent in enumerate(percents)
    )
    told = ", ".join(f"{percent} %" for percent in percents)
    drawn: str = format_html(
        '<svg class="line" viewBox="-1 -1 {} 22" width="{}" height="22" role="img" aria-label="{}">'
        '<polyline points="{}"></polyline></svg>',
        _LINE_WIDTH + 2,
        _LINE_WIDTH + 2,
        f"share from caches, oldest call first: {told}",
        points,
    )
    return drawn


@register.filter  # type: ignore[untyped-decorator]
def npc_of(ref: str) -> str:
    """Return the reference of an NPC, given its own reference or that of a builder's branch."""
    return branches.npc_of(ref)


@register.filter  # type: ignore[untyped-decorator]
def of(mapping: Mapping[str, Any], key: str) -> Any:
    """Return the value of a key in a mapping, or None."""
    return mapping.get(key)


@register.filter  # type: ignore[untyped-decorator]
def named(names: Mapping[str, str], ref: str) -> str:
    """Return the name with this reference, or "#" and the reference if it is not known."""
    return names.get(ref, f"#{ref}")
