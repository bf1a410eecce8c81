"""Fuzzing of books: bytes become a book and a conversation, and what must hold is asked.

    python fuzz/lorebook.py -runs=20000 [FOLDER]

FOLDER keeps the inputs that reached something new; without it they are forgotten. All options are
libFuzzer's, such as `-max_total_time=60`; a file in place of the folder is run alone. What fails,
or takes longer than half a minute, is written to the folder for temporary files and named.
Needs `atheris` (the extra `fuzz`).
"""

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["evennia_ai.lorebook"]):
    from lore_checks import check, seeds


LIMITS = ["-max_len=4096", "-timeout=30", f"-artifact_prefix={tempfile.gettempdir()}/"]


def main() -> None:
    options = [argument for argument in sys.argv[1:] if argument.startswith("-")]
    given = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    with tempfile.TemporaryDirectory() as folder:
        for number, seed in enumerate(seeds()):
            Path(folder, f"seed-{number}").write_bytes(seed)
        corpus = given if given and Path(given[0]).is_file() else [*given, folder]
        atheris.Setup([sys.argv[0], *LIMITS, *options, *corpus], check)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
