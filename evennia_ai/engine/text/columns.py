r"""Text in columns: make untrusted text safe for a terminal or a game client.

Control characters, lone surrogates, invisible letters and marks that reverse the writing direction
become escapes such as `\x1b`. Wide characters count as two columns. Accents count as none, and only
a few are kept for each letter.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final

WIDTH: Final = 78
"""The default number of columns in a line."""

_HOSTILE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e01ef\ud800-\udfff]"
)
_MARK: Final = (
    "[\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u06d6-\u06ed\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
    "\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f]"
)
# Matches more accents on one letter than any script uses, which only hostile text contains. The
# surplus accents are removed.
_PILED: Final = re.compile(f"({_MARK}{{6}})({_MARK}+)")


def escape_controls(text: str) -> str:
    """Return a text on one line, with characters that control a terminal shown as escapes."""
    plain = _HOSTILE.sub(lambda found: _escape_character(found[0]), text)
    if plain.isascii():
        return plain
    return _PILED.sub(lambda found: f"{found[1]}({len(found[2])} marks more)", plain)


def count_columns(text: str) -> int:
    """Return the number of screen columns that a text occupies."""
    return len(text) if text.isascii() else sum(_character_width(character) for character in text)


def clip_text(text: str, limit: int) -> str:
    """Return a text cut to at most `limit` columns; a cut text ends with `...`."""
    if count_columns(text) <= limit:
        return text
    end = "..."[: max(limit, 0)]
    return text[: _end_of_fitting(text, limit - len(end))] + end


def first_line(text: str) -> str:
    """Return the first line of a text that is not blank, with control characters as escapes."""
    line = next((line for line in text.splitlines() if line.strip()), "")
    return escape_controls(line.strip())


def wrap_text(text: str, limit: int) -> list[str]:
    """Return a text as lines, wrapped at words, with control characters as escapes.

    There is always at least one line.
    """
    lines = [
        piece for line in text.splitlines() for piece in _break_line(escape_controls(line), limit)
    ]
    return lines or [""]


def wrap_hanging(line: str, limit: int = WIDTH) -> list[str]:
    """Return one line wrapped at words, with control characters as escapes.

    Continuation lines are indented.
    """
    shown = escape_controls(line)
    if count_columns(shown) <= limit:
        return [shown]
    indent = " " * (len(shown) - len(shown.lstrip()))
    first, *_ = wrap_text(shown, limit)
    rest = shown[len(first) :].strip()
    inner = f"{indent}    "
    return [first, *(f"{inner}{more}" for more in wrap_text(rest, max(1, limit - len(inner))))]


def wrap_items(items: Iterable[str], limit: int) -> list[str]:
    """Return lines of items joined with commas; lines break only between items."""
    lines = [""]
    for item in items:
        longer = f"{lines[-1]}, {item}" if lines[-1] else item
        if lines[-1] and count_columns(longer) >= limit:
            lines[-1] += ","
            lines.append(item)
        else:
            lines[-1] = longer
    return [clip_text(line, limit) for line in lines]


def pad_text(text: str, limit: int) -> str:
    """Return a text cut or padded with blanks to exactly `limit` columns."""
    short = clip_text(text, limit)
    return short + " " * (limit - count_columns(short))


def _break_line(line: str, limit: int) -> Iterator[str]:
    at = 0
    while (end := _end_of_fitting(line, limit, start=at)) < len(line):
        end = max(end, at + 1)
        at_word = line.rfind(" ", at, end + 1)
        end = at_word if at_word > at and line[at:at_word].strip() else end
        yield line[at:end].rstrip()
        at = end
        while at < len(line) and line[at].isspace():
            at += 1
    yield line[at:]


def _end_of_fitting(text: str, limit: int, *, start: int = 0) -> int:
    """Return the index after the longest part of a text that fits into `limit` columns.

    The part begins at `start`.
    """
    if text.isascii():
        return min(len(text), start + max(limit, 0))
    taken = 0
    for index in range(start, len(text)):
        taken += _character_width(text[index])
        if taken > limit:
            return index
    return len(text)


def _character_width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _escape_character(character: str) -> str:
    code = ord(character)
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
