"""`evennia-ai lore`: the entries of a lorebook, and what is doubtful about them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from evennia_ai.cli.output import write_json, write_lines
from evennia_ai.cli.refusals import FINDING
from evennia_ai.lorebook.books import Lorebook, read_book
from evennia_ai.lorebook.entries import LoreEntry
from evennia_ai.prompt.columns import WIDTH, clipped, first_line, visible
from evennia_ai.prompt.errors import FormatError
from evennia_ai.scenario.files import book_file


def show(path: Path, *, as_json: bool) -> int:
    """Print the book's entries."""
    book = read(path)
    if as_json:
        write_json(described(book), indent=2)
    else:
        write_lines(_lines(book))
    return 0


def lint(path: Path) -> int:
    """Print what the author should know: notices, and entries that can never be active."""
    findings = list(findings_of(read(path)))
    write_lines(visible(f"{path}: {finding}") for finding in findings)
    return FINDING if findings else 0


def read(path: Path) -> Lorebook:
    """The book in a file; FormatError names the file."""
    data, twice = book_file(path)
    try:
        book = read_book(data, trust="author")
        return replace(book, notices=(*twice, *book.notices))
    except FormatError as error:
        raise FormatError(error.kind, f"{path}: {error.message}") from error


def described(book: Lorebook) -> dict[str, Any]:
    """The book as the object that `lore show --json` prints."""
    return {
        "name": book.label,
        "scan_depth": book.scan_depth,
        "token_budget": book.token_budget,
        "entries": [_entry(entry) for entry in book.entries],
        "notices": list(book.notices),
    }


def _entry(entry: LoreEntry) -> dict[str, Any]:
    return {
        "uid": entry.uid,
        "name": entry.name,
        "enabled": entry.enabled,
        "constant": entry.constant,
        "keys": list(entry.keys),
        "secondary_keys": list(entry.secondary_keys),
        "position": entry.position,
        "depth": entry.depth,
        "role": entry.role,
        "order": entry.order,
        "decorators": [[name, list(values)] for name, values in entry.decorators],
        "content": entry.template.source,
        "refused": entry.refused,
    }


def _lines(book: Lorebook) -> Iterator[str]:
    yield visible(f"{book.label}: {len(book.entries)} entries")
    for entry in book.entries:
        wakes = "always" if entry.constant else ", ".join(entry.keys) or "no keys"
        state = "" if entry.enabled else " (disabled)"
        place = entry.position if entry.depth is None else f"depth {entry.depth}"
        name = f" {entry.name}" if entry.name else ""
        yield clipped(visible(f"#{entry.uid}{name}{state}: {place}, {entry.role}, {wakes}"), WIDTH)
        yield clipped(f"    {first_line(entry.template.source)}", WIDTH)
        if entry.refused:
            yield clipped(visible(f"    never active: {entry.refused}"), WIDTH)
    yield from (visible(f"notice: {notice}") for notice in book.notices)


def findings_of(book: Lorebook) -> Iterator[str]:
    """What is doubtful about the book, and which entries can never be active."""
    yield from book.notices
    for entry in book.entries:
        if entry.refused:
            yield f"entry {entry.uid}: {entry.refused}"
        elif not entry.enabled:
            continue
        elif not entry.template.source.strip():
            yield f"entry {entry.uid}: has no content and is never active"
        elif not (entry.constant or entry.keys or entry.gates.forced):
            yield f"entry {entry.uid}: has no keys and is never active"
