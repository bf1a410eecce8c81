"""Settings of compaction: whether histories are compacted, by whom, and by which rules.

A game sets single ones of them in one dictionary; what it leaves out is as it is by default.
"""

from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal, get_args

from evennia_ai.errors import FormatError
from evennia_ai.history.compaction import CompactionRules
from evennia_ai.history.errors import CompactionRulesError
from evennia_ai.prompt.components import is_plain_int
from evennia_ai.prompt.given_settings import refuse_wrong

By = Literal["model", "extract"]
_BY: Final[tuple[By, ...]] = get_args(By)
_RULES: Final = tuple(field.name for field in fields(CompactionRules))
_KNOWN: Final = ("enabled", "by", *_RULES)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionSettings:
    """How a game compacts; `by` is who makes summaries as long as a model can be asked."""

    enabled: bool = True
    by: By = "model"
    rules: CompactionRules = field(default_factory=CompactionRules)


def read_compaction(given: Any, *, where: str) -> CompactionSettings:
    """The settings in the dictionary `given`; FormatError names the first that cannot be."""
    refuse_wrong(given, _KNOWN, _wanted, where=where)
    try:
        rules = CompactionRules(**{name: given[name] for name in _RULES if name in given})
    except CompactionRulesError as error:
        problem = f"{error.rule} cannot be {error.value}; it must be {error.wanted}"
        raise FormatError("setting", f"{where}: {problem}") from error
    return CompactionSettings(
        enabled=given.get("enabled", True), by=given.get("by", "model"), rules=rules
    )


def _wanted(name: str, value: Any) -> str:
    """What a value of this name must be, "" where it is that."""
    if name == "enabled":
        return "" if isinstance(value, bool) else "True or False"
    if name == "by":
        return "" if value in _BY else " or ".join(f'"{by}"' for by in _BY)
    return "" if is_plain_int(value) else "a whole number"
