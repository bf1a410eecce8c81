"""Read and check the game's settings.

Only this module reads the settings and the environment. Every name begins with `EVENNIA_AI_`.
Address and model may also come from environment variables with the same names, which take
precedence. API keys come only from the environment; they are never in the settings, the database, a
log or a `repr`. This module also finds settings that are valid one by one but contradict each
other.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.signals import setting_changed
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.engine.foreign.fields import strict_model, suggest_name
from evennia_ai.engine.knowledge.settings import read_search_budget
from evennia_ai.services.llm.prices import needs_tables
from evennia_ai.services.llm.profiles import (
    ANTHROPIC_KEY,
    DEFAULT,
    SUMMARISER,
    ModelProfile,
    ModelRole,
    is_open,
    problem_of_profile,
)
from evennia_ai.services.llm.sentence_model import INSTALL, missing_packages
from evennia_ai.services.net.secrets import SecretText
from evennia_ai.services.settings.game import SETTINGS, Conf
from evennia_ai.services.settings.kinds import PREFIX, Setting
from evennia_ai.services.settings.workers import QUEUE_APP


class SettingError(EvenniaAIError):
    """A setting has a value that is not allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is wrong or doubtful about a setting, with a hint for the admin."""

    id: str
    """The id of the system check, without a prefix. It is documented and never changes."""
    message: str
    hint: str


@lru_cache(maxsize=1)
def conf() -> Conf:
    """Return the checked settings. They are read once.

    Raises:
        SettingError: a setting is wrong; the message names the first one.
    """
    read = _read_settings()
    wrong = read if isinstance(read, list) else list(wrong_together(read))
    if isinstance(read, list) or wrong:
        raise SettingError(f"{wrong[0].message} {wrong[0].hint}")
    return read


def setting_problems() -> list[Problem]:
    """Return what is wrong with the settings, in the order of their fields."""
    read = _read_settings()
    return read if isinstance(read, list) else list(wrong_together(read))


def setting_doubts() -> list[Problem]:
    """Return settings that are allowed but probably a mistake.

    The result is empty while a setting is wrong.
    """
    read = _read_settings()
    if isinstance(read, list) or any(wrong_together(read)):
        return []
    return list(doubtful(read, given_budget=_value(SETTINGS["knowledge_budget"])))


def unknown_names() -> list[tuple[str, str]]:
    """Return the names with the prefix EVENNIA_AI_ that are not settings.

    Each one comes with the name of a similar setting, or "".
    """
    known = [setting.full_name for setting in SETTINGS.values()]
    given = [name for name in dir(settings) if name.startswith(PREFIX) and name not in known]
    return [(name, next(iter(get_close_matches(name, known, n=1)), "")) for name in given]


def _read_settings() -> Conf | list[Problem]:
    """Return the checked settings, or else the problems of single settings."""
    given = {field: _value(setting) for field, setting in SETTINGS.items()}
    game_folder = Path(getattr(settings, "GAME_DIR", ".")).absolute()
    try:
        read = strict_model(Conf).model_validate(
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
    """Return the environment variable that gives the setting its value, or ""."""
    names = (setting.full_name, setting.variable) if setting.from_environment else ()
    return next((name for name in names if name and name in os.environ), "")


def _problem(setting: Setting, error: ErrorDetails) -> Problem:
    """Return the problem of one setting.

    If the setting has a reader, the message is the reader's.
    """
    message = error["msg"]
    if not message.startswith(setting.full_name):
        place = " (from the environment)" if _variable(setting) else ""
        shown = f" {_value(setting)!r}" if setting.is_shown else ""
        message = f"{setting.full_name}{place}{shown} is not allowed"
    return Problem(id=setting.id, message=f"{message}.", hint=f"It must be {setting.wanted}.")


def _forget(*, setting: str, **_: Any) -> None:
    if setting.startswith(PREFIX) or setting == "GAME_DIR":
        conf.cache_clear()


setting_changed.connect(_forget, dispatch_uid="evennia_ai.services.settings.conf")


def wrong_together(values: Conf) -> Iterator[Problem]:
    """Yield settings that contradict each other, and profiles that cannot be used."""
    if values.base_url and not values.profiles[DEFAULT].model:
        yield Problem(
            id="E017",
            message="EVENNIA_AI_BASE_URL is set and EVENNIA_AI_MODEL is not.",
            hint="Name the model to ask for at that address.",
        )
        return
    if values.reply_tokens >= values.context_tokens:
        yield Problem(
            id="E018",
            message="EVENNIA_AI_REPLY_TOKENS is not smaller than EVENNIA_AI_CONTEXT_TOKENS.",
            hint="The prompt gets the tokens that the reply leaves, so it would get none.",
        )
        return
    yield from _unknown_profiles(values.given_roles, values.profiles)
    yield from _repeated_facts(values)
    yield from _unusable(values.profiles)
    yield from _without_http(values)
    yield from _without_embeddings(values)
    yield from _without_a_queue(values)


def doubtful(values: Conf, *, given_budget: Any) -> Iterator[Problem]:
    """Yield settings that are allowed but probably a mistake.

    Args:
        given_budget: The search budget as the game's settings have it, before it was checked.
    """
    for name, variable in _missing_keys(values):
        yield Problem(
            id="W002",
            message=f"Profile '{name}': the environment has no {variable}.",
            hint="Set it to the key of that profile, or remove api_key_env if it needs none.",
        )
    is_offline = values.profiles[DEFAULT].client == "offline"
    if values.given_profiles and is_offline and "speaker" not in values.given_roles:
        known = ", ".join(values.given_profiles)
        yield Problem(
            id="W003",
            message=f"NPCs speak without a model, although there are profiles: {known}.",
            hint=f"Name one in {PREFIX}MODEL_ROLES['speaker'], or call one of them 'default'.",
        )
    for key, site in values.knowledge_wikis.items():
        if site.password_env and not site.password:
            yield Problem(
                id="W005",
                message=f"The wiki '{key}': the environment has no {site.password_env}.",
                hint="Set it to the password of that wiki's bot. The game needs it to log in.",
            )
    if problem := read_search_budget(given_budget)[1]:
        yield Problem(
            id="W006",
            message=f"{PREFIX}KNOWLEDGE_BUDGET is not used: {problem}.",
            hint="NPCs search as if the setting did not exist; correct it.",
        )
    for sender in _secrets_sent_openly(values):
        yield Problem(
            id="W007",
            message=f"{sender} over plain http to another machine; others can read it on the way.",
            hint="Use https, a tunnel (ssh -L) to an address of this machine, or no key.",
        )
    yield from _missing_packages(values)
    yield from _without_prices(values)


def _missing_keys(values: Conf) -> Iterator[tuple[str, str]]:
    """Yield the profiles whose key is not in the environment, each with its variable."""
    for name, profile in values.profiles.items():
        variable = profile.api_key_env
        if variable and not values.key_of(profile) and _names_its_key(values, name):
            yield name, variable


def _names_its_key(values: Conf, name: str) -> bool:
    """True if the settings name a key for a profile. Many servers need none."""
    given = values.given_profiles.get(name, {})
    if "api_key_env" in given or given.get("client") == "anthropic":
        return True
    usual = SETTINGS["api_key_env"].default
    return name == DEFAULT and bool(values.base_url) and values.api_key_env != usual


def _secrets_sent_openly(values: Conf) -> Iterator[str]:
    """Yield the secrets that are sent unencrypted to another machine, as starts of messages."""
    for profile in values.profiles.values():
        if values.shows_key_of(profile):
            yield f"Profile '{profile.name}' sends its key"
    for key, site in values.knowledge_wikis.items():
        if site.password and is_open(site.api):
            yield f"The wiki '{key}' is sent its password"


def _without_http(values: Conf) -> Iterator[Problem]:
    """Yield a problem if a server is configured but the HTTP client is not installed.

    This happens if evennia_ai was installed without the extra `game`.
    """
    asked = [f"the wiki '{name}'" for name in values.knowledge_wikis]
    for name, profile in values.profiles.items():
        if profile.client in ("openai", "anthropic"):
            asked.append(f"the profile '{name}'")
    if asked and not _is_installed("httpx2"):
        yield Problem(
            id="E102",
            message=f"The package httpx2 is not installed, and {asked[0]} asks a server with it.",
            hint='Type: pip install "evennia-ai[game]"',
        )


def _without_embeddings(values: Conf) -> Iterator[Problem]:
    wanted = {
        "KNOWLEDGE_EMBEDDINGS": values.knowledge_embeddings,
        "MEMORY['by_meaning']": values.memory.by_meaning,
    }
    profile = values.profiles.get(values.embeddings_profile)
    if values.embeddings_profile and (profile is None or profile.client != "openai"):
        servers = [name for name, one in values.profiles.items() if one.client == "openai"]
        yield Problem(
            id="E091",
            message=f"{PREFIX}EMBEDDINGS_PROFILE must name a profile whose server embeds texts:"
            f" {values.embeddings_profile!r}.",
            hint=f"Name one of {', '.join(servers) or 'EVENNIA_AI_PROFILES'}.",
        )
        return
    missing = missing_packages() if any(wanted.values()) else ()
    if profile is not None:
        missing = tuple(name for name in missing if name == "numpy")
    for setting in (name for name, is_wanted in wanted.items() if is_wanted and missing):
        yield Problem(
            id="E061",
            message=f"{PREFIX}{setting} needs {', '.join(missing)}, not installed here.",
            hint=f"Type: {INSTALL if profile is None else 'pip install numpy'}",
        )


def _without_a_queue(values: Conf) -> Iterator[Problem]:
    """Yield what workers need and the game does not have."""
    if not values.workers.in_workers:
        return
    missing = next((one for one in ("procrastinate", "psycopg") if not _is_installed(one)), "")
    asked = f"{PREFIX}WORKERS asks for workers, and"
    if missing:
        yield Problem(
            id="E098",
            message=f"{asked} the package {missing} is not installed.",
            hint='Type: pip install "evennia-ai[workers]"',
        )
    elif not settings.DATABASES["default"]["ENGINE"].endswith("postgresql"):
        yield Problem(
            id="E099",
            message=f"{asked} the game's database is not PostgreSQL.",
            hint="See docs/run/workers.md of evennia_ai, or remove the setting.",
        )
    elif QUEUE_APP not in settings.INSTALLED_APPS:
        yield Problem(
            id="E100",
            message=f"{asked} INSTALLED_APPS does not contain the app with their queue's tables.",
            hint=f'INSTALLED_APPS += ["{QUEUE_APP}"], then `evennia migrate`.',
        )


def _missing_packages(values: Conf) -> Iterator[Problem]:
    """Yield settings for metrics and traces whose packages are not installed."""
    wanted = {
        "prometheus_client": (values.metrics_port, "METRICS_PORT"),
        "opentelemetry.sdk": (values.traces.to, "TRACES"),
    }
    for package, (is_wanted, setting) in wanted.items():
        if is_wanted and not _is_installed(package):
            yield Problem(
                id="W004",
                message=f"{PREFIX}{setting} needs the package {package}, which is not installed.",
                hint='Type: pip install "evennia-ai[telemetry]"',
            )


def _without_prices(values: Conf) -> Iterator[Problem]:
    asked = [name for name, profile in values.profiles.items() if needs_tables(profile)]
    if asked and not _is_installed("genai_prices"):
        yield Problem(
            id="W008",
            message="The package genai-prices is not installed, so the price of profile"
            f" '{asked[0]}' is not known.",
            hint='Type: pip install "evennia-ai[game]", or give the profile a price.',
        )


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # The parent package is not installed.
        return False


def _unknown_profiles(
    roles: Mapping[ModelRole, tuple[str, ...]], profiles: Mapping[str, ModelProfile]
) -> Iterator[Problem]:
    for role, names in roles.items():
        for name in names:
            if name not in profiles:
                where = f"{PREFIX}MODEL_ROLES[{role!r}]"
                yield Problem(
                    id="E028",
                    message=f"{where}: there is no profile {name!r}{suggest_name(name, profiles)}.",
                    hint=f"The profiles of {PREFIX}PROFILES are: {', '.join(profiles)}.",
                )


def _repeated_facts(values: Conf) -> Iterator[Problem]:
    """Yield facts that two settings give, so that it is unclear which one counts."""
    default = values.given_profiles.get(DEFAULT, {})
    if values.base_url and {"client", "base_url", "script"} & set(default):
        yield Problem(
            id="E029",
            message=f"{PREFIX}BASE_URL and {PREFIX}PROFILES['default'] both say where a model is.",
            hint="Keep one of them.",
        )
    in_roles = SUMMARISER in values.given_roles
    if values.summary_model and (in_roles or SUMMARISER in values.given_profiles):
        place = f"{PREFIX}MODEL_ROLES" if in_roles else f"{PREFIX}PROFILES"
        yield Problem(
            id="E029",
            message=f"{PREFIX}SUMMARY_MODEL and {place} both say who summarises.",
            hint="Keep the latter.",
        )


def _unusable(profiles: Mapping[str, ModelProfile]) -> Iterator[Problem]:
    for name, profile in profiles.items():
        problem = problem_of_profile(profile)
        if problem:
            yield Problem(
                id="E030",
                message=f"Profile '{name}' {problem}.",
                hint=f"Correct it in {PREFIX}PROFILES.",
            )
