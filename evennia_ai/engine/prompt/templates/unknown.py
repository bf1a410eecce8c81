"""Which macros of a text nothing here knows: they are sent as they are written.

One answer for all who tell it: the imports and lints of cards, lorebooks and presets.
"""

import re
from collections.abc import Iterator
from typing import Final

from evennia_ai.engine.prompt.templates.chunks import Value, inside
from evennia_ai.engine.prompt.templates.macros import split_macros
from evennia_ai.engine.prompt.templates.value_names import KNOWN_NAMES, OUTLET

MOST_UNKNOWN: Final = 50
"""Macros that are told of one text."""
_LONGEST: Final = 60
# A macro that is open where another one begins, as in `{{reverse:{{user}}}}`.
_OPEN: Final = re.compile(r"\{\{\s*[A-Za-z_#/][^{}:]{0,40}::?")


def unknown_macros(text: str, *, known: frozenset[str] = KNOWN_NAMES) -> tuple[str, ...]:
    """The macros of an imported text that stay as they are written, each once, in their order.

    `known` are the names that have a value, in small letters.
    """
    if "{{" not in text:
        return ()
    found: dict[str, None] = {}
    for written in _unknown(text, known):
        found[_shown(written)] = None
        if len(found) == MOST_UNKNOWN:
            break
    return tuple(found)


def _unknown(text: str, known: frozenset[str]) -> Iterator[str]:
    split = split_macros(text, v1_names=True)
    foreign = frozenset(split.foreign)
    for chunk in inside(split.chunks):
        if isinstance(chunk, Value) and not (chunk.name in known or chunk.name.startswith(OUTLET)):
            yield chunk.written
        elif isinstance(chunk, str) and (chunk in foreign):
            yield chunk
        elif isinstance(chunk, str) and (opened := _OPEN.search(chunk)):
            yield opened[0]


def _shown(written: str) -> str:
    line = " ".join(written.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 5]}...}}}}"
