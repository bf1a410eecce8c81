"""Read the hostile texts of `corpus.yaml`."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

MARK = "Xyzzy"
"""A word in each hostile text that is followed through the game, and in no other text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A hostile text, the ways in which it enters the game, and why it is dangerous.

    `reads` is the part that a model must receive unchanged. An `unmarked` text does not contain
    the mark. A text that `moves` may choose its place in the history.
    """

    name: str
    into: tuple[str, ...]
    text: str
    why: str
    reads: str = ""
    unmarked: bool = False
    moves: bool = False


@cache
def corpus() -> tuple[Case, ...]:
    """Return all cases, in the order of the file."""
    given = yaml.safe_load((Path(__file__).parent / "corpus.yaml").read_text(encoding="utf-8"))
    return tuple(_case(**one) for one in given)


def _case(*, text: str, into: list[str], repeat: str = "", times: int = 0, **rest: str) -> Case:
    return Case(text=text + repeat * times, into=tuple(into), **rest)
