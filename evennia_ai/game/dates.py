"""Dates: what time it is, really and in the game, to the minute, as a text."""

import time
from datetime import UTC, datetime

from django.utils.timezone import get_default_timezone
from evennia.utils import gametime

from evennia_ai.settings.kinds import TimeSuffix


def real_minute() -> str:
    """The date and the minute, in UTC."""
    return f"{datetime.fromtimestamp(time.time(), tz=UTC):%Y-%m-%d %H:%M} UTC"


def game_minute() -> str:
    """The date and the minute of Evennia's game time, "" for one that no calendar has."""
    try:
        now = datetime.fromtimestamp(gametime.gametime(absolute=True), tz=get_default_timezone())
    except (OSError, OverflowError, ValueError):
        return ""
    return f"{now:%Y-%m-%d %H:%M}"


def minute_of(suffix: TimeSuffix) -> str:
    """The minute as the setting wants it beside what is said, "" for none."""
    if not suffix:
        return ""
    return real_minute() if suffix == "real" else game_minute()
