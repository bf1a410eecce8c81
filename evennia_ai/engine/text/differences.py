"""What is different in two texts, sentence by sentence, as a unified diff shows it.

Authors write long paragraphs in one line: compared line by line one word would show all of it
twice. So a line is taken apart where a sentence ends.
"""

import json
import re
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from typing import Any, Final

from evennia_ai.engine.text.columns import WIDTH, visible, wrapped

_SENTENCE: Final = re.compile(r"(?<=[.!?…。！？])\s+")


def differences(before: str, after: str, *, width: int = WIDTH) -> Iterator[str]:
    """Lines of at most `width` columns: `- ` what is gone, `+ ` what is new, `  ` beside it.

    Nothing where the texts are the same; `  ...` where more of both stands between two changes.
    """
    compared = list(unified_diff(_sentences(before), _sentences(after), lineterm="", n=1))
    for line in compared[3:]:  # behind what would name two files, and where the first change is
        if line.startswith("@@"):
            yield "  ..."
            continue
        for piece in wrapped(line[1:], width - 2):
            yield f"{line[0]} {piece}".rstrip()


def members_differing(
    before: Mapping[str, Any], after: Mapping[str, Any], *, of: str = ""
) -> Iterator[str]:
    """What is different in two values, member by member; `of` stands before each name."""
    for name in dict.fromkeys((*after, *before)):
        was, now = before.get(name), after.get(name)
        if was != now:
            yield visible(f"{of}{name}:")
            yield from differences(as_text(was), as_text(now))


def as_text(value: Any) -> str:
    """A value of JSON as authors read it: a text as it is, a list of texts one to a line."""
    if value is None or (isinstance(value, list) and all(isinstance(one, str) for one in value)):
        return "\n".join(value or ())
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


def _sentences(text: str) -> list[str]:
    return [one for line in text.split("\n") for one in _SENTENCE.split(line)] if text else []
