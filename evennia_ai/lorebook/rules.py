"""How lore is activated: the settings of one composition, as a value.

`settings.lore` of a scenario is read here. A setting whose value asks for what this room does not
do is refused by name.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Literal

from evennia_ai.lorebook.foreign import one_line
from evennia_ai.prompt.components import is_plain_int
from evennia_ai.prompt.errors import FormatError, NotYetError

Overflow = Literal["skip", "stop"]
Strategy = Literal["evenly", "character_first", "global_first"]
WHERE: Final = "settings.lore"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationRules:
    """How lore is activated.

    `scan_depth` counts messages from the newest, the pending event among them. The budget of all
    lore is `budget_percent` of the prompt's limit, at most `budget_tokens`. `greeting_index` is
    the greeting the conversation began with, `group` whether several characters take part. `dice`
    is a fixed number in [0, 1) for every roll; nothing here rolls yet.
    """

    rules: Literal["evennia_ai"] = "evennia_ai"
    scan_depth: int = 4
    recursive: Literal[False] = False
    max_recursion_steps: int = 3
    case_sensitive: bool = False
    match_whole_words: bool = True
    include_names: bool = True
    budget_percent: float = 25
    budget_tokens: int | None = None
    overflow: Overflow = "skip"
    min_activations: Literal[0] = 0
    min_activations_depth_max: int = 0
    group_scoring: Literal[False] = False
    strategy: Strategy = "evenly"
    dice: float | None = None
    dry_run: bool = False
    greeting_index: int = 0
    group: bool = False

    def budget(self, limit_tokens: int) -> int:
        """Tokens that all lore may take of a prompt of `limit_tokens`."""
        share = int(limit_tokens * self.budget_percent / 100)
        return share if self.budget_tokens is None else min(share, self.budget_tokens)


def read_rules(data: Mapping[str, Any]) -> ActivationRules:
    """The rules that `settings.lore` of a scenario asks for.

    FormatError: an unknown setting or a value that it cannot have. NotYetError: a value that asks
    for what this version does not do.
    """
    if not isinstance(data, Mapping):
        raise FormatError("scenario", f"{WHERE}: must be an object")
    unknown = [str(name) for name in data if name not in _ALLOWED]
    if unknown:
        names = one_line(", ".join(unknown))
        raise FormatError(
            "scenario", f"{WHERE}: unknown setting {names}; known are {', '.join(_ALLOWED)}"
        )
    for name, value in data.items():
        wanted = _ALLOWED[name](value)
        if wanted:
            shown = one_line(repr(value))[:60]
            raise FormatError("scenario", f"{WHERE}.{name}: must be {wanted}, not {shown}")
        if name in _ONLY and value != _ONLY[name]:
            raise NotYetError(f"{name}: {str(value).lower()}", WHERE)
    return ActivationRules(**data)


# Says what is wanted where a value is not allowed, "" where it is.
Check = Callable[[Any], str]


def _flag(value: Any) -> str:
    return "" if isinstance(value, bool) else "true or false"


def _count(value: Any) -> str:
    return "" if is_plain_int(value) and value >= 0 else "a whole number, 0 or more"


def _count_or_null(value: Any) -> str:
    return "" if value is None or not _count(value) else "a whole number, 0 or more, or null"


def _percent(value: Any) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return "" if number and 0 <= value <= 100 else "a number from 0 to 100"


def _chance_or_null(value: Any) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return "" if value is None or (number and 0 <= value < 1) else "a number in [0, 1), or null"


def _one_of(*choices: str) -> Check:
    return lambda value: "" if value in choices else "one of " + ", ".join(choices)


_ALLOWED: Final[Mapping[str, Check]] = {
    "rules": _one_of("evennia_ai", "sillytavern"),
    "scan_depth": _count,
    "recursive": _flag,
    "max_recursion_steps": _count,
    "case_sensitive": _flag,
    "match_whole_words": _flag,
    "include_names": _flag,
    "budget_percent": _percent,
    "budget_tokens": _count_or_null,
    "overflow": _one_of("skip", "stop"),
    "min_activations": _count,
    "min_activations_depth_max": _count,
    "group_scoring": _flag,
    "strategy": _one_of("evenly", "character_first", "global_first"),
    "dice": _chance_or_null,
    "dry_run": _flag,
}
# The one value that this version does of a setting that can have others.
_ONLY: Final[Mapping[str, Any]] = {
    field.name: field.default
    for field in fields(ActivationRules)
    if field.name in ("rules", "recursive", "min_activations", "group_scoring")
}
