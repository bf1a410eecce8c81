"""The steps of `make test`, `make check` and `make docs`.

`make test` is what a developer runs and waits for, with the installed Python: style, import layers,
types, migrations, one exchange in a real game, and the tests that need no server and no service. Of
a table of cases it runs only the first and the last, and it runs no test that takes seconds. `make
check` runs all of these and more: whole games, real services and models, another supported Python,
limits of the benchmarks, mutations and fuzzing. Continuous integration runs `make check`. Standard
library only.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from server.installation import Installation, installed, other_python, this_version
from server.preparing import FUZZER, has
from server.steps import Running, Shown, StepError, Times, everything, nothing, run, say

WORKERS = str(min(os.cpu_count() or 1, 8))
"""How many processes run the tests."""

ALONE = "not server and not service and not packaging and not extra"
"""Selects the tests that need only the package and what is installed for tests."""
QUICK = f"{ALONE} and not long"
"""Of those, selects the tests that take less than about a second."""

_NEWCOMER = "tests/acceptance/test_newcomer_plays.py"
PLAYED = (
    f"{_NEWCOMER}::test_first_run_prints_the_reply_of_the_npc",
    f"{_NEWCOMER}::test_first_run_prints_a_prompt_with_the_question",
)
"""The test of one exchange in a real game, which `make test` runs."""

_VARIABLES = {
    "EVENNIA_SUPERUSER_USERNAME": "admin",
    "EVENNIA_SUPERUSER_EMAIL": "admin@localhost",
    "EVENNIA_SUPERUSER_PASSWORD": "checks-admin-1",
    "DJANGO_SETTINGS_MODULE": "server.conf.test_settings",
}


def results(line: str) -> str | None:
    """Return a line of pytest's output if it names a failed or skipped test or has the counts."""
    is_name = line.startswith(("SKIPPED", "FAILED", "ERROR"))
    is_count = " passed" in line or line.endswith(" attacks held")
    return line.strip("= ") if is_name or is_count else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A command to run, with its title."""

    title: str
    command: tuple[str, ...]
    shown: Shown = nothing


def _pytest(title: str, *words: str) -> Step:
    command = ("pytest", "-q", "-rs", "-p", "no:cacheprovider", *words)
    return Step(title=title, command=command, shown=results)


def _parallel(*words: str) -> tuple[str, ...]:
    return ("-n", WORKERS, "--dist", "worksteal", *words)


def _python(title: str, *words: str) -> Step:
    return Step(title=title, command=("python", *words))


ONE_EXCHANGE = _pytest("One exchange in a real game", *PLAYED)
TYPES = Step(title="Types", command=("mypy",))
STATIC = (
    Step(title="Style", command=("ruff", "check", ".")),
    Step(title="Format", command=("ruff", "format", "--check", ".")),
    Step(title="Layers", command=("lint-imports",)),
    _python(
        "Migrations",
        *("-m", "django", "makemigrations", "evennia_ai", "--check", "--dry-run"),
    ),
)
SAMPLED = ("-p", "tests.sampling", "--cases")
TESTS = _pytest("Tests that need no server", *_parallel("-m", ALONE))
FEW_EXAMPLES = "--hypothesis-profile=few"
QUICK_TESTS = _pytest("Quick tests", *_parallel(*SAMPLED, "2", FEW_EXAMPLES, "-m", QUICK))
"""The options for pytest with which `make test` runs only a few cases of long tables."""

_SPHINX = ("-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "--fresh-env")
SITE = "build/site"
"""The folder into which the documentation site is built."""
DOCS = _python("Documentation site", *_SPHINX, "-b", "html", "docs", SITE)
"""The command that builds the site.

Warnings are errors, so a broken link inside the site fails it.
"""
LINKS = _python("Links to other sites", *_SPHINX, "-b", "linkcheck", "docs", "build/links")

PREPARING = Step(
    title="Installing what the further tests talk to",
    command=("python", "-m", "server", "prepare"),
    shown=everything,
)
GAMES = _pytest(
    "Whole games and real services",
    *("-n", str(2 * int(WORKERS)), "--dist", "loadfile", "--no-loadscope-reorder"),
    *("-m", f"not ({ALONE})"),
)
"""The tests with whole games.

