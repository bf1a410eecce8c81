"""Every error this package raises on purpose.

A message says what is wrong, where, what was wanted and what to do; the facts are attributes
too. A class exists only where a caller would catch it alone. Authors' mistakes met during a turn
(a bad template, an entry that cannot be evaluated) are verdicts, not exceptions.
"""

from collections.abc import Sequence


class EvenniaAIError(Exception):
    """Base of all errors of evennia_ai."""


class ComponentValueError(EvenniaAIError):
    """A field of a prompt component has a value it cannot have."""

    def __init__(self, field: str, value: object, wanted: str) -> None:
        self.field = field
        self.value = value
        self.wanted = wanted
        super().__init__(self.in_words(field))

    def in_words(self, called: str) -> str:
        """The message for those who know the field by this name."""
        return f"{called} {_shown(self.value)} is not allowed: it must be {self.wanted}"


class UnknownComponentError(EvenniaAIError):
    """No component has this key or id."""

    def __init__(self, wanted: object, known: Sequence[str] = (), *, where: str = "") -> None:
        self.wanted = wanted
        self.where = where
        scope = f" of the scope {where}" if where else ""
        near = f"; known keys are {', '.join(known)}" if known else ""
        super().__init__(f"there is no component {_shown(wanted)}{scope}{near}")


class DuplicateComponentError(EvenniaAIError):
    """Two components of one scope want the same key or the same registry ID."""

    def __init__(self, field: str, value: object, taken_by: str) -> None:
        self.field = field
        self.value = value
        self.taken_by = taken_by
        super().__init__(self.in_words(field))

    def in_words(self, called: str) -> str:
        """The message for those who know the field by this name."""
        taken = f"is already taken by component '{self.taken_by}'; choose another"
        return f"{called} {_shown(self.value)} {taken}"


class StaticComponentError(EvenniaAIError):
    """A static component would be removed, renumbered or renamed."""

    def __init__(self, key: str, action: str) -> None:
        self.key = key
        self.action = action
        super().__init__(
            f"component '{key}' is static and cannot be {action};"
            " it can be disabled or given other content"
        )


class EditConflictError(EvenniaAIError):
    """Somebody else changed the thing since the editor looked at it."""

    def __init__(self, what: str, seen: int, current: int, changed_by: str) -> None:
        self.what = what
        self.seen = seen
        self.current = current
        self.changed_by = changed_by
        super().__init__(
            f"{what} was changed by {changed_by} while you edited it (you saw revision {seen},"
            f" it is now {current}); nothing was saved: look at it again and repeat your change"
        )


class TemplateError(EvenniaAIError):
    """A template cannot be compiled or rendered."""

    def __init__(self, problem: str, *, line: int | None = None) -> None:
        self.problem = problem
        self.line = line
        super().__init__(problem if line is None else f"line {line}: {problem}")


class BudgetError(EvenniaAIError):
    """What is required does not fit; names every required piece and its tokens."""

    def __init__(self, limit_tokens: int, required: Sequence[tuple[str, int]]) -> None:
        self.limit_tokens = limit_tokens
        self.required = tuple(required)
        total = sum(tokens for _, tokens in required)
        pieces = ", ".join(f"{origin} {tokens}" for origin, tokens in required)
        super().__init__(
            f"the required pieces need {total} tokens and the limit is {limit_tokens}: {pieces};"
            " shorten one, make one not required, or raise the limit"
        )


class ContextError(EvenniaAIError):
    """A context (profile) or its layering is wrong."""


class FormatError(EvenniaAIError):
    """Foreign data (scenario, card, book) cannot be read; `kind` is one word, the text one line.

    Where a member of an entry is wrong, `path` are the steps from the entry down to it and
    `problem` is what is wrong with it, for those who did not write the file.
    """

    def __init__(
        self, kind: str, message: str, *, path: Sequence[str | int] = (), problem: str = ""
    ) -> None:
        self.kind = kind
        self.message = message
        self.path = tuple(path)
        self.problem = problem
        super().__init__(message)


class NotYetError(FormatError):
    """The data asks for something this version does not do yet; it is refused, never ignored."""

    def __init__(self, what: str, where: str) -> None:
        self.what = what
        self.where = where
        super().__init__("unsupported", f"{where}: {what} is not supported yet; take it out")


def _shown(value: object) -> str:
    """`value` for a message: quoted text, cut to a length that fits a line."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
