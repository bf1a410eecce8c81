"""Template filters and tags for our web pages: times, icons, and texts of other people."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final
from zlib import crc32

from django import template
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.timezone import localtime

from evennia_ai.engine.text.columns import escape_controls
from evennia_ai.engine.text.columns import first_line as first
from evennia_ai.engine.text.phrases import Phrase
from evennia_ai.services.llm.money import describe_cost, in_dollars
from evennia_ai.store.history import branches

register = template.Library()
_LINE_WIDTH: Final = 96
_HUES: Final = 12
"""The number of colours of faces, the classes `hue-0` and so on in pages.css."""
ICONS: Final[Mapping[str, str]] = {
    "home": "M4 11l8-7 8 7M6 10v10h12V10",
    "person": "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8M4 20c1.5-4 4.5-5 8-5s6.5 1 8 5",
    "book": "M12 6c-2-1.5-5-2-8-2v14c3 0 6 .5 8 2 2-1.5 5-2 8-2V4c-3 0-6 .5-8 2v14",
    "pages": "M7 3h8l4 4v14H7zM15 3v4h4M10 12h6M10 16h6",
    "pulse": "M3 13h4l3-8 4 14 3-6h4",
    "door": "M13 3H6v18h7M10 12h11M17 8l4 4-4 4",
    "bookmark": "M7 3h10v18l-5-4-5 4z",
    "warning": "M12 4L2.5 20h19zM12 10v4M12 17v.5",
    "check": "M5 12.5l5 5L20 7",
    "stop": "M8 3h8l5 5v8l-5 5H8l-5-5V8zM9 9l6 6M15 9l-6 6",
    "play": "M7 4l13 8-13 8z",
    "speech": "M4 5h16v11H9l-5 4z",
    "plus": "M12 5v14M5 12h14",
    "search": "M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13M15.5 15.5L21 21",
    "bulb": "M9 18h6M10 21h4M8 14a6 6 0 1 1 8 0c-1 1-1 2-1 4H9c0-2 0-3-1-4",
}
"""The path of each icon in a square of 24 by 24. Icons are drawn as lines in the text's colour."""


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
def clock(seconds: float) -> str:
    """Return a time of today as hour and minute, and an older one with its date."""
    at, now = localtime(datetime.fromtimestamp(seconds, tz=UTC)), localtime()
    return str(at.strftime("%H:%M" if at.date() == now.date() else "%Y-%m-%d %H:%M"))


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
def of(mapping: Mapping[Any, Any], key: Any) -> Any:
    """Return the value of a key in a mapping, or None. A page may have no mapping."""
    return mapping.get(key) if mapping else None


@register.filter  # type: ignore[untyped-decorator]
def of_part(marks: Any, message: Mapping[str, Any]) -> Mapping[int, Any]:
    """Return the places of highlighted words in a message, by the index of the part."""
    if not marks:
        return {}
    count = range(len(message["parts"]))
    return {at: marks[key] for at in count if (key := f"{message['index']}.{at}") in marks}


@register.filter  # type: ignore[untyped-decorator]
def named(names: Mapping[str, str], ref: str) -> str:
    """Return the name with this reference, or "#" and the reference if it is not known."""
    return names.get(ref, f"#{ref}")


@register.simple_tag  # type: ignore[untyped-decorator]
@cache
def icon(name: str) -> SafeString:
    """Return an icon of `ICONS` as SVG. Screen readers skip it, so words must stand next to it."""
    return format_html(
        '<svg class="icon" viewBox="0 0 24 24" aria-hidden="true"><path d="{}"></path></svg>',
        ICONS[name],
    )


@register.simple_tag  # type: ignore[untyped-decorator]
def marked(text: str, spans: Sequence[tuple[int, int]] | None) -> SafeString:
    """Return a text as `shown` does, with the words at these places highlighted."""
    pieces, at = [], 0
    for start, end in spans or ():
        pieces += [(_inert(text[at:start]), _inert(text[start:end]))]
        at = end
    return format_html("{}{}", format_html_join("", "{}<mark>{}</mark>", pieces), _inert(text[at:]))


def _inert(text: str) -> str:
    """Return a piece of a text as `shown` does, with the line break at its end."""
    return str(shown(f"{text}."))[:-1]


@register.simple_tag(takes_context=True)  # type: ignore[untyped-decorator]
def pages_address(context: Mapping[str, Any]) -> str:
    """Return the address of the pages, "" if the game has none or this user may not open them."""
    try:
        address = reverse("evennia_ai:village")
    except NoReverseMatch:
        return ""
    # Imported here because it needs the running game, which not every process with templates has.
    from evennia_ai.web.site.page import BUILDER, has_rank

    return str(address) if has_rank(context["request"], BUILDER) else ""


@register.simple_tag(takes_context=True)  # type: ignore[untyped-decorator]
def own_data_link(context: Mapping[str, Any]) -> dict[str, str]:
    """Return the link to the page where players see their data, empty if there is none to show."""
    account = context["request"].user
    try:
        address = str(reverse("evennia_ai:own_data"))
    except NoReverseMatch:
        return {}
    if not account.is_authenticated:
        return {}
    from evennia_ai.npc.senses.languages import language_of, translate

    return {
        "address": address,
        "label": translate(Phrase("NPCs and you"), language_of(account)),
    }


@register.simple_tag  # type: ignore[untyped-decorator]
def face(name: str, kind: str = "") -> SafeString:
    """Return a round face with the first letter of a name, in a colour that the name decides."""
    letter = next((one for one in name if one.isalnum()), "?").upper()
    hue = crc32(name.encode()) % _HUES
    return format_html(
        '<span class="face {} hue-{}" aria-hidden="true">{}</span>', kind, hue, letter
    )
