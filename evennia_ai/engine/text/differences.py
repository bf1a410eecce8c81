"""Differences between two texts, sentence by sentence, in the form of a unified diff.

Authors write long paragraphs on one line. A comparison by lines would show the whole paragraph
twice if one word changed. So lines are split into sentences first.
"""

import json
import re
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from typing import Any, Final

from evennia_ai.engine.text.columns import WIDTH, escape_controls, wrap_text

_SENTENCE: Final = re.compile(r"(?<=[.!?…。！？])\s+")


def diff_texts(before: str, after: str, *, width: int = WIDTH) -> Iterator[str]:
    """Yield the lines of a diff: `- ` for removed, `+ ` for added, two blanks for context.

    The line ` ...` marks a gap between two changes. Equal texts yield no lines.
    """
    compared = list(unified_diff(_sentences(before), _sentences(after), lineterm="", n=1))
    for line in compared[3:]:  # skip the two file names and the first position
        if line.startswith("@@"):
            yield "  ..."
            continue
        for piece in wrap_text(line[1:], width - 2):
            yield f"{line[0]} {piece}".rstrip()


def diff_members(
    before: Mapping[str, Any], after: Mapping[str, Any], *, of: str = ""
) -> Iterator[str]:
    """Yield the lines of a diff of two mappings, key by key. `of` is a prefix for the keys."""
    for name in dict.fromkeys((*after, *before)):
        was, now = before.get(name), after.get(name)
        if was != now:
            yield escape_controls(f"{of}{name}:")
            yield from diff_texts(render_value(was), render_value(now))


def render_value(value: Any) -> str:
    """Render a JSON value as text for authors.

    Text is unchanged, and a list of texts has one text per line.
    """
    if value is None or (isinstance(value, list) and all(isinstance(one, str) for one in value)):
        return "\n".join(value or ())
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


def _sentences(text: str) -> list[str]:
    return [one for line in text.split("\n") for one in _SENTENCE.split(line)] if text else []
