"""Regular expressions as keys: the dialect of JavaScript, searched with a limit of steps.

`parsing` parses a key into a syntax tree (`tree`) of character sets (`chars`). `writing` writes the
tree as a pattern for the engine PCRE2. So no text of an author reaches the engine unparsed.
`pattern` searches texts. PCRE2 counts its steps and stops at a limit.
"""


class BrokenPatternError(ValueError):
    """A text that is not a valid JavaScript regular expression. The message says why and where."""


class UnsupportedPatternError(ValueError):
    """A valid JavaScript regular expression that this package cannot run. The message says why."""
