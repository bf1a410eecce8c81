"""Fuzz the activation of lorebooks with atheris.

    python fuzz/lorebook.py -runs=20000 [FOLDER]

FOLDER keeps the inputs that reached new code; without it they are lost. A file in place of the
folder runs this one input. All options are libFuzzer's, such as `-max_total_time=60`. An input that
fails, or takes longer than half a minute, is written to the folder for temporary files, and its
path is printed. Needs `atheris` (the extra `fuzz`).
"""

import sys

import atheris

with atheris.instrument_imports(include=["evennia_ai.engine.lorebook"]):
    from lore_checks import check

from lore_seeds import seeds
from running import run

if __name__ == "__main__":
    run(check, seeds(), sys.argv[1:], most_bytes=4096)
