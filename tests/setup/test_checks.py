"""Test the steps of `make test` and `make check`, and their output."""

import ast
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from server import checks, preparing
from server.checks import ALONE, GAMES, PLAYED, QUICK, TESTS, results
from server.installation import Installation, OtherPython
from server.steps import Outcome, Running, StepError, Times, nothing, run
from tests.conftest import pytest_ignore_collect

ROOT = Path(__file__).resolve().parents[2]
NOT_ALONE = f"not ({ALONE})"


def test_every_test_is_in_exactly_one_list_of_make_check():
    assert TESTS.command[-2:] == ("-m", ALONE)
    assert "tests.sampling" not in TESTS.command
    assert GAMES.command[GAMES.command.index("-m") + 1] == f"not ({ALONE})"


@pytest.mark.parametrize(
    ("marks", "words", "is_left_out"),
    [
        ("", ALONE, False),
        ("", QUICK, False),
        ("", NOT_ALONE, True),
        ("@pytest.mark.service", ALONE, False),
        ("@pytest.mark.service", NOT_ALONE, False),
        ("pytestmark = pytest.mark.server", ALONE, True),
        ("pytestmark = pytest.mark.server", NOT_ALONE, False),
        ("pytestmark = [pytest.mark.minutes(1), pytest.mark.extra]", QUICK, True),
        ("pytestmark = [pytest.mark.long, pytest.mark.minutes(1)]", QUICK, True),
        ("pytestmark = [pytest.mark.long, pytest.mark.minutes(1)]", ALONE, False),
        ("@pytest.mark.long", QUICK, False),
        ("pytestmark = pytest.mark.server", "", False),
    ],
)
def test_file_without_selected_tests_is_not_imported(marks, words, is_left_out, tmp_path):
    path = tmp_path / "test_it.py"
    path.write_text(f"import pytest\n\n{marks}\n\ndef test_it(): pass\n", encoding="utf-8")
    config = SimpleNamespace(getoption={"markexpr": words}.get)

    assert bool(pytest_ignore_collect(path, config)) == is_left_out


