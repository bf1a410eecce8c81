"""What of a book's file does nothing here, to be told who brings it: fields, macros, and languages
of extensions of SillyTavern.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from evennia_ai.engine.foreign.documents import one_line
from evennia_ai.engine.prompt.templates.unknown import unknown_macros

MOST_TOLD: Final = 8
"""Unknown macros that are told of one book, those of most entries."""

# What a world file calls it, what stands under `extensions` in V3, and what it would do there.
_WITHOUT_EFFECT: Final = (
    ("vectorized", "vectorized", "entries are woken by their keys, not by their meaning"),
    ("automationId", "automation_id", "no scripts of another program run here"),
)


# An extension, what its texts have in them, and what becomes of that here.
_EXTENSIONS: Final = (
    (
        "ST-Prompt-Template",
        re.compile(
            r"<%.*?%>|^\s*@@(?:render_|generate_|preprocessing|if\b|private|iframe|only_preload"
            r"|dont_preload|message_formatting|initial_variables|always_enabled)",
            re.DOTALL | re.MULTILINE,
        ),
        "its code does not run and is sent to the model as it is written",
    ),
    (
        "MVU (MagVarUpdate)",
        re.compile(
            r"<UpdateVariable>|\{\{(?:format|get)_\w*variable::|\[(?:mvu_\w+|initvar)\]",
            re.IGNORECASE,
        ),
        "its variables are not kept, and its entries are sent as they are written",
    ),
)
_SCRIPTS: Final = frozenset({"tavern_helper", "TavernHelper_scripts"})


def texts_in_entries(book: Any) -> Iterator[str]:
    """The names and contents of the entries of a book's JSON."""
    for entry in _entries(book):
        yield from (
            value
            for name in ("comment", "name", "content")
            if isinstance(value := entry.get(name), str)
        )


def extensions_asked(texts: Iterable[str], members: Iterable[str] = ()) -> tuple[str, ...]:
    """A sentence for each extension of SillyTavern that texts are written for.

    `members` are the names under `extensions` of a card.
    """
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(name for name, pattern, _ in _EXTENSIONS if pattern.search(text))
    found = []
    for name, _, what in _EXTENSIONS:
        if count := counts[name]:
            where = "1 text" if count == 1 else f"{count} texts"
            found.append(f"written for the extension {name} ({where}): without it, {what}")
    if not _SCRIPTS.isdisjoint(members):
        found.append("written for the extension TavernHelper: without it, its scripts do not run")
    return tuple(found)


def fields_without_effect(book: Any) -> tuple[str, ...]:
    """A sentence for each such field that entries of a book's JSON make use of; () for no book."""
    entries = [*_entries(book)]
    found = []
    for name, in_v3, why in _WITHOUT_EFFECT:
        count = sum(bool(entry.get(name) or _extensions(entry).get(in_v3)) for entry in entries)
        if count:
            found.append(
                f"{name} of {_whose(count)} has no effect and is kept for the export: {why}"
            )
    return tuple(found)


def unknown_in_entries(book: Any) -> tuple[str, ...]:
    """A sentence for each macro in entries of a book's JSON that nothing here knows."""
    found: Counter[str] = Counter()
    for entry in _entries(book):
        content = entry.get("content")
        if isinstance(content, str):
            found.update(unknown_macros(content))
    return tuple(
        f"{one_line(written)}: sent as it is written ({_whose(count)})"
        for written, count in found.most_common(MOST_TOLD)
    )


def _whose(count: int) -> str:
    return "1 entry" if count == 1 else f"{count} entries"


def _entries(book: Any) -> Iterator[Mapping[str, Any]]:
    """The entries of a V3 book, of a world file, or of a book in its wrapping."""
    if not isinstance(book, Mapping):
        return
    if isinstance(book.get("data"), Mapping):
        book = book["data"]
    entries = book.get("entries")
    listed = entries.values() if isinstance(entries, Mapping) else entries
    for entry in listed if isinstance(listed, Iterable) else ():
        if isinstance(entry, Mapping):
            yield entry


def _extensions(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    found = entry.get("extensions")
    return found if isinstance(found, Mapping) else {}
