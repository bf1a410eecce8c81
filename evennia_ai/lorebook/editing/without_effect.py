"""Fields of an entry that other programs act upon and nothing here does; they are kept as they are.

Asked of the file's own JSON value, since what nothing reads is in no entry.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

# Of SillyTavern, as a world file and a V3 entry (under `extensions`) write it -> what it does.
_FIELDS: Final = (
    (
        ("vectorized",),
        "looks for the entry by its meaning, which nothing here does; give it keys",
    ),
    (
        ("automationId", "automation_id"),
        "runs a script of the program when the entry wakes, which nothing here does",
    ),
)


def fields_without_effect(source: Any) -> Iterator[tuple[str, str]]:
    """Each such field that some entry of a book's JSON value sets, and a sentence about it."""
    entries = list(_entries(source))
    for names, does in _FIELDS:
        if count := sum(_sets(entry, names) for entry in entries):
            told = f"{count} {'entry' if count == 1 else 'entries'}"
            yield names[0], f"the field '{names[0]}' ({told}) {does}"


def _entries(source: Any) -> Iterator[Mapping[str, Any]]:
    book = _object(source)
    listed = (book if "entries" in book else _object(book.get("data"))).get("entries")
    values = list(listed.values()) if isinstance(listed, Mapping) else listed
    yield from map(_object, values if isinstance(values, list) else ())


def _sets(entry: Mapping[str, Any], names: tuple[str, ...]) -> bool:
    """Whether an entry sets the field to something, by one of its names."""
    places = (entry, _object(entry.get("extensions")))
    return any(place.get(name) for place in places for name in names)


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
