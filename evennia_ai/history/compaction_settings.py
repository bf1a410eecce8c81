"""Settings of compaction: whether histories are compacted, by whom, and by which rules.

A game sets single ones of them in one dictionary; what it leaves out is as it is by default.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from typing import Any, Final, Literal, get_args

from evennia_ai.history.compaction import CompactionRules
from evennia_ai.history.errors import CompactionRulesError
from evennia_ai.prompt.components import is_plain_int
from evennia_ai.prompt.errors import FormatError

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
    if not isinstance(given, Mapping):
        raise FormatError("setting", f"{where}: must be a dictionary")
    for name, value in given.items():
        problem = _problem(name, value)
        if problem:
            raise FormatError("setting", f"{where}{problem}")
    try:
        rules = CompactionRules(**{name: given[name] for name in _RULES if name in given})
    except CompactionRulesError as error:
        problem = f"{error.rule} cannot be {error.value}; it must be {error.wanted}"
        raise FormatError("setting", f"{where}: {problem}") from error
    return CompactionSettings(
        enabled=given.get("enabled", True), by=given.get("by", "model"), rules=rules
    )


def _problem(name: Any, value: Any) -> str:
    """What is wrong with one of them, "" where nothing is."""
    if name not in _KNOWN:
        near = get_close_matches(str(name), _KNOWN, n=1)
        meant = f"; did you mean {near[0]}?" if near else ""
        return f": there is no rule {name!r}{meant}"
    if name == "enabled":
        return "" if isinstance(value, bool) else f".enabled: must be True or False, not {value!r}"
    if name == "by":
        known = " or ".join(f'"{by}"' for by in _BY)
        return "" if value in _BY else f".by: must be {known}, not {value!r}"
    return "" if is_plain_int(value) else f".{name}: must be a whole number, not {value!r}"
