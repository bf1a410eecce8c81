"""The settings: the only place that reads them, and the environment.

Every name begins with `EVENNIA_AI_`. The address and the model may also come from environment
variables of the same names, which win; the API key comes from the environment alone and is never
in the settings, the database, a log or the `repr` of anything.
"""

import os
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.signals import setting_changed

from evennia_ai.cards.limits import CardLimits
from evennia_ai.history.compaction_settings import CompactionSettings
from evennia_ai.lorebook.rules import ActivationRules
from evennia_ai.prompt.errors import EvenniaAIError
from evennia_ai.prompt.expansion import Layout
from evennia_ai.prompt.staying import BlocksMode
from evennia_ai.setting_values import PREFIX, card_limits, compaction, lore_rules
from evennia_ai.settings_table import SETTINGS, Setting


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


@lru_cache(maxsize=1)
def conf() -> Conf:
    """The settings as values, read once; SettingError names the first wrong one."""
    for problem in problems():
        raise SettingError(f"{problem.message} {problem.hint}")
    values = {setting.field: _value(setting) for setting in SETTINGS}
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
    found = [_problem(setting) for setting in SETTINGS if not setting.accepts(_value(setting))]
    return found or _disagreements()


def unknown_names() -> list[tuple[str, str]]:
    """Settings with our prefix that we do not know, each with a near known name or ""."""
    known = [setting.name for setting in SETTINGS]
    given = [name for name in dir(settings) if name.startswith(PREFIX) and name not in known]
    return [(name, next(iter(get_close_matches(name, known, n=1)), "")) for name in given]


def _value(setting: Setting) -> Any:
    if setting.from_environment and setting.name in os.environ:
        return os.environ[setting.name]
    return getattr(settings, setting.name, setting.default)


def _problem(setting: Setting) -> Problem:
    hint = f"It must be {setting.wanted}."
    if setting.problem is not None:
        return Problem(id=setting.id, message=f"{setting.problem(_value(setting))}.", hint=hint)
    # An address with a password in it must not be repeated in a log.
    shown = "" if setting.field == "base_url" else f" {_value(setting)!r}"
    here = " (from the environment)" if setting.from_environment else ""
    place = here if here and setting.name in os.environ else ""
    return Problem(
        id=setting.id,
        message=f"{setting.name}{place}{shown} is not allowed.",
        hint=hint,
    )


def _disagreements() -> list[Problem]:
    """Values that are right alone and wrong together."""
    value = {setting.field: _value(setting) for setting in SETTINGS}
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
