"""The command line: print a line per mutation when it is judged, and how many were killed."""

import argparse
import gc
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from tests.mutations import evennia_start, judging
from tests.mutations.children import ChildError, each
from tests.mutations.judging import AT_ONCE, LIMIT_SECONDS
from tests.mutations.table import ROOT, Mutation, TableError, mutations

COLLECTING_SECONDS = 180


def main(words: list[str]) -> int:
    """Judge the requested rows. Return 1 if one of them was not killed."""
    options = _options(words)
    rows = [row for row in mutations() if not options.only or row.req in options.only]
    if options.list:
        for row in rows:
            print(f"{row.req}  {row.file}  {row.title}")
        return 0
    if not rows:
        print(f"no mutation breaks {', '.join(options.only)}")
        return 1
    failed = _judge(rows)
    print(f"{len(rows) - failed} passed, {failed} failed")
    return 1 if failed else 0


def _options(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations")
    parser.add_argument("--only", action="append", default=[], metavar="ID", help="a requirement")
    parser.add_argument("--list", action="store_true", help="show the rows and do nothing")
    return parser.parse_args(words)


def _judge(rows: list[Mutation]) -> int:
    """Print the result of each row, and return how many were not killed."""
    known = _known(rows)
    killers: dict[int, str] = {}
    for number, killer in known["killers"]:
        killers[number] = killer
        _print(rows[number], f"killed by {killer}")
    left = [number for number in range(len(rows)) if number not in killers]
    evennia_start.import_again(known["modules"] if left else [])
    gc.freeze()
    imported: dict[int, str] = {}
    works = [partial(_verdict, rows[number], known) for number in left]
    for place, answer in each(works, at_once=AT_ONCE, limit_seconds=LIMIT_SECONDS):
        killer, line = _said(answer)
        if killer:
            imported[left[place]] = killer
        _print(rows[left[place]], line)
    unfair = _unfair(sorted(set(imported.values()) - set(killers.values())), known["database"])
    for number, killer in sorted(imported.items()):
        if killer in unfair:
            _print(rows[number], f"NOT JUDGED: {killer} fails without it too")
    killers.update(imported)
    return len(rows) - sum(killer not in unfair for killer in killers.values())


def _known(rows: list[Mutation]) -> dict[str, Any]:
    """Return the results of `judging.living` from a child, and start Evennia in this process."""
    evennia_start.start_without_ours()
    gc.freeze()
    files = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if "mark.req(" in path.read_text(encoding="utf-8")
    ]
    # Each row has its own folder next to this one.
    limit = 2 * COLLECTING_SECONDS + len(rows) * LIMIT_SECONDS
    ((_, known),) = each([partial(judging.living, files, rows)], at_once=1, limit_seconds=limit)
    if isinstance(known, ChildError):
        raise SystemExit(f"the tests cannot be collected: {known}")
    return known


def _verdict(row: Mutation, known: dict[str, Any]) -> dict[str, Any]:
    tests = known["tests"].get(row.req, [])
    if not tests:
        return {"problem": "no test cites it"}
    try:
        return judging.verdict(row, tests, database=known["database"])
    except TableError as error:
        return {"problem": str(error)}


def _said(answer: dict[str, Any] | ChildError) -> tuple[str | None, str]:
    """Return the test that killed a row, or None, and the text to print."""
    if isinstance(answer, ChildError):
        return None, f"NOT JUDGED: {answer}"
    if problem := answer.get("problem"):
        return None, f"NOT JUDGED: {problem}"
    if answer["failed"]:
        return answer["failed"][0], f"killed by {answer['failed'][0]}"
    if answer["accidents"]:
        return None, f"NOT JUDGED: it is no program any more: {answer['accidents'][0]}"
    if not answer["imported"]:
        return None, "SURVIVED: no test that cites it imports the file"
    return None, "SURVIVED"


def _unfair(tests: list[str], database: str) -> set[str]:
    """Return those tests that fail on the unchanged code, or cannot run on it."""
    halves = [half for half in (tests[::2], tests[1::2]) if half]
    works: list[Callable[[], Any]] = [
        partial(judging.failing, half, database=database) for half in halves
    ]
    unfair: set[str] = set()
    limit = COLLECTING_SECONDS + LIMIT_SECONDS * len(tests)
    for number, answer in each(works, at_once=AT_ONCE, limit_seconds=limit):
        unfair.update(halves[number] if isinstance(answer, ChildError) else answer)
    return unfair


def _print(row: Mutation, line: str) -> None:
    print(f"{row.req}  {row.file}  {row.title}: {line}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
