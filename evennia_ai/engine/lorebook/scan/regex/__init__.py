"""Regular expressions as keys: JavaScript's dialect, read into a tree, run with a limit of steps.

No text of a stranger reaches an engine as it is written. It is parsed, checked, and written again
for an engine that counts its steps and stops at a limit.
"""


class BrokenPatternError(ValueError):
    """No pattern of JavaScript; the message says why and where."""


class UnsupportedPatternError(ValueError):
    """A pattern of JavaScript that cannot be run here; the message says why."""
