"""The tests of a requirement: which they are, and what they say of the code as a mutation left it.

Everything here happens in a child, which ends after it: nothing is put back.
"""

import gc
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.mutations import evennia_start
from tests.mutations.breaking import break_by
from tests.mutations.table import ROOT, Mutation

ELSEWHERE = {"server", "service", "packaging"}
"""The marks of tests that start another process, where the code is as it was."""
ACCIDENTS = (AttributeError, ImportError, NameError, SyntaxError)
"""What says that a mutation is no program any more, rather than that it does wrong."""
STAGES = ((0, 1), (2, 3), (4, 5, 6, 7))
"""The ranks of tests that are collected together."""
SLOW = ("tests/cli/",)
"""Folders most of whose tests start other processes."""
IN_EVENNIA = ("tests/acceptance/", "tests/commands/", "tests/game/", "tests/store/")
"""Folders for whose tests Evennia is started."""
PROFILE = "mutations"
"""The profile of Hypothesis in which a mutation's examples are the same each time."""


def citing(files: list[str]) -> dict[str, Any]:
    """The tests by the requirements they cite, what was imported, and a migrated database.

    A test is `[rank, node id]`; those of a lower rank take less time.
    """
    _set_out()
    seen = _Seen()
    _pytest(["--collect-only", *files], seen)
    if seen.accidents:
        raise RuntimeError(f"tests cannot be collected: {seen.accidents}")
    found: dict[str, list[tuple[int, str]]] = {}
    for item in seen.items:
        if ELSEWHERE.isdisjoint(mark.name for mark in item.iter_markers()):
            for requirement in {word for mark in item.iter_markers("req") for word in mark.args}:
                found.setdefault(requirement, []).append((_rank(item), item.nodeid))
    modules = evennia_start.modules_of_others()
    return {"tests": found, "modules": modules, "database": evennia_start.migrated_database()}


def _rank(item: pytest.Item) -> int:
    """Tests without Evennia come first, those that try many examples later."""
    many = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    return item.nodeid.startswith(SLOW) * 4 + item.nodeid.startswith(IN_EVENNIA) * 2 + many


def verdict(mutation: Mutation, tests: list[list[Any]], *, database: str) -> dict[str, Any]:
    """The first of the tests that fails under the mutation, and what went wrong before it."""
    _set_out(database)
    break_by(mutation)
    accidents: list[str] = []
    for stage in STAGES:
        wanted = [node for rank, node in sorted(tests) if rank in stage]
        seen = _Seen(wanted=wanted, stops=True)
        if wanted:
            _pytest(_files(wanted), seen)
        accidents += seen.accidents
        if seen.failed:
            break
    imported = mutation.module in sys.modules
    return {"failed": seen.failed, "accidents": accidents, "imported": imported}


def failing(tests: list[str], *, database: str) -> list[str]:
    """Those of the tests that fail on the code as it is."""
    _set_out(database)
    seen = _Seen(wanted=tests)
    _pytest(_files(tests), seen)
    missing = set(tests) - {item.nodeid for item in seen.items}
    return [*seen.failed, *seen.accidents, *sorted(missing)]


def _set_out(database: str | None = None) -> None:
    """Tests that start Django find it started, their database there, and examples not shrunk."""
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


def _files(tests: list[str]) -> list[str]:
    return sorted({node.split("::")[0] for node in tests})


def _pytest(words: list[str], plugin: object) -> None:
    # Plugins that pytest would rewrite were imported by the parent.
    rest = ["-W", "ignore::pytest.PytestAssertRewriteWarning", "-p", "no:cacheprovider", "-q"]
    rest.append(f"--hypothesis-profile={PROFILE}")
    pytest.main([f"--rootdir={ROOT}", *rest, *words], plugins=[plugin])


@dataclass(slots=True, eq=False)
class _Seen:
    """A plugin of pytest that runs the wanted tests in their order, and keeps what they say."""

    wanted: list[str] = field(default_factory=list)
    """Node ids; all tests are wanted where it is empty."""
    stops: bool = False
    """Whether the first failure ends the run."""
    items: list[pytest.Item] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    """The tests that failed by what they assert."""
    accidents: list[str] = field(default_factory=list)
    """Files that could not be collected and tests that could not be tried, with the reason."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self.wanted:
            place = {node: number for number, node in enumerate(self.wanted)}
            kept = [item for item in items if item.nodeid in place]
            items[:] = sorted(kept, key=lambda item: place[item.nodeid])
        self.items = list(items)

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
