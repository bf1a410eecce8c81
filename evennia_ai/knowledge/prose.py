"""Prose: what of a page's text is read as markup.

Code, comments and what stands in `<nowiki>` is shown as it is written: nothing in it is a link or
a heading. Every text is looked through once, however its marks are broken.
"""

import re
from collections.abc import Iterator
from typing import Final

_CLOSED_BY: Final = {
    "<!--": "-->",
    "<nowiki>": "</nowiki>",
    "<pre>": "</pre>",
    "<code>": "</code>",
    "```": "```",
    "~~~": "~~~",
    "`": "`",
}
_OPENING: Final = re.compile(
    r"<!--|<nowiki>|<pre>|<code>|^```|^~~~|`", re.MULTILINE | re.IGNORECASE
)


def prose(text: str) -> Iterator[tuple[int, int]]:
    """The parts of `text` that are read as markup, as start and stop, in their order.

    A mark that is never closed is itself read as text; a backtick is closed on its own line.
    """
    lowered = text.translate(_SMALL)
    unclosed: set[str] = set()
    start = at = 0
    while found := _OPENING.search(text, at):
        mark = found[0].lower()
        stop = -1 if mark in unclosed else lowered.find(_CLOSED_BY[mark], found.end())
        if stop < 0:
            unclosed.add(mark)
        if stop < 0 or (mark == "`" and "\n" in lowered[found.end() : stop]):
            at = found.end()
            continue
        yield start, found.start()
        start = at = stop + len(_CLOSED_BY[mark])
    yield start, len(text)


def without_code(text: str) -> str:
    """`text` with blanks for everything that is no prose; every line stays where it is."""
    if not _OPENING.search(text):
        return text
    made: list[str] = []
    at = 0
    for start, stop in prose(text):
        made.append(_blanks(text[at:start]))
        made.append(text[start:stop])
        at = stop
    return "".join(made)


def _blanks(text: str) -> str:
    return "".join("\n" if sign == "\n" else " " for sign in text)


# ASCII letters alone: every character stays where it is.
_SMALL: Final = {big: big + 32 for big in range(ord("A"), ord("Z") + 1)}