PROPERTY = """
from hypothesis import given, settings, strategies as st
from tests.properties import up_to

seen = []

@settings(max_examples=up_to(60), database=None)
@given(st.integers())
def test_property(number):
    seen.append(number)

def test_how_often():
    print("TRIED", len(seen), settings.default.max_examples)
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "tried"),
    [
        ((), "TRIED 12 20"),
        (("--hypothesis-profile=every",), "TRIED 60 100"),
        (("--hypothesis-profile=few",), "TRIED 6 10"),
    ],
)
def test_property_is_tried_on_as_many_examples_as_requested(words, tried, tmp_path):
    (tmp_path / "test_it.py").write_text(PROPERTY, encoding="utf-8")
    command = (sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", *words)
    here = (f"--rootdir={ROOT}", "-c", ROOT / "pyproject.toml", "-p", "tests.conftest", tmp_path)
    done = subprocess.run([*command, *here], cwd=ROOT, capture_output=True, text=True, check=False)
    assert tried in done.stdout


def test_exchange_of_make_test_is_one_of_the_whole_games():
    for test in PLAYED:
        path, name = test.split("::")
        text = (ROOT / path).read_text(encoding="utf-8")
        functions = ast.walk(ast.parse(text))
        assert name in {node.name for node in functions if isinstance(node, ast.FunctionDef)}
        assert re.search(r"^pytestmark = \[?pytest\.mark\.server\b", text, re.MULTILINE)


def test_no_step_of_make_check_runs_twice(monkeypatch, tmp_path):
    ran = []
    steps = _recorded(monkeypatch, ran)

    checks.check(tmp_path)

    assert sorted(ran) == sorted(step.title for step in steps)


def test_make_check_runs_and_reports_everything_after_a_failure(monkeypatch, tmp_path):
    ran = []
    steps = _recorded(monkeypatch, ran, fails=True)

    with pytest.raises(StepError) as told:
        checks.check(tmp_path)

    assert sorted(ran) == sorted(step.title for step in steps)
    assert all(step.title in str(told.value) for step in steps)


def _recorded(monkeypatch, ran, *, fails=False):
    """Return every step of `make check` without running it. `ran` gets their titles."""

    def one(title, *_, **__):
        ran.append(title)
        if fails:
            raise StepError(title)

    class Started:
        def __init__(self, title, *_, **__):
            self.title = title

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def wait(self):
            one(self.title)

    installation = Installation(root=ROOT, programs=Path(sys.executable).parent)
    monkeypatch.setattr(checks, "run", one)
    monkeypatch.setattr(checks, "Running", Started)
    monkeypatch.setattr(checks, "installed", lambda *_, **__: installation)
    monkeypatch.setattr(checks, "has", lambda *_: True)
    other = OtherPython(version="3.13", program=sys.executable)
    monkeypatch.setattr(checks, "other_python", lambda: other)
    alone = (checks.PREPARING, GAMES, TESTS, checks.ELSEWHERE, checks.MUTATIONS)
    return (*alone, checks.TYPES, checks.DOCS, *checks.STATIC, *checks.FLOORS, *checks.FUZZING)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("........................ [ 42%]", None),
        ("==== 3 passed, 1 skipped in 2.00s ====", "3 passed, 1 skipped in 2.00s"),
        (
            "SKIPPED [1] tests/x.py:1: no wiki is asked",
            "SKIPPED [1] tests/x.py:1: no wiki is asked",
        ),
        ("FAILED tests/x.py::test_y", "FAILED tests/x.py::test_y"),
    ],
)
def test_output_shows_skipped_and_failed_tests_and_the_count(line, shown):
    assert results(line) == shown


def test_silent_step_is_one_line(capsys, tmp_path):
    run(
        "Looking", [sys.executable, "-c", "print('x')"], cwd=tmp_path, environment={}, shown=nothing
    )

    assert capsys.readouterr().out == "== Looking: done in 0 s (CPU 0 s)\n"


def test_times_of_steps_are_listed_longest_first(tmp_path):
    times = Times()
    times.note("Style", Outcome(status=0, output="", seconds=3, cpu_seconds=2))
    times.note("Whole games", Outcome(status=0, output="", seconds=400, cpu_seconds=550))

    assert times.table().splitlines() == [
        "seconds       clock     CPU",
        "Whole games     400     550",
        "Style             3       2",
        "all                     552",
    ]


def test_failed_steps_are_noted_in_sequence_and_in_parallel(capsys, tmp_path):
    times = Times()
    fails = [sys.executable, "-c", "raise SystemExit(3)"]
    with pytest.raises(StepError):
        run("Looking", fails, cwd=tmp_path, environment={}, times=times)
    with Running("Aside", fails, cwd=tmp_path, environment={}, times=times) as aside:
        with pytest.raises(StepError):
            aside.wait()

    assert {line.split()[0] for line in times.table().splitlines()[1:-1]} == {"Looking", "Aside"}


def test_started_step_shows_its_output_when_waited_for(capsys, tmp_path):
    command = [sys.executable, "-c", "print('said')"]
    with Running("Aside", command, cwd=tmp_path, environment={}, shown=str) as aside:
        aside.outcome()
        assert capsys.readouterr().out == ""
        aside.wait()

    first, second = capsys.readouterr().out.splitlines()
    assert first == "== Aside: done in 0 s (CPU 0 s)"
    assert second == "   said"


def test_failed_started_step_shows_everything_and_raises(capsys, tmp_path):
    command = [sys.executable, "-c", "print('why'); raise SystemExit(3)"]
    with (
        Running("Aside", command, cwd=tmp_path, environment={}) as aside,
        pytest.raises(StepError, match="Aside: failed with status 3"),
    ):
        aside.wait()

    assert "why" in capsys.readouterr().out


def test_interrupt_reaches_a_step_once_and_waits_for_its_cleanup(tmp_path):
    script = (
        "import time\n"
        "try:\n    print('begun', flush=True)\n    time.sleep(99)\n"
        "except KeyboardInterrupt:\n    time.sleep(0.5)\n    print('tidied up')"
    )
    command = [sys.executable, "-c", script]

    waits = threading.Event()

    def interrupt(line):
        if line == "begun":
            waits.wait()
            os.kill(os.getpid(), signal.SIGINT)

    with (
        pytest.raises(KeyboardInterrupt),
        Running("Aside", command, cwd=tmp_path, environment={}, heard=interrupt) as aside,
    ):
        waits.set()
        aside.outcome()

    assert aside.outcome().output == "begun\ntidied up"


def test_step_over_its_time_limit_is_killed(capsys, tmp_path):
    command = [sys.executable, "-c", "import time; time.sleep(99)"]
    with pytest.raises(StepError, match="Looking: failed with status -9"):
        run("Looking", command, cwd=tmp_path, environment={}, limit_seconds=0.1)


def test_missing_program_is_an_error_of_its_step(capsys, tmp_path):
    with pytest.raises(StepError, match=r"Looking: .*No such file"):
        run("Looking", [tmp_path / "no-such-program"], cwd=tmp_path, environment={})


def test_failing_step_does_not_hide_the_next(monkeypatch, capsys):
    ran = []

    def fails(title, *_, **__):
        ran.append(title)
        raise StepError(title)

    monkeypatch.setattr(checks, "run", fails)
    installation = Installation(root=ROOT, programs=ROOT)

    steps = checks.Steps(installation)
    steps.finish(*checks.STATIC)

    assert ran == [step.title for step in checks.STATIC]
    with pytest.raises(StepError, match=", ".join(ran)):
        steps.conclude("All passed.")
    assert "All passed." not in capsys.readouterr().out


def test_missing_package_fails_when_nothing_may_be_skipped(monkeypatch, capsys):
    installation = Installation(root=ROOT, programs=ROOT)
    monkeypatch.setattr(preparing, "installed", lambda *_, **__: installation)
    monkeypatch.setattr(preparing, "ensure", lambda *_, **__: ("postgresql",))
    monkeypatch.setattr(Installation, "install", lambda *_, **__: None)
    monkeypatch.setattr(preparing, "other_python", lambda: None)

    monkeypatch.delenv(preparing.NOTHING_SKIPPED, raising=False)
    preparing.prepare(ROOT)
    monkeypatch.setenv(preparing.NOTHING_SKIPPED, "1")
    with pytest.raises(StepError, match="there is no Debian's postgresql"):
        preparing.prepare(ROOT)
    assert "!! SKIPPED: no Debian's postgresql here" in capsys.readouterr().out


def test_uninstallable_package_is_reported_and_the_rest_installed(monkeypatch, capsys):
    asked = []

    def no_model_server(_, title, *words):
        asked.append(words[-1])
        if "xllamacpp" in title:
            raise StepError("no wheel")

    installation = Installation(root=ROOT, programs=ROOT)
    monkeypatch.setattr(preparing, "installed", lambda *_, **__: installation)
    monkeypatch.setattr(preparing, "ensure", lambda *_, **__: ())
    monkeypatch.setattr(Installation, "install", no_model_server)
    monkeypatch.setattr(preparing, "other_python", lambda: None)
    monkeypatch.setenv(preparing.NOTHING_SKIPPED, "1")

    with pytest.raises(StepError, match="there is no xllamacpp"):
        preparing.prepare(ROOT)
    assert [name.partition(">")[0] for name in asked] == [
        *("xllamacpp", "tokenizers", preparing.SENTENCE_MODEL),
        *(preparing.INSTRUCT_MODEL, "atheris"),
    ]
