"""Regular expressions as keys: JavaScript's dialect, searched with a limit of steps.

A key goes through the files in this order. `parsing` reads it into a `tree` of `chars`, so no text
of a stranger reaches an engine as it is written. `writing` writes the tree for PCRE2, which counts
its steps and stops at a limit. `pattern` searches.
"""


class BrokenPatternError(ValueError):
    """A text that is no regular expression of JavaScript; the message says why and where."""


class UnsupportedPatternError(ValueError):
    """A regular expression of JavaScript that cannot run here; the message says why."""
