"""Run the whole conformance kit against this package, once per run of the tests."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from conformance.run import CASES
from tests.once_a_run import made_once

ADAPTERS = ("cards", "lore", "prompts", "macros")


def results_of_this_package(folder: Path) -> dict[str, Any]:
    """Return the report of the kit, which runs from a copy of its folder.

    Args:
        folder: any folder that pytest gave this worker.
    """
    made = made_once("conformance-kit", _run, beside=folder)
    return json.loads((made / "report.json").read_text("utf-8"))


def _run(folder: Path) -> None:
    kit = shutil.copytree(CASES.parent, folder / "kit")
    commands = [f"{sys.executable} adapters/evennia_ai_{name}.py" for name in ADAPTERS]
    options = [word for command in commands for word in ("--adapter", command)]
    # A busy machine may need long for an answer, which must not fail a test.
    done = subprocess.run(
        [sys.executable, "run.py", *options, "--json", "../report.json", "--timeout", "120"],
        cwd=kit,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
