"""Fuzz the readers of card files with atheris.

    python fuzz/cards.py png -max_total_time=60 [FOLDER]

The first word names the targets: png, charx, json, decorators, or several with commas between them.
Several targets run one after the other, each in a process of its own. The other arguments are those
of `lorebook.py`. Needs `atheris` (the extra `fuzz`).
"""

import os
import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[1]))  # builders of the tests make the seeds

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
        if len(names) == 1 or not os.fork():  # libFuzzer ends its process
            target = TARGETS[name]
            run(target.check, target.seeds(), arguments, most_bytes=target.most_bytes)
        _, status = os.wait()
        if status:
            sys.exit(f"{name}: status {os.waitstatus_to_exitcode(status)}")


if __name__ == "__main__":
    main()
