"""The settings as values: the only place that reads the game's settings, and the environment.

Every name begins with `EVENNIA_AI_`. The address and the model may also come from environment
variables of the same names, which win; API keys come from the environment alone and are never in
the settings, the database, a log or the `repr` of anything.
"""

import os
from dataclasses import replace
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.signals import setting_changed
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from evennia_ai.errors import EvenniaAIError
from evennia_ai.foreign.fields import door
from evennia_ai.llm.profiles import ANTHROPIC_KEY
from evennia_ai.net.secrets import SecretText
from evennia_ai.settings.kinds import PREFIX, Setting
from evennia_ai.settings.model import SETTINGS, Conf
from evennia_ai.settings.together import Problem, doubtful, wrong_together


class SettingError(EvenniaAIError):
    """A setting has a value it cannot have."""


@lru_cache(maxsize=1)
def conf() -> Conf:
    """The settings as values, read once; SettingError names the first wrong one."""
    read = _read()
    wrong = read if isinstance(read, list) else list(wrong_together(read))
    if isinstance(read, list) or wrong:
        raise SettingError(f"{wrong[0].message} {wrong[0].hint}")
    return read


def problems() -> list[Problem]:
    """What is wrong with the settings, in the order of their fields."""
    read = _read()
    return read if isinstance(read, list) else list(wrong_together(read))


def doubts() -> list[Problem]:
    """What may be meant so and mostly is not; nothing while something is wrong."""
    read = _read()
    if isinstance(read, list) or any(wrong_together(read)):
        return []
    return list(doubtful(read, given_budget=_value(SETTINGS["knowledge_budget"])))


def unknown_names() -> list[tuple[str, str]]:
    """Settings with our prefix that we do not know, each with a near known name or ""."""
    known = [setting.full_name for setting in SETTINGS.values()]
    given = [name for name in dir(settings) if name.startswith(PREFIX) and name not in known]
    return [(name, next(iter(get_close_matches(name, known, n=1)), "")) for name in given]


def _read() -> Conf | list[Problem]:
    """The settings as values, or what is wrong with single ones of them."""
    given = {field: _value(setting) for field, setting in SETTINGS.items()}
    game_folder = Path(getattr(settings, "GAME_DIR", ".")).absolute()
    try:
        read = door(Conf).model_validate(
            {"game_folder": game_folder, **given}, context={"environment": os.environ}
        )
    except ValidationError as error:
        first = {str(one["loc"][0]): one for one in reversed(error.errors())}
        return [_problem(SETTINGS[name], first[name]) for name in SETTINGS if name in first]
    made = Conf(game_folder=game_folder, **{name: getattr(read, name) for name in SETTINGS})
    named = {fields.get("api_key_env", "") for fields in made.given_profiles.values()}
    variables = {made.api_key_env, ANTHROPIC_KEY, *named}
    keys = {name: SecretText(os.environ[name]) for name in variables if name in os.environ}
    return replace(made, api_keys=keys)


def _value(setting: Setting) -> Any:
    variable = _variable(setting)
    if variable:
        return os.environ[variable]
    return getattr(settings, setting.full_name, setting.default)


def _variable(setting: Setting) -> str:
    """The environment variable that says what the setting is; "" where none does."""
    names = (setting.full_name, setting.variable) if setting.from_environment else ()
    return next((name for name in names if name and name in os.environ), "")


def _problem(setting: Setting, error: ErrorDetails) -> Problem:
    """What is wrong with one setting: as its reader says, or that the value is not allowed."""
    message = error["msg"]
    if not message.startswith(setting.full_name):
        place = " (from the environment)" if _variable(setting) else ""
        shown = f" {_value(setting)!r}" if setting.is_shown else ""
        message = f"{setting.full_name}{place}{shown} is not allowed"
    return Problem(id=setting.id, message=f"{message}.", hint=f"It must be {setting.wanted}.")


def _forget(*, setting: str, **_: Any) -> None:
    if setting.startswith(PREFIX) or setting == "GAME_DIR":
        conf.cache_clear()


setting_changed.connect(_forget, dispatch_uid="evennia_ai.settings.conf")
