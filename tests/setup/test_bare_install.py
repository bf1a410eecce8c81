"""Test the wheel in an empty environment: the engine without Evennia, and a worker without Evennia.

pip installs only what the wheel requires, in the versions of the lock file.
"""

import io
import json
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from evennia_ai.cli import evennia_ai, run
from evennia_ai.engine.execution_request import execution_request
from server.installation import LOCK
from tests.engine.prompt.builders import the_inputs

pytestmark = [pytest.mark.packaging, pytest.mark.minutes(2)]

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "world" / "demo"
SCENARIO = DEMO / "scenarios" / "oren.yaml"
CARD = DEMO / "cards" / "oren.json"
BOOK = DEMO / "lorebooks" / "harbour.json"
PRESET = DEMO / "presets" / "quay.json"

ON_FILES = (
    f"compose {SCENARIO}",
    f"compose {SCENARIO} --json",
    f"compose {DEMO / 'scenarios' / 'ferry_in_mind.yaml'} --explain harbour#5",
    "catalogue nl",
    "compose --jsonl",
    "compose --request oren.request",
    f"card show {CARD}",
    f"card lint {CARD}",
    f"card convert {CARD} oren.png --to png --with-v2 --force",
    f"card convert {CARD} oren.charx --to charx --force",
    f"card import {CARD}",
    f"lore show {BOOK}",
    f"lore lint {BOOK}",
    f"lore convert {BOOK} world.json --to world --force",
    f"preset show {PRESET}",
    f"preset lint {PRESET}",
    f"preset convert {PRESET} prompts.json --to prompts --force",
    f"preset import {PRESET}",
)
IN_A_GAME = (
    f"card import {CARD} --game .",
    "card export Oren oren.json",
    f"preset import {PRESET} --game .",
    "preset export quay quay.json",
    "replay --npc oren --turn 1",
    "check kept",
    "status",
    "history verify",
    "history export oren.jsonl --npc oren",
    "history import oren.jsonl --npc oren",
    "knowledge import pages",
    "knowledge search isle ferry",
    "knowledge export isle pages",
    "import-folder data",
    "export-folder data",
    "move . --to postgres://mara:secret@127.0.0.1:1/harbour",
    "doctor --base-url http://127.0.0.1:1/v1 --model m",
    "worker-file worker.json",
    "worker worker.json",
)
IMPORT_ALL = """
import importlib, pkgutil, sys
for room in sys.argv[1:]:
    module = importlib.import_module(room)
    for found in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{room}."):
        importlib.import_module(found.name)
print(*sorted({"django", "evennia", "twisted", "rest_framework"} & {*sys.modules}))
"""
KINDS_OF_WORK = """
import django
from django.conf import settings
settings.configure(INSTALLED_APPS=["evennia_ai", "procrastinate.contrib.django"], USE_TZ=True)
django.setup()
from evennia_ai.npc.jobs.registry import kinds_of
from evennia_ai.npc.jobs.worker import living
print(*kinds_of())
"""


