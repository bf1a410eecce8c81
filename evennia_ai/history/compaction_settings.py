"""Settings of compaction: whether histories are compacted, by whom, and by which rules.

A game sets single ones of them in one dictionary; what it leaves out is as it is by default.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from evennia_ai.errors import FormatError
from evennia_ai.foreign.fields import read_fields
from evennia_ai.history.compaction import CompactionRules
from evennia_ai.history.errors import CompactionRulesError

By = Literal["model", "extract"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionSettings:
    """How a game compacts."""

    enabled: bool = True
    by: By = "model"
    """Who makes summaries as long as a model can be asked."""
    rules: CompactionRules = field(default_factory=CompactionRules)


def read_compaction(given: Any, *, where: str) -> CompactionSettings:
    """The settings in the dictionary `given`; FormatError names the first that cannot be."""
    try:
        return read_fields(CompactionSettings, given, where=where)
    except CompactionRulesError as error:
        problem = f"{error.rule} cannot be {error.value}; it must be {error.wanted}"
        raise FormatError("setting", f"{where}: {problem}") from error
