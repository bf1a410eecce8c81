"""Describe database errors in words that are safe to show.

A driver's message may contain the server's address, a user, a path or SQL. Players, builders and
models may read only the part that says what happened.
"""

import re
from typing import Final

_PLAIN_WORDS: Final = re.compile(r"(?:[A-Za-z][a-z]*|I/O)(?:,? (?:[A-Za-z][a-z]*|I/O))+")
"""Matches a text of two or more plain words, without any address, name, number, path or SQL."""


def reason_of(error: BaseException) -> str:
    """Return the reason that the driver gives for `error`, such as "Connection refused".

    The reason is the first line of the driver's message, or the part after its last colon. If this
    is not made of plain words only, the name of the error's class is returned.
    """
    first_line = next(iter(str(error).strip().splitlines()), "")
    for text in (first_line, first_line.rpartition(": ")[2].strip()):
        if _PLAIN_WORDS.fullmatch(text):
            return text
    return type(error).__name__
