"""The time line: a line with the date and the minute at the end of a message.

The time line is recorded with the message, so later prompts show the same bytes. Only the model
reads it: key search, memories, `{{lastMessage}}` and the offline responder use the text without it.
People cannot forge a time line, because what a person says never has a second line.
"""

from typing import Final

_BEGINS: Final = "\n[Now: "
_ENDS: Final = "]"
_LONGEST: Final = 60


def with_time_line(text: str, minute: str) -> str:
    """Return the text with a time line at its end; unchanged if `minute` is ""."""
    return f"{text}{_BEGINS}{minute}{_ENDS}" if minute else text


def without_time_line(text: str) -> str:
    """Return the text without the time line at its end, if it has one."""
    if not text.endswith(_ENDS):
        return text
    begins = text.rfind("\n", max(0, len(text) - _LONGEST))
    return text[:begins] if begins >= 0 and text.startswith(_BEGINS, begins) else text
