"""Time lines: when something was said, as a line of its own behind its words.

The minute is written down with the record, in its meta, so every later prompt shows the same bytes
and the words stay as they were said. Where a game wants no time, no record has one.
"""

from typing import Final

from evennia_ai.history.records import Record

MINUTE: Final = "minute"
"""In the meta of a record: the date and the minute that prompts show with it."""


def with_time_line(text: str, minute: str) -> str:
    """`text` and the minute it was said in; what is heard is one line, so nobody can say this."""
    return f"{text}\n[Now: {minute}]" if minute else text


def minute_in(record: Record) -> str:
    """The minute that was written down with a record, "" for none."""
    minute = record.meta.get(MINUTE, "")
    return minute if isinstance(minute, str) else ""
