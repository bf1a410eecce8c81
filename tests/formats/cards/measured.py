"""A program that measures what it costs to load card files.

Run it with `python -m tests.formats.cards.measured`. It reads paths from standard input, one on
each line, and answers each with a line of JSON. Every file is loaded in its own process, so that
memory of one file does not count for the next. The bytes of the file itself do not count.
"""

import json
import os
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

from evennia_ai.engine.errors import FormatError
from evennia_ai.formats.cards.loading import load_card
from tests.effort import slowness
from tests.formats.cards.builders import card_data
from tests.formats.cards.carriers import a_picture, an_archive

MIB = 1024 * 1024
USUAL_SECONDS = 1.0
"""The speed of the machine is measured only for a file that takes longer than this."""
UNIT = 1 if sys.platform == "darwin" else 1024


@contextmanager
def measuring() -> Iterator[Any]:
    """Return a context with a function that measures the card file at a path.

    The measuring program ends with the context.
    """
    command = [sys.executable, "-m", "tests.formats.cards.measured"]
    root = Path(__file__).parents[3]
    with Popen(command, cwd=root, stdin=PIPE, stdout=PIPE, text=True) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        to, back = program.stdin, program.stdout

        def measure(path: Path) -> dict[str, Any]:
            to.write(f"{path}\n")
            to.flush()
            return json.loads(back.readline())

        yield measure
        to.close()


def main() -> None:
    for known in (a_picture(card_data()), an_archive(card_data())):
        # load known cards first, so that late imports do not count for a measured file
        load_card(known)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            print(json.dumps(_cost(Path(line.rstrip("\n")))), flush=True)
            os._exit(0)
        os.waitpid(child, 0)


def _cost(path: Path) -> dict[str, Any]:
    content = path.read_bytes()
    before, started = _peak(), time.process_time()
    try:
        loaded, told = load_card(content), ""
    except FormatError as error:
        loaded, told = None, error.message
    seconds = time.process_time() - started
    if seconds > USUAL_SECONDS:
        seconds /= slowness()
    notices = () if loaded is None else loaded.notices
    mib = (_peak() - before) / MIB
    return {"seconds": seconds, "mib": mib, "told": told, "notices": len(notices)}


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * UNIT


if __name__ == "__main__":
    main()
