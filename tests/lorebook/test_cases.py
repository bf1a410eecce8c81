"""The golden cases of `cases/*.yaml`: what is awake, what it says, and a verdict on every entry.

A case gives `book` (or `books`), `history`, `event`, `notes`, `rules`, `values` and `limit_tokens`;
tokens are words. It expects `entries` in the order of activation (each row names what matters of
an entry) and `verdicts`: entry -> `+` or `-` and the reason.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

from evennia_ai.lorebook.books import Lorebook, read_book
from evennia_ai.lorebook.rules import read_rules
from tests.lorebook.builders import a_scan, awake, reasons

CASES = [
    pytest.param(case, id=f"{path.stem}: {case['title']}")
    for path in sorted(Path(__file__).parent.glob("cases/*.yaml"))
    for case in yaml.safe_load(path.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("case", CASES)
def test_case(case: dict[str, Any]):
    given, expect = case["given"], case["expect"]
    result = awake(
        *_books(given),
        scan=a_scan(
            *given.get("history", []), event=given.get("event"), notes=tuple(given.get("notes", []))
        ),
        rules=read_rules(given.get("rules", {})),
        limit_tokens=given.get("limit_tokens", 10_000),
        values=given.get("values", {}),
    )
    wanted = expect["entries"]
    shown = [
        {name: getattr(entry, name) for name in row}
        for entry, row in zip(result.entries, wanted, strict=False)
    ]
    assert shown == wanted
    assert len(result.entries) == len(wanted)
    assert reasons(result) == expect["verdicts"]


def _books(given: dict[str, Any]) -> list[Lorebook]:
    rows = given.get("books") or [{"book": given["book"]}]
    return [
        read_book(
            _whole(row["book"]),
            label=row.get("label", "book"),
            attach=row.get("attach", "global"),
            trust=row.get("trust", "builder"),
        )
        for row in rows
    ]


def _whole(book: dict[str, Any]) -> dict[str, Any]:
    """The book with each V3 entry's comment as its id, so that verdicts name it."""
    entries = [{"id": entry["comment"], **entry} for entry in book["entries"]]
    return {**book, "entries": entries}
