"""The line at the end of what somebody said that tells the date and the minute.

It is recorded with the message, so later prompts show the same bytes. Only the model reads it:
keys of lore, memories, `{{lastMessage}}` and the offline responder take the words without it.
What a person says is one line, so nobody can say such a line.
"""

from typing import Final

_BEGINS: Final = "\n[Now: "
_ENDS: Final = "]"
_LONGEST: Final = 60


def with_time_line(text: str, minute: str) -> str:
    """Return the text with the line; without a minute, the text as it is."""
    return f"{text}{_BEGINS}{minute}{_ENDS}" if minute else text


def without_time_line(text: str) -> str:
    """Return the text without the line at its end, if it has one."""
    if not text.endswith(_ENDS):
        return text
    begins = text.rfind("\n", max(0, len(text) - _LONGEST))
    return text[:begins] if begins >= 0 and text.startswith(_BEGINS, begins) else text