The tests of one file share a game, so they run in one process; the longest files begin first
(tests/conftest.py). There are two processes per core, because a game mostly waits.
"""
FLOORS = (
    _python("Prefix caches", "-m", "benchmarks.cache", "--check"),
    _python("Long histories", "-m", "benchmarks.history", "--records", "20000", "--check"),
    _python("Recalling", "-m", "benchmarks.recall", "--brief", "--check"),
    _python("Floods", "-m", "benchmarks.floods", "--check"),
    _python(
        "Searching pages",
        *("-m", "benchmarks.knowledge", "--pages", "5000", "--queries", "100"),
        *("--brief", "--cpu", "--check"),
    ),
)
MUTATIONS = _python("Mutations", "-m", "tests.mutations")
FUZZING = (
    _python(
        "Fuzzing books",
        *("fuzz/lorebook.py", "-runs=2000", "-max_total_time=12", "-verbosity=0"),
    ),
    _python(
        "Fuzzing cards",
        *("fuzz/cards.py", "png,charx,json,decorators", "-max_total_time=3", "-verbosity=0"),
    ),
)
"""Short fuzzing runs. Developers run longer ones when they change the code in question."""

ELSEWHERE = _pytest(
    "Tests on another Python",
    *(*SAMPLED, "1", "--files", "3", "--one-in", "20"),
    *(FEW_EXAMPLES, "-m", QUICK),
    *("--ignore=tests/cli", "--ignore=tests/docs", "--ignore=tests/setup"),
    *(
        "--ignore=tests/formats/cards/test_bounds.py",
        "--ignore=tests/engine/lorebook/test_hostile.py",
    ),
    *(
        "--ignore=tests/services/llm/clients/test_faults.py",
        "--ignore=tests/store/test_two_processes.py",
    ),
)
"""The tests that run on the other Python: a sample of those that may depend on it.

tests/sampling.py chooses them. They run in one process, because whole games run at the same time,
and a second process would have to collect all tests again.
"""


class Steps:
    """The steps of one run, with their times and failures."""

    def __init__(self, installation: Installation) -> None:
        self.installation = installation
        self._times = Times()
        self._failed: list[str] = []
        self._began = time.monotonic()

    def finish(self, *steps: Step, installation: Installation | None = None) -> None:
        """Run each step to its end. A failure does not stop the following steps."""
        for step in steps:
            options = self._options(step, installation or self.installation)
            with self._noting(step.title):
                run(step.title, **options)

    def start(self, step: Step) -> Running:
        """Start a step in the background. `wait_for` waits for it."""
        return Running(step.title, **self._options(step, self.installation))

    def wait_for(self, *started: Running) -> None:
        """Wait until the steps have ended, and show their output."""
        for one in started:
            with self._noting(one.title):
                one.wait()

    def conclude(self, success: str) -> None:
        """Show how long each step took, then the text `success`.

        Raises:
            StepError: one or more steps failed; the text names them.
        """
        say(self._times.table())
        say(f"It took {(time.monotonic() - self._began) / 60:.1f} minutes.")
        if self._failed:
            raise StepError(f"failed: {', '.join(self._failed)}")
        say(success)

    @contextmanager
    def _noting(self, title: str) -> Iterator[None]:
        try:
            yield
        except StepError as error:
            say(f"!! {error}")
            self._failed.append(title)

    def _options(self, step: Step, installation: Installation) -> dict[str, Any]:
        program, *words = step.command
        return {
            "command": [installation.programs / program, *words],
            "cwd": installation.root,
            "environment": installation.environment(_VARIABLES),
            "shown": step.shown,
            "times": self._times,
        }


def test(root: Path) -> None:
    """Run the steps of `make test`.

    Raises:
        StepError: one or more steps failed; the text names them.
    """
    steps = Steps(installed(root))
    # Type checking runs in the background, because it uses one process and the game mostly waits.
    with steps.start(TYPES) as types, steps.start(ONE_EXCHANGE) as exchange:
        steps.finish(*STATIC, QUICK_TESTS)
        steps.wait_for(types, exchange)
    steps.conclude(
        f"All of `make test` passed on Python {this_version()}; `make check` runs the rest."
    )


def check(root: Path) -> None:
    """Run the steps of `make check`.

    Steps that mostly wait run at the same time as steps that compute.

    Raises:
        StepError: one or more steps failed; the text names them.
    """
    steps, other = Steps(installed(root)), other_python()
    with steps.start(PREPARING) as preparing:
        steps.finish(*STATIC, TYPES)
        steps.wait_for(preparing)
    with steps.start(GAMES) as games:
        steps.finish(TESTS, DOCS, *FLOORS)
        if has(FUZZER, steps.installation):
            steps.finish(*FUZZING)
        else:
            say(f"!! SKIPPED: no {FUZZER} for Python {this_version()} here, so nothing was fuzzed")
        if other is not None:
            say(f"   on Python {other.version}, with the newest Evennia for it")
            steps.finish(ELSEWHERE, installation=other.installation(root))
        else:
            say("!! SKIPPED: no other supported Python is on this machine, so nothing ran on one")
        steps.finish(MUTATIONS)
        steps.wait_for(games)
    versions = sorted({this_version(), *([other.version] if other else [])})
    steps.conclude(f"All of `make check` passed on Python {' and '.join(versions)}.")


def build_docs(root: Path) -> None:
    """Build the documentation site. With `LINKS` in the environment, check links to other sites.

    Raises:
        StepError: Sphinx found an error, which was printed.
    """
    steps = Steps(installed(root))
    steps.finish(DOCS, *([LINKS] if os.environ.get("LINKS") else []))
    steps.conclude(f"The site is in {SITE}; open {root / SITE / 'index.html'}")
