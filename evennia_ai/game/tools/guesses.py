"""Guesses: that a name was understood as somebody or something that is called otherwise.

Names are looked up deep inside of tools, a game's own among them, and a guess must be told by all
of them. So what is guessed while a tool runs is gathered here, and the toolbox tells it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_now: Final[ContextVar[list[str] | None]] = ContextVar("evennia_ai_guesses", default=None)


@contextmanager
def guesses_of_tool() -> Iterator[list[str]]:
    """While it lasts, guesses are gathered in what it yields, a sentence each."""
    gathered: list[str] = []
    token = _now.set(gathered)
    try:
        yield gathered
    finally:
        _now.reset(token)


def guessed(name: str, *, meant: str) -> None:
    """Note that `name` was understood as what is called `meant`."""
    sentence = f"'{name}' was understood as {meant}."
    gathered = _now.get()
    if gathered is not None and sentence not in gathered:
        gathered.append(sentence)
