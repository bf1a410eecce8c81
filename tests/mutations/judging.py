"""Find the tests of a requirement, and run them on code that a mutation has changed.

Everything here runs in a child process that ends afterwards, so nothing is restored.
"""

import gc
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile, zip_longest
from pathlib import PurePath
from types import FunctionType
from typing import Any

import pytest

from tests.mutations import evennia_start
from tests.mutations.breaking import break_by, break_living
from tests.mutations.children import ChildError, each
from tests.mutations.table import ROOT, Mutation, TableError

AT_ONCE = 2
LIMIT_SECONDS = 240
"""The time limit of a mutation. One that never ends is not killed by an assertion."""

ELSEWHERE = {"server", "service", "packaging"}
"""The marks of tests that start other processes, in which the code is unchanged."""
ACCIDENTS = (AttributeError, ImportError, NameError, SyntaxError)
"""Errors which show that a mutation left no valid program, instead of wrong behaviour."""
STAGES = ((0, 1), (2, 3), (4, 5, 6, 7))
"""The three groups of tests, by rank. The tests of a group are collected in one process."""
SLOW = ("tests/cli/",)
"""Folders in which most tests start other processes."""
IN_EVENNIA = ("tests/acceptance/", "tests/commands/", "tests/npc/", "tests/store/")
"""Folders whose tests need Evennia."""
PROFILE = "mutations"
"""The Hypothesis profile with which a mutation gets the same examples each time."""


def living(files: list[str], rows: list[Mutation]) -> dict[str, Any]:
    """Judge rows in the functions that exist already, without importing anything again.

    All tests are collected once, and each row is tried in a child of this process. A row that
    survives may have changed a value that is computed at import.

    Returns:
        `tests`, by the requirements that they cite: `[rank, node id]`, where a lower rank takes
            less time. `killers`: `[number of the row, node id]` for each row killed by a test that
            passes without it. `modules` of others that were imported. `database`: a migrated one.
    """
    _set_out()
    answer: dict[str, Any] = {}
    seen = _Seen(stops=True, instead=lambda session: answer.update(_tried(session, seen, rows)))
    _pytest(["--capture=no", *files], seen)  # Children would share captured output.
    if seen.accidents:
        raise RuntimeError(f"tests cannot be collected: {seen.accidents}")
    return answer


def _tried(session: pytest.Session, seen: "_Seen", rows: list[Mutation]) -> dict[str, Any]:
    tests = _citing(seen.items)
    modules, database = evennia_start.modules_of_others(), evennia_start.migrated_database()
    _connected_already()
    gc.unfreeze()  # Frozen objects are not found by the garbage collector.
    functions: dict[str, list[FunctionType]] = defaultdict(list)
    for one in gc.get_objects():
        if isinstance(one, FunctionType):
            functions[one.__code__.co_filename].append(one)
    gc.freeze()
    items = {item.nodeid: item for item in seen.items}

    def failing(wanted: list[str]) -> list[str]:
        _run(session, [items[node] for node in wanted])
        return seen.failed

    def killer(row: Mutation) -> list[str]:
        try:
            broken = break_living(row, functions[str(row.path)])
        except (TableError, ValueError):
            # A killed row is reported. A surviving one is tried again when the module is imported.
            return []
        return (
            failing([node for _, node in in_order(tests.get(row.req, []), row)]) if broken else []
        )

    works = [partial(killer, row) for row in rows]
    answers = each(works, at_once=AT_ONCE, limit_seconds=LIMIT_SECONDS)
    killed = [(number, found[0]) for number, found in answers if isinstance(found, list) and found]
    seen.stops = False
    unfair = _unfair(failing, sorted({node for _, node in killed}))
    killers = [(number, node) for number, node in killed if node not in unfair]
    return {"tests": tests, "killers": killers, "modules": modules, "database": database}


def _unfair(failing: Callable[[list[str]], list[str]], tests: list[str]) -> set[str]:
    """Return those tests that fail on the unchanged code, or all if that could not be tried."""
    halves = [half for half in (tests[::2], tests[1::2]) if half]
    works = [partial(failing, half) for half in halves]
    unfair: set[str] = set()
    # On a busy machine half of them take minutes. If the run is cut short, all its tests count as
    # unfair.
    limit = LIMIT_SECONDS * max(1, len(tests))
    for number, answer in each(works, at_once=AT_ONCE, limit_seconds=limit):
        unfair.update(halves[number] if isinstance(answer, ChildError) else answer)
    return unfair


def _run(session: pytest.Session, items: list[pytest.Item]) -> None:
    """Run the tests one after the other, as pytest does."""
    for item, after in zip_longest(items, items[1:]):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        if session.shouldstop:
            return


