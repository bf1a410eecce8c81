"""Regular expressions as keys: JavaScript's dialect, searched with a limit of steps.

The modules process a key in this order. `parsing` parses it into a syntax tree (`tree`) of
character sets (`chars`), so that no untrusted text reaches a regex engine as it is. `writing`
writes the tree as a pattern for PCRE2, which counts its steps and stops at a limit. `pattern`
searches texts for it.
"""


class BrokenPatternError(ValueError):
    """A text that is not a valid JavaScript regular expression. The message says why and where."""


class UnsupportedPatternError(ValueError):
    """A valid JavaScript regular expression that this package cannot run. The message says why."""
