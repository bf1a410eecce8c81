"""Regular expressions as keys: JavaScript's dialect, read into a tree, run under a time limit.

No text of a stranger reaches an engine that may take for ever: what is written is parsed, written
anew, and searched by an engine that can be stopped, or not at all.
"""

from evennia_ai.lorebook.patterns.pattern import Pattern, Refused, is_delimited, read_pattern
from evennia_ai.lorebook.patterns.together import Patience, SearchedText

__all__ = ["Patience", "Pattern", "Refused", "SearchedText", "is_delimited", "read_pattern"]
