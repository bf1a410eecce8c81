"""Frames: how look-alikes of what only the game writes, such as `[Tool result]`, are undone.

A look-alike may have other case and blanks, brackets of full width, and letters inside its words
that nobody sees. Line breaks are found as JSON writes them too, but no match reaches over a quote:
it never leaves a text inside of JSON.
"""

import re
from typing import Final

_UNSEEN: Final = (
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)
_BLANK: Final = rf"(?:\s|\\[nrt]|{_UNSEEN})"
_MOST_BEHIND: Final = 80
"""Characters behind the words, inside of the brackets, that are part of a look-alike."""


def frame(*words: str) -> re.Pattern[str]:
    """What looks like a mark of these words, opening or closing, in brackets or half in them."""
    spelt = rf"{_BLANK}+".join(f"{_UNSEEN}*".join(word) for word in words)
    behind = rf"[^\[\]［］\n\"]{{0,{_MOST_BEHIND}}}"
    return re.compile(rf"[\[［]((?:{_BLANK}|/)*{spelt}{behind})([\]］]?)", re.IGNORECASE)


def has_bracket(text: str) -> bool:
    """Whether there may be a look-alike in `text` at all."""
    return "[" in text or "［" in text


def undone(pattern: re.Pattern[str], text: str) -> str:
    """`text` with round brackets where look-alikes of a frame stand."""
    return pattern.sub(_in_round_brackets, text)


def _in_round_brackets(found: re.Match[str]) -> str:
    return f"({found[1]})" if found[2] else f"({found[1]}"
