"""Reasons of database errors, in words that are safe to show.

A driver's message may contain the server's address, a user, a path or SQL. Players, builders and
models read only the part that says what happened.
"""

import re
from typing import Final

_PLAIN_WORDS: Final = re.compile(r"(?:[A-Za-z][a-z]*|I/O)(?:,? (?:[A-Za-z][a-z]*|I/O))+")
"""Two or more words of letters only. No address, name, number, path or SQL matches."""


def reason_of(error: BaseException) -> str:
    """Return the reason that the driver gives for `error`, such as "Connection refused".

    The reason is the first line, or what follows its last colon. If that holds anything but plain
    words, the name of the error's class is returned instead.
    """
    first_line = next(iter(str(error).strip().splitlines()), "")
    for text in (first_line, first_line.rpartition(": ")[2].strip()):
        if _PLAIN_WORDS.fullmatch(text):
            return text
    return type(error).__name__