def _citing(items: list[pytest.Item]) -> dict[str, list[tuple[int, str]]]:
    found: dict[str, list[tuple[int, str]]] = {}
    for item in items:
        if ELSEWHERE.isdisjoint(mark.name for mark in item.iter_markers()):
            for requirement in {word for mark in item.iter_markers("req") for word in mark.args}:
                found.setdefault(requirement, []).append((_rank(item), item.nodeid))
    return found


def _rank(item: pytest.Item) -> int:
    """Return the rank of a test: without Evennia first, with many examples last."""
    many = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    return item.nodeid.startswith(SLOW) * 4 + item.nodeid.startswith(IN_EVENNIA) * 2 + many


def in_order(tests: Iterable[Sequence[Any]], mutation: Mutation) -> list[Sequence[Any]]:
    """Return the tests ordered by speed, and then by how well they mirror the changed file."""
    folders = ["tests", *PurePath(mutation.file).parts]

    def place(test: Sequence[Any]) -> tuple[bool, int, int, str]:
        rank, node = test
        parts = PurePath(node.partition("::")[0]).parts
        pairs = zip(folders, parts, strict=False)
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        mirrors = parts[-1] == f"test_{folders[-1]}"
        is_first = bool(mutation.first) and node.startswith(mutation.first)
        return (not is_first, rank, -shared - mirrors, node)

    return sorted(tests, key=place)


def verdict(mutation: Mutation, tests: list[list[Any]], *, database: str) -> dict[str, Any]:
    """Return the first test that fails under the mutation, and errors that came before it."""
    _set_out(database)
    break_by(mutation)
    accidents: list[str] = []
    for stage in STAGES:
        wanted = [node for rank, node in in_order(tests, mutation) if rank in stage]
        seen = _Seen(wanted=wanted, stops=True)
        if wanted:
            _pytest(_files(wanted), seen)
        accidents += seen.accidents
        if seen.failed:
            break
    imported = mutation.module in sys.modules
    return {"failed": seen.failed, "accidents": accidents, "imported": imported}


def failing(tests: list[str], *, database: str) -> list[str]:
    """Return those tests that fail on the unchanged code."""
    _set_out(database)
    seen = _Seen(wanted=tests)
    _pytest(_files(tests), seen)
    missing = set(tests) - {item.nodeid for item in seen.items}
    return [*seen.failed, *seen.accidents, *sorted(missing)]


def _set_out(database: str | None = None) -> None:
    """Prepare tests that would start Django, which is started already with a database."""
    import django
    from django.test import utils
    from hypothesis import Phase, settings

    django.setup = evennia_start.start_with_ours
    if database is not None:
        utils.setup_databases = lambda **_: evennia_start.set_up(database)
    settings.register_profile(
        PROFILE,
        max_examples=100,
        phases=[Phase.explicit, Phase.generate],
        derandomize=True,
        database=None,
        deadline=None,
    )
    gc.freeze()


def _connected_already() -> None:
    """Use the database that the parent made in memory."""
    from django.test import utils

    utils.setup_databases = lambda **_: []


def _files(tests: list[str]) -> list[str]:
    return sorted({node.split("::")[0] for node in tests})


def _pytest(words: list[str], plugin: object) -> None:
    # Only the name of the failing test is needed. Explaining the failure would take most of the
    # time.
    rest = ["--assert=plain", "--tb=native", "-p", "no:cacheprovider", "-q"]
    rest.append(f"--hypothesis-profile={PROFILE}")
    pytest.main([f"--rootdir={ROOT}", *rest, *words], plugins=[plugin])


@dataclass(slots=True, eq=False)
class _Seen:
    """A plugin of pytest that runs the wanted tests in their order and stores the results."""

    wanted: list[str] = field(default_factory=list)
    """The node ids of the wanted tests. Empty: all tests."""
    stops: bool = False
    """True if the first failure ends the run."""
    instead: Callable[[pytest.Session], None] | None = None
    """A function that is called after the collection, instead of running the tests."""
    items: list[pytest.Item] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    """The tests that failed in an assertion."""
    accidents: list[str] = field(default_factory=list)
    """Files that could not be collected and tests that could not run, with the reason."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self.wanted:
            place = {node: number for number, node in enumerate(self.wanted)}
            kept = [item for item in items if item.nodeid in place]
            items[:] = sorted(kept, key=lambda item: place[item.nodeid])
        self.items = list(items)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if self.instead is None:
            return None
        if not self.accidents:
            self.instead(session)
        return True

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.accidents.append(f"{report.nodeid}: {report.longreprtext[-400:]}")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Iterator[Any]:
        report = yield
        if report.failed and call.excinfo is not None:
            if report.when == "call" and not issubclass(call.excinfo.type, ACCIDENTS):
                self.failed.append(item.nodeid)
                if self.stops:
                    item.session.shouldstop = "one failed"
            else:
                self.accidents.append(f"{item.nodeid}: {call.excinfo.exconly()[:400]}")
        return report
