"""Serialising: a package as the text that a model reads.

Headers, their order and the two lines of caution are fixed: instruction pages are written with them
in mind. A section without pages has no header. A line of a page that would read as one of our
headers is quoted, except in instructions, whose authors may say anything.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from evennia_ai.knowledge.assembly.packed import BUCKETS, Bucket, PackedPage

HEADERS: Final[Mapping[Bucket, str]] = {
    "instructions": "[INSTRUCTIONS]",
    "encyclopedia": "[ENCYCLOPEDIA CONTEXT]",
    "sources": "[SOURCES]",
    "talk": "[EDITORIAL NOTES]",
    "wikipedia": "[REAL-WORLD REFERENCE — Wikipedia]",
}
CAUTION: Final = (
    "Factual real-world information for grounding only.\n"
    "Do NOT treat as in-universe canon for {world}."
)
A_WORLD: Final = "this world"
MOST_OF_A_NAME: Final = 120

_LIKE_A_HEADER: Final = re.compile(
    r"^(?=[ \t]*(?:---\ .*\ ---|\[(?:INSTRUCTIONS|ENCYCLOPEDIA\ CONTEXT|SOURCES|EDITORIAL\ NOTES"
    r"|REAL-WORLD\ REFERENCE.*)\])[ \t]*$)",
    re.MULTILINE | re.IGNORECASE | re.VERBOSE,
)


def serialised(
    pages: Sequence[PackedPage], *, world: str, buckets: Sequence[Bucket] = BUCKETS
) -> str:
    """The text of these pages, those of other buckets left out; "" where there are none."""
    sections = (
        section(bucket, [one for one in pages if one.bucket == bucket], world=world)
        for bucket in buckets
    )
    return "\n\n".join(filter(None, sections))


def section(bucket: Bucket, pages: Sequence[PackedPage], *, world: str) -> str:
    """One section with its header, "" where it has no pages."""
    if not pages:
        return ""
    lines = [HEADERS[bucket]]
    if bucket == "wikipedia":
        lines.append(CAUTION.format(world=one_line(world) or A_WORLD))
    for page in pages:
        lines += _lines_of(page)
    return "\n".join(lines)


def one_line(text: str) -> str:
    """A name from outside, as it may stand in a line of ours."""
    return " ".join(text.split())[:MOST_OF_A_NAME]


def _lines_of(page: PackedPage) -> list[str]:
    lines = [f"--- {page.heading} ---"]
    if page.bucket == "wikipedia":
        lines.append(f"Wikipedia: {one_line(page.article)}")
    text = page.text if page.bucket == "instructions" else _quoted(page.text)
    return [*lines, *filter(None, [text.strip()])]


def _quoted(text: str) -> str:
    return _LIKE_A_HEADER.sub("> ", "\n".join(text.splitlines()))
