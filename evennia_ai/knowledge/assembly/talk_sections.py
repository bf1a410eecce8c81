"""Talk sections: of a talk page only what writers may rely on; the rest is conversation."""

from collections.abc import Iterator, Sequence
from typing import Final

from evennia_ai.knowledge.markup import Section, sections

MOST_CHARACTERS: Final = 100_000
"""Of a talk page: what stands behind them is not looked through."""


def filtered(body: str, *, headings: Sequence[str]) -> str:
    """The sections with exactly these headings, in the order of `headings`; "" without any.

    What stands below a heading of a deeper level belongs to the section.
    """
    found = sections(body[:MOST_CHARACTERS])
    wanted = [
        _shown(heading, found[at:])
        for heading in headings
        for at, one in enumerate(found)
        if one.heading == heading
    ]
    return "\n".join(filter(None, wanted))


def _shown(heading: str, found: Sequence[Section]) -> str:
    """A section under its header, "" where nothing stands in it."""
    text = "\n".join(filter(None, _texts(found)))
    return f"= {heading} =\n{text}" if text else ""


def _texts(found: Sequence[Section]) -> Iterator[str]:
    first, *rest = found
    yield first.text
    for one in rest:
        if one.level <= first.level:
            return
        yield f"== {one.heading} ==\n{one.text}"
