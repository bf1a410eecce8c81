"""Settings of the lorekeeper: which base it writes for, and how much its generator is shown.

A game sets single ones of them in one dictionary; what it leaves out is as it is by default.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from evennia_ai.foreign.fields import Must, read_fields

Placement = Literal["prepend", "split"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LorekeeperSettings:
    """How builders are helped to write pages."""

    enabled: bool = True
    """False: the generator is asked without a package."""
    base: Annotated[str, Must("the key of a knowledge base, as text")] = ""
    """The key of the knowledge base that is meant where none is named."""
    package_placement: Placement = "prepend"
    """Where a package stands: before the generator's system prompt, or split in two parts, the
    instructions there and all else in a message before the task."""
    budget_tokens: Annotated[int, Field(ge=600, le=10**6)] = 6000
    """The most that a package may have where the base's own config page says nothing else."""
    reply_tokens: Annotated[int, Field(ge=1, le=10**6)] = 1500
    """The most of an answer."""


def read_lorekeeper(given: Any, *, where: str) -> LorekeeperSettings:
    """The settings in the dictionary `given`; FormatError names the first that cannot be."""
    return read_fields(LorekeeperSettings, given, where=where)
