"""Find data in a lorebook's file without effect in this package: fields, macros, extensions."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from evennia_ai.engine.foreign.documents import one_line
from evennia_ai.engine.prompt.templates.unknown import unknown_macros

MOST_LISTED: Final = 8
"""The number of unknown macros that are listed for a book, the most frequent ones first."""

# Fields of entries without effect. Each row is the name in world files, the name under `extensions`
# in V3, and the reason.
_WITHOUT_EFFECT: Final = (
    ("vectorized", "vectorized", "entries are activated by their keys, not by their meaning"),
    ("automationId", "automation_id", "no scripts of another program run here"),
)


# Each row is the name of a SillyTavern extension, a pattern for texts that rely on it, and what
# happens to these texts in this package.
_EXTENSIONS: Final = (
    (
        "ST-Prompt-Template",
        re.compile(
            r"<%.*?%>|^\s*@@(?:render_|generate_|preprocessing|if\b|private|iframe|only_preload"
            r"|dont_preload|message_formatting|initial_variables|always_enabled)",
            re.DOTALL | re.MULTILINE,
        ),
        "its code does not run and is sent to the model as written",
    ),
    (
        "MVU (MagVarUpdate)",
        re.compile(
            r"<UpdateVariable>|\{\{(?:format|get)_\w*variable::|\[(?:mvu_\w+|initvar)\]",
            re.IGNORECASE,
        ),
        "its variables are not kept, and its entries are sent as written",
    ),
)
_SCRIPTS: Final = frozenset({"tavern_helper", "TavernHelper_scripts"})


def entry_texts(book: Any) -> Iterator[str]:
    """Yield the names and the contents of all entries in a lorebook's JSON."""
    for entry in _entries(book):
        yield from (
            value
            for name in ("comment", "name", "content")
            if isinstance(value := entry.get(name), str)
        )


def list_wanted_extensions(texts: Iterable[str], members: Iterable[str] = ()) -> tuple[str, ...]:
    """Return a sentence for each SillyTavern extension that the texts rely on.

    Args:
        members: the names under `extensions` of a card.
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


def list_idle_fields(book: Any) -> tuple[str, ...]:
    """Return a sentence for each field of a book's entries that has no effect in this package."""
    entries = [*_entries(book)]
    found = []
    for name, in_v3, why in _WITHOUT_EFFECT:
        count = sum(bool(entry.get(name) or _extensions(entry).get(in_v3)) for entry in entries)
        if count:
            found.append(
                f"{name} of {_whose(count)} has no effect and is kept for the export: {why}"
            )
    return tuple(found)


def list_unknown_macros(book: Any) -> tuple[str, ...]:
    """Return a sentence for each unknown macro in the entries of a book's JSON."""
    found: Counter[str] = Counter()
    for entry in _entries(book):
        content = entry.get("content")
        if isinstance(content, str):
            found.update(unknown_macros(content))
    return tuple(
        f"{one_line(written)} is an unknown macro and is sent as written ({_whose(count)})"
        for written, count in found.most_common(MOST_LISTED)
    )


def _whose(count: int) -> str:
    return "1 entry" if count == 1 else f"{count} entries"


def _entries(book: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the raw entries of a V3 book or a world file, also inside an enclosing object."""
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
