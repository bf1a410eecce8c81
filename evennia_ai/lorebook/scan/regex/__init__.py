"""Regular expressions as keys: JavaScript's dialect, read into a tree, run under a time limit.

No text of a stranger reaches an engine that may take for ever: what is written is parsed, written
anew, and searched by an engine that can be stopped, or not at all.
"""

from evennia_ai.lorebook.scan.regex.pattern import (
    MOST_SEARCHED,
    TEXT_SECONDS,
    Patience,
    Pattern,
    PatternGivenUpError,
    Refused,
    SearchedText,
    is_delimited,
    read_pattern,
)

__all__ = [
    "MOST_SEARCHED",
    "TEXT_SECONDS",
    "Patience",
    "Pattern",
    "PatternGivenUpError",
    "Refused",
    "SearchedText",
    "is_delimited",
    "read_pattern",
]
