"""Unknown macros of a text, which are sent to the model as written.

The imports and lints of cards, lorebooks and presets all use this function to report them.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from evennia_ai.engine.prompt.templates.chunks import Value, nested_chunks
from evennia_ai.engine.prompt.templates.macros import split_macros
from evennia_ai.engine.prompt.templates.value_names import KNOWN_NAMES, OUTLET

MOST_UNKNOWN: Final = 50
"""The most macros that are reported for one text."""
_LONGEST: Final = 60
# The start of a macro with an argument. Another macro may begin in the argument, as in
# `{{reverse:{{user}}}}`.
_OPEN: Final = re.compile(r"\{\{\s*[A-Za-z_#/][^{}:]{0,40}::?")


def unknown_macros(text: str, *, known: frozenset[str] = KNOWN_NAMES) -> tuple[str, ...]:
    """Return the unknown macros of an imported text, each once, in the order of the text.

    Args:
        text: The text.
        known: The names that have a value, in lower case.
    """
    if "{{" not in text:
        return ()
    found = dict.fromkeys(_unknown(text, known))
    ordered = sorted(islice(found, MOST_UNKNOWN), key=text.find)
    return tuple(dict.fromkeys(map(_shown, ordered)))


def _unknown(text: str, known: frozenset[str]) -> Iterator[str]:
    split = split_macros(text, imported=True)
    yield from split.foreign
    for chunk in nested_chunks(split.chunks):
        if isinstance(chunk, Value) and not (chunk.name in known or chunk.name.startswith(OUTLET)):
            yield chunk.written
    for start in split.unclosed:
        if opened := _OPEN.match(text, start):
            yield opened[0]


def _shown(written: str) -> str:
    line = " ".join(written.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 5]}...}}}}"
