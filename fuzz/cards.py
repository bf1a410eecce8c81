"""Fuzzing of card files: what must hold for every file is asked of pictures, archives and texts.

    python fuzz/cards.py png -max_total_time=60 [FOLDER]

The first word is what to look at: png, charx, json or decorators. The rest is as in `lorebook.py`.
Needs `atheris` (the extra `fuzz`).
"""

import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[1]))  # the tests make the first files

with atheris.instrument_imports(include=["evennia_ai.cards", "evennia_ai.lorebook.decorators"]):
    from fuzz.card_checks import TARGETS

from fuzz.running import run


def main() -> None:
    name, *arguments = sys.argv[1:] or [""]
    if name not in TARGETS:
        sys.exit(f"give one of {', '.join(TARGETS)}, not {name!r}")
    target = TARGETS[name]
    run(target.check, target.seeds(), arguments, most_bytes=target.most_bytes)


if __name__ == "__main__":
    main()
