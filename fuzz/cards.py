"""Fuzzing of card files: what must hold for every file is asked of pictures, archives and texts.

    python fuzz/cards.py png -max_total_time=60 [FOLDER]

The first word is what to look at: png, charx, json or decorators. The rest is as in `lorebook.py`.
Of several, with commas between them, each is looked at in turn, in a process of its own.
Needs `atheris` (the extra `fuzz`).
"""

import os
import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[1]))  # the tests make the first files

with atheris.instrument_imports(
    include=["evennia_ai.formats.cards", "evennia_ai.engine.lorebook.decorators"]
):
    from fuzz.card_checks import TARGETS

from fuzz.running import run


def main() -> None:
    words, *arguments = sys.argv[1:] or [""]
    names = words.split(",")
    if unknown := [name for name in names if name not in TARGETS]:
        sys.exit(f"give some of {', '.join(TARGETS)}, not {unknown[0]!r}")
    for name in names:
        if len(names) == 1 or not os.fork():  # libFuzzer ends the process it runs in
            target = TARGETS[name]
            run(target.check, target.seeds(), arguments, most_bytes=target.most_bytes)
        _, status = os.wait()
        if status:
            sys.exit(f"{name}: status {os.waitstatus_to_exitcode(status)}")


if __name__ == "__main__":
    main()
