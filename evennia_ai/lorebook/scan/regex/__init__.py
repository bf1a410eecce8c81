"""Regular expressions as keys: JavaScript's dialect, read into a tree, run under a time limit.

No text of a stranger reaches an engine that may take for ever: what is written is parsed, written
anew, and searched by an engine that can be stopped, or not at all.
"""


class BrokenPatternError(ValueError):
    """No pattern of JavaScript; the message says why and where."""


class UnsupportedPatternError(ValueError):
    """A pattern of JavaScript that cannot be run here; the message says why."""
