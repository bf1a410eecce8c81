"""What `make test` and `make check` run: two lists of steps, a line each.

`make test` is what a person runs and waits for: style, layers, types, migrations, one exchange in
a real game, and the tests that need no server and no service, on the Python at hand: of a table of
cases the first and the last, and none that takes seconds. `make check` runs all of them
and the rest: whole games, real services and models, the other end of the supported Pythons, the
floors of the benchmarks, mutations, fuzzing. Continuous integration runs `make check`. Standard
library only.
"""

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from server.installation import Installation
from server.locking import OtherPython, for_development, other_python, this_version, version_of
from server.preparing import FUZZER, elsewhere, has
from server.steps import Meanwhile, Shown, StepError, Times, everything, nothing, run, say

WORKERS = str(min(os.cpu_count() or 1, 8))
"""How many processes share the tests."""

ALONE = "not server and not service and not packaging and not extra"
"""The tests that need nothing but the package and what is installed for tests."""
QUICK = f"{ALONE} and not long"
"""Those of them that need no patience."""

_NEWCOMER = "tests/acceptance/test_newcomer_plays.py"
PLAYED = (
    f"{_NEWCOMER}::test_the_npc_answers_as_a_client_sees_it",
    f"{_NEWCOMER}::test_the_prompt_of_the_answer_is_shown_with_what_was_said",
)
"""The exchange in a real game that `make test` plays."""

_VARIABLES = {
    "EVENNIA_SUPERUSER_USERNAME": "admin",
    "EVENNIA_SUPERUSER_EMAIL": "admin@localhost",
    "EVENNIA_SUPERUSER_PASSWORD": "checks-admin-1",
    "DJANGO_SETTINGS_MODULE": "server.conf.test_settings",
}


def results(line: str) -> str | None:
    """What to show of pytest's lines: skipped, failed, how many tests and attacks there were."""
    told = line.startswith(("SKIPPED", "FAILED", "ERROR")) or " passed" in line
    told = told or line.endswith(" attacks held")
    return line.strip("= ") if told else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A command of the installation, under its title."""

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
QUICK_TESTS = _pytest("Quick tests", *_parallel(*SAMPLED, "2", "-m", QUICK))
"""A table of hundreds of cases is mostly tried for its last few, and takes the time of them all."""

_SPHINX = ("-m", "sphinx", "--fail-on-warning", "--keep-going", "--quiet", "--fresh-env")
SITE = "build/site"
"""Where the documentation site is built."""
DOCS = _python("Documentation site", *_SPHINX, "-b", "html", "docs", SITE)
"""Warnings are errors, so a link inside the site that leads nowhere fails it."""
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
"""A file's tests share a game, so none is torn apart; the longest begin first (tests/conftest.py).

Two processes for each core, for most of what a game does is waiting.
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
"""Short searches for what breaks us; long ones are for who changes it."""

ELSEWHERE = _pytest(
    "Tests on another Python",
    *(*SAMPLED, "1", "--files", "3", "--one-in", "20"),
    *("--hypothesis-profile=few", "-m", QUICK),
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
"""What the other Python runs: a little of what may depend on it (tests/sampling.py).

In one process: whole games go on beside it, and a second one would collect everything again.
"""


def test(root: Path) -> None:
    """Run what a person waits for: every step, and a failing one does not hide the next.

    Raises:
        StepError: one or more failed; the text names them.
    """
    installation, times = for_development(root), Times()
    with (
        _meanwhile(installation, TYPES, times) as types,  # one process, as other static steps
        _meanwhile(installation, ONE_EXCHANGE, times) as exchange,  # it mostly waits
    ):
        failed = _failing(installation, (*STATIC, QUICK_TESTS), times)
        failed += _waited(types) + _waited(exchange)
    say(times.table())
    _raise_for(failed)
    say(f"All of `make test` passed on Python {this_version()}; `make check` runs the rest.")


def check(root: Path) -> None:
    """Everything; what mostly waits goes on beside what computes.

    Raises:
        StepError: one or more steps failed; the text names them.
    """
    began = time.monotonic()
    installation, times = for_development(root), Times()
    other = other_python()
    with _meanwhile(installation, PREPARING, times) as preparing:
        failed = _failing(installation, (*STATIC, TYPES), times) + _waited(preparing)
    with _meanwhile(installation, GAMES, times) as games:
        failed += _failing(installation, (TESTS, DOCS, *FLOORS), times)
        failed += _fuzzed(installation, times)
        failed += _elsewhere(root, other, times)
        failed += _failing(installation, (MUTATIONS,), times)
        failed += _waited(games)
    say(times.table())
    say(f"`make check` took {(time.monotonic() - began) / 60:.1f} minutes.")
    _raise_for(failed)
    versions = sorted({this_version(), *([other.version] if other else [])})
    say(f"All of `make check` passed on Python {' and '.join(versions)}.")


def build_docs(root: Path) -> None:
    """Build the documentation site; with `LINKS` in the environment, check links to other sites.

    Raises:
        StepError: Sphinx found a fault; it has been printed.
    """
    steps = (DOCS, LINKS) if os.environ.get("LINKS") else (DOCS,)
    _raise_for(_failing(for_development(root), steps, Times()))
    say(f"The site is in {SITE}; open {root / SITE / 'index.html'}")


def _elsewhere(root: Path, other: OtherPython | None, times: Times) -> list[str]:
    """What failed on the other Python; nothing, loudly, where there is none."""
    if other is None:
        say("!! SKIPPED: no other supported Python is on this machine, so nothing ran on one")
        return []
    try:
        installation = elsewhere(root, other)
    except StepError as error:
        say(f"!! {error}")
        return [f"the installation on Python {other.version}"]
    found = version_of(str(installation.python))
    say(f"   on Python {found}, with the newest Evennia for it")
    return _failing(installation, (ELSEWHERE,), times)


def _fuzzed(installation: Installation, times: Times) -> list[str]:
    """What failed of the fuzzing; nothing, loudly, where there is no fuzzer for this Python."""
    if not has(FUZZER, installation):
        say(f"!! SKIPPED: no {FUZZER} for Python {this_version()} here, so nothing was fuzzed")
        return []
    return _failing(installation, FUZZING, times)


def _failing(installation: Installation, steps: Iterable[Step], times: Times) -> list[str]:
    """The titles of those that failed; each of them is run, and noted in `times`."""
    failed = []
    for step in steps:
        try:
            run(
                step.title,
                _on(installation, step),
                cwd=installation.root,
                environment=installation.environment(_VARIABLES),
                shown=step.shown,
                times=times,
            )
        except StepError as error:
            say(f"!! {error}")
            failed.append(step.title)
    return failed


@contextmanager
def _meanwhile(installation: Installation, step: Step, times: Times) -> Iterator[Meanwhile]:
    """The step in a process of its own while the block runs."""
    with Meanwhile(
        step.title,
        _on(installation, step),
        root=installation.root,
        environment=installation.environment(_VARIABLES),
        shown=step.shown,
        times=times,
    ) as started:
        yield started


def _waited(started: Meanwhile) -> list[str]:
    """Its title where it failed."""
    try:
        started.wait()
    except StepError as error:
        say(f"!! {error}")
        return [started.title]
    return []


def _on(installation: Installation, step: Step) -> list[str]:
    program, *words = step.command
    return [str(installation.programs / program), *words]


def _raise_for(failed: list[str]) -> None:
    if failed:
        raise StepError(f"failed: {', '.join(failed)}")
