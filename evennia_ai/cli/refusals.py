"""What is said about bad input: one line, short, without anything a terminal would obey."""

import sys
from collections.abc import Mapping
from typing import Final

from evennia_ai.errors import (
    BudgetError,
    ComponentValueError,
    DuplicateComponentError,
    EvenniaAIError,
    FormatError,
    StaticComponentError,
    TemplateError,
)
from evennia_ai.text.columns import visible

MAX_LINE: Final = 600
BAD_INPUT: Final = 2
FINDING: Final = 1
_KINDS: Final[Mapping[type[Exception], str]] = {
    BudgetError: "budget",
    ComponentValueError: "component",
    DuplicateComponentError: "component",
    StaticComponentError: "component",
    TemplateError: "template",
    RecursionError: "nesting",
}


def refuse(error: Exception | str) -> int:
    """Say on standard error what is wrong; the exit status for it."""
    sys.stderr.write(f"{one_line(f'evennia-ai: {message_of(error)}')}\n")
    return BAD_INPUT


def refusal(error: EvenniaAIError | RecursionError) -> Mapping[str, Mapping[str, str]]:
    """The error as the object that `--jsonl` answers with."""
    return {"error": {"kind": kind_of(error), "message": one_line(message_of(error))}}


def kind_of(error: Exception) -> str:
    """One word for what is wrong."""
    if isinstance(error, FormatError):
        return error.kind
    return _KINDS.get(type(error), "input")


def message_of(error: Exception | str) -> str:
    """What is wrong, in words."""
    return "is nested too deeply" if isinstance(error, RecursionError) else str(error)


def one_line(text: str) -> str:
    """`text` on one line of at most `MAX_LINE` characters, control characters made visible."""
    line = visible(" ".join(text[: 4 * MAX_LINE].split()))
    return line if len(line) <= MAX_LINE else line[: MAX_LINE - 3] + "..."
