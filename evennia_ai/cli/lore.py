"""`evennia-ai lore`: show, check and convert the file of a lorebook."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

from evennia_ai.cli.output import (
    FINDING,
    json_bytes,
    said_of,
    write_file,
    write_json,
    write_lines,
)
from evennia_ai.engine.lorebook.book import Lorebook, mention_in_words
from evennia_ai.engine.lorebook.entry import LoreEntry
from evennia_ai.engine.prompt.components import MAX_DEPTH
from evennia_ai.engine.text.columns import WIDTH, clip_text, escape_controls, first_line
from evennia_ai.formats.lorebooks.books import read_book
from evennia_ai.formats.lorebooks.conversion import as_v3, as_world
from evennia_ai.formats.lorebooks.editing.edits import entry_settings
from evennia_ai.formats.lorebooks.editing.lints import lint_book
from evennia_ai.formats.scenario.parts import book_file

Form = Literal["v3", "world"]


def show(path: Path, *, as_json: bool) -> int:
    """Print the book's entries."""
    book = read(path)
    if as_json:
        write_json(described(book), indent=2)
    else:
        write_lines(_lines(book))
    return 0


def lint(path: Path, *, as_json: bool) -> int:
    """Print the problems of a book. Return 1 if one of them is an error.

    An error is an entry that can never be active, or something that could not be read.
    """
    data, _ = book_file(path)
    found = lint_book(read(path), source=data)
    if as_json:
        told = [{**asdict(lint), "is_error": lint.is_error} for lint in found]
        write_json({"findings": told}, indent=2)
    else:
        write_lines(escape_controls(f"{path}: {finding}") for finding in found)
    return FINDING if any(lint.is_error for lint in found) else 0


def convert(source: Path, target: Path, *, form: Form, force: bool) -> int:
    """Write the book in another format. A file is overwritten only with `force`."""
    data, twice = book_file(source)
    with said_of(source):
        made = as_world(data) if form == "world" else as_v3(data, name=source.stem)
        count = len(read_book(made).entries)
    write_file(target, json_bytes(made, indent=2) + b"\n", kind="book", force=force)
    write_lines(escape_controls(f"{source}: {notice}") for notice in twice)
    told_count = "1 entry" if count == 1 else f"{count} entries"
    write_lines([escape_controls(f"{target}: {told_count} as {form}")])
    return 0


def read(path: Path) -> Lorebook:
    """Return the book in a file. FormatError names the file."""
    data, twice = book_file(path)
    with said_of(path):
        book = read_book(data)
    return replace(book, notices=(*twice, *book.notices))


def described(book: Lorebook) -> dict[str, Any]:
    """Return the book as the object that `lore show --json` prints."""
    return {
        "name": book.label,
        "scan_depth": book.scan_depth,
        "token_budget": book.token_budget,
        "recursive": book.recursive,
        "entries": [_entry(entry) for entry in book.entries],
        "notices": list(book.notices),
    }


def _entry(entry: LoreEntry) -> dict[str, Any]:
    return {
        "uid": entry.uid,
        **entry_settings(entry),
        "decorators": [[name, list(values)] for name, values in entry.decorators],
        "refused": entry.refused,
    }


def _lines(book: Lorebook) -> Iterator[str]:
    yield escape_controls(f"{book.label}: {len(book.entries)} entries")
    for entry in book.entries:
        wakes = "always" if entry.constant else ", ".join(entry.keys) or "no keys"
        state = "" if entry.enabled else " (disabled)"
        place = _place(entry)
        name = f" {entry.name}" if entry.name else ""
        yield clip_text(
            escape_controls(f"#{entry.uid}{name}{state}: {place}, {entry.role}, {wakes}"), WIDTH
        )
        yield clip_text(f"    {first_line(entry.template.source)}", WIDTH)
        if entry.refused:
            yield clip_text(escape_controls(f"    never active: {entry.refused}"), WIDTH)
    yield from (escape_controls(f"notice: {notice}") for notice in book.notices)


def _place(entry: LoreEntry) -> str:
    if entry.mention is not None:
        return mention_in_words(entry.mention)
    if entry.depth == MAX_DEPTH and not entry.from_oldest:
        return "the top of the history"
    return entry.position if entry.depth is None else f"depth {entry.depth}"
