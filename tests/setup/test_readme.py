"""What the README tells a newcomer to type works."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)


def _blocks(language: str) -> list[str]:
    return [text for found, text in BLOCK.findall(README) if found == language]


def _commands(program: str) -> list[str]:
    lines = [line for block in _blocks("console") for line in block.splitlines()]
    return [line for line in lines if line.startswith(f"{program} ")]


def test_there_are_commands_of_every_kind():
    assert _commands(".venv/bin/evennia-ai")
    assert _commands("make")
    assert _commands("pip")


@pytest.mark.parametrize("line", _commands(".venv/bin/evennia-ai"))
def test_a_command_of_the_readme_runs(line):
    words = shlex.split(line, comments=True)[1:]
    done = subprocess.run(
        [sys.executable, "-c", "from evennia_ai.cli import main; main()", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip()


@pytest.mark.parametrize("line", _commands("make"))
def test_a_make_target_of_the_readme_exists(line):
    target = shlex.split(line, comments=True)[1]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")

    assert target in makefile.split(".PHONY:")[1].splitlines()[0].split()


@pytest.mark.parametrize("block", [b for b in _blocks("python") if "run_scenario" in b])
def test_the_python_of_the_readme_runs(block):
    names: dict[str, object] = {}
    exec(block, names)

    assert names["result"]["messages"][-1]["content"] == "Hello?"
