"""The values of `{{time}}`, `{{date}}` and similar macros for one moment.

The moment is stored with the turn, in ISO 8601 with the offset of its time zone. Formats are those
of SillyTavern's `{{datetimeformat}}` (moment.js), always in English.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

from evennia_ai.engine.errors import TemplateError
from evennia_ai.engine.prompt.templates.value_names import CLOCK

_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
# Predefined formats of moment.js. Those in small letters are the short forms.
_LOCAL: Final = {
    "LTS": "h:mm:ss A",
    "LT": "h:mm A",
    "L": "MM/DD/YYYY",
    "LL": "MMMM D, YYYY",
    "LLL": "MMMM D, YYYY h:mm A",
    "LLLL": "dddd, MMMM D, YYYY h:mm A",
    "l": "M/D/YYYY",
    "ll": "MMM D, YYYY",
    "lll": "MMM D, YYYY h:mm A",
    "llll": "ddd, MMM D, YYYY h:mm A",
}
_NAMED: Final = {
    "time": "LT",
    "date": "LL",
    "weekday": "dddd",
    "isotime": "HH:mm",
    "isodate": "YYYY-MM-DD",
}


def _ordinal(number: int) -> str:
    teen = number // 10 % 10 == 1
    return f"{number}{'th' if teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def _offset(now: datetime, colon: str) -> str:
    minutes = int((now.utcoffset() or timedelta()).total_seconds()) // 60
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}{colon}{abs(minutes) % 60:02}"


_PARTS: Final[Mapping[str, Callable[[datetime], str]]] = {
    "YYYY": lambda now: f"{now.year:04}",
    "YY": lambda now: f"{now.year % 100:02}",
    "Y": lambda now: str(now.year),
    "Q": lambda now: str((now.month + 2) // 3),
    "Qo": lambda now: _ordinal((now.month + 2) // 3),
    "MMMM": lambda now: _MONTHS[now.month - 1],
    "MMM": lambda now: _MONTHS[now.month - 1][:3],
    "MM": lambda now: f"{now.month:02}",
    "Mo": lambda now: _ordinal(now.month),
    "M": lambda now: str(now.month),
    "DDDD": lambda now: f"{now.timetuple().tm_yday:03}",
    "DDDo": lambda now: _ordinal(now.timetuple().tm_yday),
    "DDD": lambda now: str(now.timetuple().tm_yday),
    "DD": lambda now: f"{now.day:02}",
    "Do": lambda now: _ordinal(now.day),
    "D": lambda now: str(now.day),
    "dddd": lambda now: _DAYS[now.weekday()],
    "ddd": lambda now: _DAYS[now.weekday()][:3],
    "dd": lambda now: _DAYS[now.weekday()][:2],
    "do": lambda now: _ordinal(now.isoweekday() % 7),
    "d": lambda now: str(now.isoweekday() % 7),
    "e": lambda now: str(now.isoweekday() % 7),
    "E": lambda now: str(now.isoweekday()),
    "WW": lambda now: f"{now.isocalendar().week:02}",
    "Wo": lambda now: _ordinal(now.isocalendar().week),
    "W": lambda now: str(now.isocalendar().week),
    "GGGG": lambda now: f"{now.isocalendar().year:04}",
    "HH": lambda now: f"{now.hour:02}",
    "H": lambda now: str(now.hour),
    "hh": lambda now: f"{(now.hour + 11) % 12 + 1:02}",
    "h": lambda now: str((now.hour + 11) % 12 + 1),
    "kk": lambda now: f"{now.hour or 24:02}",
    "k": lambda now: str(now.hour or 24),
    "mm": lambda now: f"{now.minute:02}",
    "m": lambda now: str(now.minute),
    "ss": lambda now: f"{now.second:02}",
    "s": lambda now: str(now.second),
    "SSS": lambda now: f"{now.microsecond // 1000:03}",
    "SS": lambda now: f"{now.microsecond // 10_000:02}",
    "S": lambda now: str(now.microsecond // 100_000),
    "A": lambda now: "AM" if now.hour < 12 else "PM",
    "a": lambda now: "am" if now.hour < 12 else "pm",
    "Z": lambda now: _offset(now, ":"),
    "ZZ": lambda now: _offset(now, ""),
    "X": lambda now: str(int(now.timestamp())),
    "x": lambda now: str(int(now.timestamp()) * 1000 + now.microsecond // 1000),
}
# The parts of a moment.js format, longest first, so that `MMMM` is not read as two `MM`. Text in
# square brackets is copied without the brackets.
_PART: Final = re.compile(
    r"\[([^\[\]]*)\]|" + "|".join(sorted((*_PARTS, *_LOCAL), key=lambda part: (-len(part), part)))
)


def format_moment(now: datetime, pattern: str) -> str:
    """Return a moment in a format of moment.js, in English.

    Letters that are not part of a format are copied.
    """

    def part(found: re.Match[str]) -> str:
        if found[1] is not None:
            return found[1]
        if found[0] in _LOCAL:
            return format_moment(now, _LOCAL[found[0]])
        return _PARTS[found[0]](now)

    return _PART.sub(part, pattern)


def clock_values(now: str) -> dict[str, str]:
    """Return the values of `time`, `date` and similar macros, by name, and the moment itself.

    Args:
        now: ISO 8601 with the offset of the time zone. "" if there is no clock; then there are no
            values.
    """
    if not now:
        return {}
    moment = datetime.fromisoformat(now)
    return {CLOCK: now, **{name: format_moment(moment, form) for name, form in _NAMED.items()}}


# For each unit: the most of it that a duration has in this unit, the words for one and for several
_DURATIONS: Final = (
    (60.0, 44, "a minute", "{} minutes"),
    (3600.0, 21, "an hour", "{} hours"),
    (86400.0, 25, "a day", "{} days"),
    (86400 * 30.436875, 10, "a month", "{} months"),
    (86400 * 365.2425, 10**6, "a year", "{} years"),
)


def time_between(moment: str, other: str) -> str:
    """Return how long one moment is after another one, in the words of moment.js.

    Examples are "in 3 hours" and "a month ago".
    """
    try:
        one, two = (_utc(datetime.fromisoformat(text.strip())) for text in (moment, other))
    except (ValueError, OverflowError):
        return "Invalid date"
    seconds = (one - two).total_seconds()
    words = _duration(abs(seconds))
    return f"in {words}" if seconds > 0 else f"{words} ago"


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _duration(seconds: float) -> str:
    words = "a few seconds"
    if round(seconds) > 44:
        for unit, most, one, several in _DURATIONS:
            count = int(seconds / unit + 0.5)
            words = one if count <= 1 else several.format(count)
            if count <= most:
                break
    return words


def clock_text(now: str, pattern: str, utc_hours: int | None) -> str:
    """Return a moment in a format, in its own time zone or with an offset from UTC.

    Raises:
        TemplateError: the time zone moves the moment into a year that Python cannot express.
    """
    moment = datetime.fromisoformat(now)
    try:
        if utc_hours is not None:
            moment = moment.astimezone(timezone(timedelta(hours=utc_hours)))
        return format_moment(moment, pattern)
    except (OverflowError, ValueError) as error:
        raise TemplateError("has a time in a year that cannot be expressed") from error
