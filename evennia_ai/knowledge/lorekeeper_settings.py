"""Settings of the lorekeeper: which base it writes for, and how much its generator is shown.

A game sets single ones of them in one dictionary; what it leaves out is as it is by default.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

from evennia_ai.prompt.components import is_plain_int
from evennia_ai.prompt.given_settings import refuse_wrong

Placement = Literal["prepend", "split"]
PLACEMENTS: Final[tuple[Placement, ...]] = get_args(Placement)


@dataclass(frozen=True, slots=True, kw_only=True)
class LorekeeperSettings:
    """How builders are helped to write pages.

    With `enabled` off the generator is asked without a package. `base` is the key of the knowledge
    base that is meant where none is named. `package_placement` says where a package stands: before
    the generator's system prompt, or split in two parts, the instructions there and all else in a
    message before the task. `budget_tokens` is the most that a package may have where the base's
    own config page says nothing else, `reply_tokens` the most of an answer.
    """

    enabled: bool = True
    base: str = ""
    package_placement: Placement = "prepend"
    budget_tokens: int = 6000
    reply_tokens: int = 1500


_KNOWN: Final = tuple(field.name for field in fields(LorekeeperSettings))
# Name -> the least and the greatest it can be.
_NUMBERS: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {"budget_tokens": (600, 10**6), "reply_tokens": (1, 10**6)}
)


def read_lorekeeper(given: Any, *, where: str) -> LorekeeperSettings:
    """The settings in the dictionary `given`; FormatError names the first that cannot be."""
    refuse_wrong(given, _KNOWN, _wanted, where=where)
    return LorekeeperSettings(**given)


def _wanted(name: str, value: Any) -> str:
    """What a value of this name must be, "" where it is that."""
    if name == "enabled":
        return "" if isinstance(value, bool) else "True or False"
    if name == "package_placement":
        return "" if value in PLACEMENTS else '"prepend" or "split"'
    if name == "base":
        return "" if isinstance(value, str) else "the key of a knowledge base, as text"
    low, high = _NUMBERS[name]
    fits = is_plain_int(value) and low <= value <= high
    return "" if fits else f"a whole number from {low} to {high}"
