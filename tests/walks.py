"""Measure how one action walks through the code: files, moves between them, functions.

A move is a call of a function in another file than that of the function called before it. Measure
the second of two equal actions, because the first one also fills caches.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import evennia_ai

_ROOT = f"{Path(evennia_ai.__file__).resolve().parent}/"


class Walk:
    """The files and functions of `evennia_ai` that one action used, in order."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, str]] = []
        """Each move: the file that is entered, and the function in it that is called first."""
        self.functions: set[tuple[str, str]] = set()

    @property
    def files(self) -> list[str]:
        """The files, in the order of their first visit."""
        return list(dict.fromkeys(file for file, _ in self.steps))

    @property
    def moves(self) -> int:
        """How many times the walk moved to another file."""
        return len(self.steps)

    def __str__(self) -> str:
        return f"{len(self.files)} files, {self.moves} moves, {len(self.functions)} functions"


@contextmanager
def walked() -> Iterator[Walk]:
    """Record which functions of `evennia_ai` this thread calls in the block."""
    walk, last = Walk(), ""

    def seen(frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal last
        if event != "call" or not frame.f_code.co_filename.startswith(_ROOT):
            return
        file = frame.f_code.co_filename[len(_ROOT) :]
        walk.functions.add((file, frame.f_code.co_qualname))
        if file != last:
            walk.steps.append((file, frame.f_code.co_qualname))
            last = file

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        yield walk
    finally:
        sys.setprofile(before)
