"""The golden cases in `cases/*.yaml`: the active entries, their texts, and all verdicts.

A case gives `book` (or `books`), `history`, `event`, `notes`, `sources`, `rules`, `values`,
`facts`, `clock`, `dice` (the seed of the turn) and `limit_tokens`. Each word counts as a token.

It expects `entries` in the order of activation, with some of their fields. In `verdicts` it expects
"+" or "-" and a reason for each entry. In `remembered` it expects the stored timers.

With `turns`, each turn adds to what the case gives and has its own `expect`. The timers are passed
on from turn to turn, and the clock counts the turns.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from evennia_ai.engine.lorebook.activation.activation import Activation
from evennia_ai.engine.lorebook.activation.candidate import ActiveEntry
from evennia_ai.engine.lorebook.activation.timers import NO_STATE, Clock
from evennia_ai.engine.lorebook.book import Lorebook
from evennia_ai.engine.lorebook.rules import read_rules
from evennia_ai.engine.lorebook.scan.window import Scan
from evennia_ai.engine.prompt.components import ALL_GRANTS
from evennia_ai.engine.prompt.dice import Dice
from evennia_ai.formats.lorebooks.books import read_book
from tests.engine.lorebook.builders import a_scan, reasons
from tests.engine.lorebook.turns import NO_FACTS, a_turn

CASES = [
    pytest.param(case, id=f"{path.stem}: {case['title']}")
    for path in sorted(Path(__file__).parent.glob("cases/*.yaml"))
    for case in yaml.safe_load(path.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("case", CASES)
def test_lorebook_gives_the_result_of_its_golden_case(case: dict[str, Any]):
    books = _books(case["given"])
    state = NO_STATE
    for given, expect in _turns(case):
        result = a_turn(
            *books,
            scan=_scan(given),
            rules=read_rules(given.get("rules", {})),
            limit_tokens=given.get("limit_tokens", 10_000),
            values=given.get("values", {}),
            dice=Dice(turn=str(given.get("dice", 1)), conversation="1"),
            state=state,
            clock=Clock(**given["clock"]),
            facts=_facts(given),
        )
        _check(result, expect)
        state = result.after


def _shown(result: Activation, entry: ActiveEntry, name: str) -> Any:
    return result.causes[entry.identity] if name == "cause" else getattr(entry, name)


def _check(result: Activation, expect: dict[str, Any]) -> None:
    wanted = expect["entries"]
    shown = [
        {name: _shown(result, entry, name) for name in row}
        for entry, row in zip(result.entries, wanted, strict=False)
    ]
    assert shown == wanted
    assert len(result.entries) == len(wanted)
    assert reasons(result) == expect["verdicts"]
    if "remembered" in expect:
        assert {k: v for k, v in result.after.to_plain().items() if v} == expect["remembered"]


def _turns(case: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield what each turn of a case gives, and what it expects."""
    turns = case.get("turns") or [{"expect": case["expect"]}]
    for number, turn in enumerate(turns, start=1):
        given = {**case["given"], **turn}
        yield {**given, "clock": given.get("clock", {"turns": number})}, turn["expect"]


def _scan(given: dict[str, Any]) -> Scan:
    plain = a_scan(
        *given.get("history", []), event=given.get("event"), notes=tuple(given.get("notes", []))
    )
    return replace(plain, sources=given.get("sources", {}))


def _facts(given: dict[str, Any]) -> dict[str, Any]:
    facts = given.get("facts", NO_FACTS)
    return {name: tuple(fact) if isinstance(fact, list) else fact for name, fact in facts.items()}


def _books(given: dict[str, Any]) -> list[Lorebook]:
    rows = given.get("books") or [{"book": given["book"]}]
    return [
        read_book(
            _whole(row["book"]),
            label=row.get("label", "book"),
            attach=row.get("attach", "global"),
            grants=frozenset(row.get("grants", ALL_GRANTS)),
        )
        for row in rows
    ]


def _whole(book: dict[str, Any]) -> dict[str, Any]:
    """Return the book with the comment of each V3 entry as its id, so that verdicts show it."""
    entries = [{"id": entry["comment"], **entry} for entry in book["entries"]]
    return {**book, "entries": entries}
