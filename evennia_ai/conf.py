"""The settings: the only place that reads them, and the environment.

Every name begins with `EVENNIA_AI_`. The address and the model may also come from environment
variables of the same names, which win; the API key comes from the environment alone and is never
in the settings, the database, a log or the `repr` of anything.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.signals import setting_changed

from evennia_ai.cards.limits import CardLimits
from evennia_ai.history.compaction_settings import CompactionSettings
from evennia_ai.lorebook.rules import ActivationRules
from evennia_ai.prompt.errors import EvenniaAIError
from evennia_ai.prompt.expansion import LAYOUTS, Layout
from evennia_ai.prompt.staying import BLOCKS_MODES, BlocksMode
from evennia_ai.setting_values import (
    GAME_LORE,
    PREFIX,
    are_paths,
    card_limits,
    compaction,
    is_address,
    is_line,
    is_seconds,
    is_some_seconds,
    is_text,
    lore_rules,
    problem_of,
    reads,
    whole_number,
)


class SettingError(EvenniaAIError):
    """A setting has a value it cannot have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conf:
    """All settings of evennia_ai, checked.

    An empty `base_url` means that no endpoint is configured and the offline responder answers.
    `card_folder` is absolute: builders import cards from there and from nowhere else. `lore_facts`
    are dotted paths of the game's own functions (`evennia_ai.game.facts`). An empty `summary_model`
    means that the model which answers is asked for summaries too.
    """

    base_url: str
    model: str
    api_key: str = field(repr=False)
    model_timeout_seconds: float
    context_tokens: int
    reply_tokens: int
    layout: Layout
    max_concurrent_calls: int
    queue_limit: int
    hop_limit: int
    cooldown_seconds: float
    engagement_seconds: float
    refresh_seconds: float
    fallback_line: str
    card_folder: Path
    max_source_characters: int
    card_limits: CardLimits
    lore: ActivationRules
    lore_facts: tuple[str, ...]
    keep_turn_days: int
    summary_model: str
    compaction: CompactionSettings
    dynamic_block: BlocksMode

    @property
    def is_offline(self) -> bool:
        """Whether no endpoint is configured."""
        return not self.base_url


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A setting with a wrong value; `id` is that of its system check."""

    id: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setting:
    id: str
    field: str
    default: object
    wanted: str
    accepts: Callable[[Any], bool]
    from_environment: bool = False
    problem: Callable[[Any], str] | None = None

    @property
    def name(self) -> str:
        return PREFIX + self.field.upper()

    def value(self) -> Any:
        if self.from_environment and self.name in os.environ:
            return os.environ[self.name]
        return getattr(settings, self.name, self.default)


# The ids of the checks are documented: a setting keeps its id.
_SETTINGS: Final = (
    _Setting(
        id="E001",
        field="base_url",
        default="",
        wanted='an http or https address without a name, a password or a query, or ""',
        accepts=is_address,
        from_environment=True,
    ),
    _Setting(
        id="E002",
        field="model",
        default="",
        wanted="the name of a model, as text",
        accepts=is_text,
        from_environment=True,
    ),
    _Setting(
        id="E003",
        field="api_key_env",
        default="EVENNIA_AI_API_KEY",
        wanted="the name of an environment variable",
        accepts=lambda value: isinstance(value, str) and value.isidentifier(),
    ),
    _Setting(
        id="E004",
        field="model_timeout_seconds",
        default=60.0,
        wanted="a number of seconds over 0",
        accepts=is_some_seconds,
    ),
    _Setting(
        id="E005",
        field="context_tokens",
        default=8192,
        wanted="a whole number from 256 on",
        accepts=whole_number(256),
    ),
    _Setting(
        id="E006",
        field="reply_tokens",
        default=400,
        wanted="a whole number from 1 on",
        accepts=whole_number(1),
    ),
    _Setting(
        id="E007",
        field="layout",
        default="cache",
        wanted='"cache" or "classic"',
        accepts=lambda value: value in LAYOUTS,
    ),
    _Setting(
        id="E008",
        field="max_concurrent_calls",
        default=4,
        wanted="a whole number from 1 to 1000",
        accepts=whole_number(1, 1000),
    ),
    _Setting(
        id="E009",
        field="queue_limit",
        default=128,
        wanted="a whole number from 1 on",
        accepts=whole_number(1),
    ),
    _Setting(
        id="E010",
        field="hop_limit",
        default=3,
        wanted="a whole number, 0 or more",
        accepts=whole_number(0),
    ),
    _Setting(
        id="E011",
        field="cooldown_seconds",
        default=1.0,
        wanted="a number of seconds, 0 or more",
        accepts=is_seconds,
    ),
    _Setting(
        id="E012",
        field="engagement_seconds",
        default=60.0,
        wanted="a number of seconds, 0 or more",
        accepts=is_seconds,
    ),
    _Setting(
        id="E013",
        field="refresh_seconds",
        default=30.0,
        wanted="a number of seconds over 0",
        accepts=is_some_seconds,
    ),
    _Setting(
        id="E014",
        field="fallback_line",
        default="I am lost in thought just now. Ask me again in a moment.",
        wanted="one line of text, at most 500 characters",
        accepts=is_line,
    ),
    _Setting(
        id="E015",
        field="card_folder",
        default="world/cards",
        wanted="a folder; a relative one counts from the game's folder",
        accepts=lambda value: isinstance(value, str | Path) and bool(str(value)),
    ),
    _Setting(
        id="E016",
        field="max_source_characters",
        default=4_000_000,
        wanted="a whole number from 1000 on",
        accepts=whole_number(1000),
    ),
    _Setting(
        id="E019",
        field="lore",
        default=GAME_LORE,
        wanted="a dictionary with rules of lore, as settings.lore of a scenario has them",
        accepts=reads(lore_rules),
        problem=problem_of(lore_rules),
    ),
    _Setting(
        id="E020",
        field="lore_facts",
        default=[],
        wanted='a list of dotted paths of functions, such as ["world.facts.of_the_tide"]',
        accepts=are_paths,
    ),
    _Setting(
        id="E021",
        field="card_limits",
        default={},
        wanted='a dictionary of limits, such as {"file_bytes": 8388608}',
        accepts=reads(card_limits),
        problem=problem_of(card_limits),
    ),
    _Setting(
        id="E022",
        field="keep_turn_days",
        default=0,
        wanted="a whole number of days, 0 to keep everything",
        accepts=whole_number(0),
    ),
    _Setting(
        id="E023",
        field="summary_model",
        default="",
        wanted='the name of a model at the same address, or "" for the one that answers',
        accepts=is_text,
    ),
    _Setting(
        id="E024",
        field="compaction",
        default={},
        wanted='a dictionary, such as {"by": "extract", "turn_percent": 90}',
        accepts=reads(compaction),
        problem=problem_of(compaction),
    ),
    _Setting(
        id="E025",
        field="dynamic_block",
        default="latest",
        wanted='"latest", "on_change" or "all"',
        accepts=lambda value: value in BLOCKS_MODES,
    ),
)


@lru_cache(maxsize=1)
def conf() -> Conf:
    """The settings as values, read once; SettingError names the first wrong one."""
    for problem in problems():
        raise SettingError(f"{problem.message} {problem.hint}")
    values = {setting.field: setting.value() for setting in _SETTINGS}
    api_key = os.environ.get(values.pop("api_key_env"), "")
    folder = Path(getattr(settings, "GAME_DIR", "."), values.pop("card_folder"))
    return Conf(
        api_key=api_key,
        card_folder=folder.absolute(),
        lore=lore_rules(values.pop("lore")),
        lore_facts=tuple(values.pop("lore_facts")),
        card_limits=card_limits(values.pop("card_limits")),
        compaction=compaction(values.pop("compaction")),
        **values,
    )


def problems() -> list[Problem]:
    """What is wrong with the settings, in the order of the ids of the checks."""
    found = [_problem(setting) for setting in _SETTINGS if not setting.accepts(setting.value())]
    return found or _disagreements()


def unknown_names() -> list[tuple[str, str]]:
    """Settings with our prefix that we do not know, each with a near known name or ""."""
    known = [setting.name for setting in _SETTINGS]
    given = [name for name in dir(settings) if name.startswith(PREFIX) and name not in known]
    return [(name, next(iter(get_close_matches(name, known, n=1)), "")) for name in given]


def _problem(setting: _Setting) -> Problem:
    hint = f"It must be {setting.wanted}."
    if setting.problem is not None:
        return Problem(id=setting.id, message=f"{setting.problem(setting.value())}.", hint=hint)
    # An address with a password in it must not be repeated in a log.
    shown = "" if setting.field == "base_url" else f" {setting.value()!r}"
    here = " (from the environment)" if setting.from_environment else ""
    place = here if here and setting.name in os.environ else ""
    return Problem(
        id=setting.id,
        message=f"{setting.name}{place}{shown} is not allowed.",
        hint=hint,
    )


def _disagreements() -> list[Problem]:
    """Values that are right alone and wrong together."""
    value = {setting.field: setting.value() for setting in _SETTINGS}
    found = []
    if value["base_url"] and not value["model"]:
        found.append(
            Problem(
                id="E017",
                message="EVENNIA_AI_BASE_URL is set and EVENNIA_AI_MODEL is not.",
                hint="Name the model to ask for at that address.",
            )
        )
    if value["reply_tokens"] >= value["context_tokens"]:
        found.append(
            Problem(
                id="E018",
                message="EVENNIA_AI_REPLY_TOKENS is not smaller than EVENNIA_AI_CONTEXT_TOKENS.",
                hint="The prompt gets what the reply leaves: leave it some.",
            )
        )
    return found


def _forget(*, setting: str, **_: Any) -> None:
    if setting.startswith(PREFIX) or setting == "GAME_DIR":
        conf.cache_clear()


setting_changed.connect(_forget, dispatch_uid="evennia_ai.conf")
