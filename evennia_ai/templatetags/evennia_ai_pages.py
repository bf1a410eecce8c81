"""For our pages: how templates show moments, and texts that anybody may have written."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from django import template
from django.utils.html import format_html
from django.utils.timezone import localtime

from evennia_ai.engine.text.columns import escape_controls
from evennia_ai.engine.text.columns import first_line as first
from evennia_ai.store.history import branches

register = template.Library()
_LINE_WIDTH: Final = 96


@register.filter  # type: ignore[untyped-decorator]
def shown(text: object) -> str:
    """A text with its lines, in which nothing acts: no control, no turn of the reading direction.

    It is no markup either: Django escapes what a template prints.
    """
    return "\n".join(escape_controls(line) for line in str(text).splitlines())


@register.filter  # type: ignore[untyped-decorator]
def line(text: object) -> str:
    """Its first line, in the same way."""
    return first(str(text))


@register.filter  # type: ignore[untyped-decorator]
def when(seconds: float | None) -> str:
    """A moment in the time zone of the server."""
    if seconds is None:
        return "-"
    return str(localtime(datetime.fromtimestamp(seconds, tz=UTC)).strftime("%Y-%m-%d %H:%M:%S"))


@register.filter  # type: ignore[untyped-decorator]
def taken(seconds: float | None) -> str:
    """How long something took."""
    return "under way" if seconds is None else f"{seconds:.1f} s"


@register.filter  # type: ignore[untyped-decorator]
def as_line(percents: Sequence[int]) -> str:
    """Percents, oldest first, as a line; who cannot see it is read the numbers."""
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
    """Return the reference of the NPC, where it may be that of a builder's branch of it."""
    return branches.npc_of(ref)


@register.filter  # type: ignore[untyped-decorator]
def of(mapping: dict[str, Any], key: str) -> Any:
    """What a mapping has for a key, nothing where it has none."""
    return mapping.get(key)
