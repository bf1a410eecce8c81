"""Run a fuzz target with its seeds in a temporary folder and the options of libFuzzer."""

import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import atheris

LIMITS = ["-timeout=30", f"-artifact_prefix={tempfile.gettempdir()}/"]


def run(
    check: Callable[[bytes], None],
    seeds: Iterable[bytes],
    arguments: Sequence[str],
    *,
    most_bytes: int,
) -> None:
    """Search for bytes for which `check` fails. Does not return."""
    options = [argument for argument in arguments if argument.startswith("-")]
    given = [argument for argument in arguments if not argument.startswith("-")]
    with tempfile.TemporaryDirectory() as folder:
        for number, seed in enumerate(seeds):
            Path(folder, f"seed-{number}").write_bytes(seed)
        corpus = given if given and Path(given[0]).is_file() else [*given, folder]
        limits = [f"-max_len={most_bytes}", *LIMITS]
        atheris.Setup([sys.argv[0], *limits, *options, *corpus], check)
        atheris.Fuzz()
