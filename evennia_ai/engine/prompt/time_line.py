"""The time line: a line with date and minute at the end of what somebody said.

It is recorded with the message, so later prompts show the same bytes. Only the model reads it: lore
keys, memories, `{{lastMessage}}` and the offline responder use the text without it. People cannot
forge it, because what a person says is one line.
"""

from typing import Final

_BEGINS: Final = "\n[Now: "
_ENDS: Final = "]"
_LONGEST: Final = 60


def with_time_line(text: str, minute: str) -> str:
    """Return the text with the time line. Without a minute it stays as it is."""
    return f"{text}{_BEGINS}{minute}{_ENDS}" if minute else text


def without_time_line(text: str) -> str:
    """Return the text without the time line at its end, if it has one."""
    if not text.endswith(_ENDS):
        return text
    begins = text.rfind("\n", max(0, len(text) - _LONGEST))
    return text[:begins] if begins >= 0 and text.startswith(_BEGINS, begins) else text