class Environment:
    """An environment in which pip has installed our wheel."""

    def __init__(self, folder: Path, wheel: Path, *, extra: str = "") -> None:
        self.programs = folder / "python" / "bin"
        self.folder = folder
        venv.create(folder / "python", with_pip=False)
        self.pip("install", "--quiet", f"{wheel}{extra}", "-c", str(ROOT / LOCK))

    def pip(self, *words: str) -> None:
        """Run pip for this environment. The test fails if pip does."""
        python = ("--python", str(self.programs / "python"))
        done = subprocess.run(
            [sys.executable, "-m", "pip", *python, *words],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def runs(self, *words: str, said: str = "") -> "subprocess.CompletedProcess[str]":
        """Run a program of this environment in its folder, with `said` as its input."""
        program, *others = words
        return subprocess.run(
            [self.programs / program, *others],
            cwd=self.folder,
            input=said,
            capture_output=True,
            text=True,
            check=False,
        )

    def has(self, package: str) -> bool:
        """True if the package can be imported."""
        return self.runs("python", "-c", f"import {package}").returncode == 0


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The environment with the engine only, and a request that a game has written."""
    made = Environment(tmp_path_factory.mktemp("bare"), wheel)
    (made.folder / "oren.request").write_text(_request(), encoding="utf-8")
    return made


def _request() -> str:
    """Return what `ai/request` writes about a turn."""
    return execution_request(the_inputs([]), npc_ref="7", conversation=3, event="41").to_json()


def _leaves(command: Any, name: str = "") -> Iterator[str]:
    """Return the commands of a group and its subgroups, as lists of words."""
    if not isinstance(command, click.Group):
        yield name
        return
    for word, one in command.commands.items():
        yield from _leaves(one, f"{name} {word}".strip())


def test_engine_install_contains_nothing_of_a_game(bare: Environment) -> None:
    bare.pip("check")
    assert [one for one in ("django", "evennia", "httpx2", "twisted") if bare.has(one)] == []
    assert bare.has("evennia_ai")


def test_every_command_is_tested_without_a_game() -> None:
    tried = (*ON_FILES, *IN_A_GAME)
    untried = [
        name
        for name in _leaves(evennia_ai)
        if not any(f"{one} ".startswith(f"{name} ") for one in tried)
    ]
    assert untried == []


@pytest.mark.parametrize("line", ON_FILES, ids=lambda line: line.replace(f"{ROOT}/", ""))
def test_file_commands_work_alike_without_a_game(
    bare: Environment,
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    scenario = '{"history": [{"role": "user", "name": "Anna", "content": "Hello?"}]}\n'
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(scenario.encode())))
    (tmp_path / "oren.request").write_text(_request(), encoding="utf-8")
    assert run(line.split()) == 0
    expected = capfdbinary.readouterr().out.decode()

    done = bare.runs("evennia-ai", *line.split(), said=scenario)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == expected
    assert expected.strip() or " lint " in line
    for written in {path.name for path in tmp_path.iterdir()}:
        assert _written(bare.folder / written) == _written(tmp_path / written)


def _written(path: Path) -> object:
    """Return what two runs of a command must write alike.

    Archives differ in times and compression.
    """
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return [(one.filename, one.file_size) for one in archive.infolist()]
    return path.stat().st_size


@pytest.mark.parametrize("line", IN_A_GAME, ids=lambda line: line.replace(f"{ROOT}/", ""))
def test_game_commands_say_what_to_install(bare: Environment, line: str) -> None:
    done = bare.runs("evennia-ai", *line.split())

    extra = "workers" if line.startswith("worker ") else "game"
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("evennia-ai: this command needs packages that are not installed")
    assert done.stderr.endswith(f'; type: pip install "evennia-ai[{extra}]"\n')
    assert done.stderr.count("\n") == 1


def test_pure_packages_can_be_imported_without_a_game(bare: Environment) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    [pure] = [
        contract["source_modules"]
        for contract in project["tool"]["importlinter"]["contracts"]
        if contract["name"] == "The engine and the formats import no framework"
    ]

    done = bare.runs("python", "-c", IMPORT_ALL, *pure)
    assert (done.returncode, done.stdout, done.stderr) == (0, "\n", "")


def test_scenario_is_composed_in_python_without_a_game(bare: Environment) -> None:
    code = (
        "from evennia_ai.formats.scenario import run_scenario\n"
        'said = {"role": "user", "name": "Anna", "content": "Hello?"}\n'
        'print(run_scenario({"history": [said]})["messages"][-1]["content"])'
    )
    assert bare.runs("python", "-c", code).stdout == "Hello?\n"


def test_worker_can_be_installed_without_evennia(
    wheel: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    worker = Environment(tmp_path_factory.mktemp("worker"), wheel, extra="[workers]")
    file = worker.folder / "worker.json"
    file.write_text(json.dumps({"database": "postgres://mara:secret@127.0.0.1:1/harbour"}))

    begun = worker.runs("evennia-ai", "worker", str(file))
    kinds = worker.runs("python", "-c", KINDS_OF_WORK)

    assert not worker.has("evennia")
    assert begun.returncode == 2
    # No program listens at this address.
    assert "evennia-ai: the database cannot be read: " in begun.stderr
    assert (kinds.stdout, kinds.stderr) == ("compact observe\n", "")
