"""The corpus of `corpus.yaml` as values."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

MARK = "Xyzzy"
"""Stands in every text whose way is to be followed, and in nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One hostile text: where it goes in, and why it is dangerous.

    `reads` is what of it a model must be shown as it stands. `unmarked`: it does not hold the mark.
    `moves`: it may choose where in the history it stands.
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
    """All cases, in the order of the file."""
    given = yaml.safe_load((Path(__file__).parent / "corpus.yaml").read_text(encoding="utf-8"))
    return tuple(_case(**one) for one in given)


def _case(*, text: str, into: list[str], repeat: str = "", times: int = 0, **rest: str) -> Case:
    return Case(text=text + repeat * times, into=tuple(into), **rest)
