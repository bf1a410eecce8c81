"""What must not be together: settings that are right each, and wrong or doubtful in company.

Functions of settings that were read already; each problem has the id of its system check, which is
documented and stays.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from evennia_ai.foreign.fields import near
from evennia_ai.knowledge.restricted.search_budget import read_budget
from evennia_ai.llm.profiles import (
    DEFAULT,
    SUMMARISER,
    ModelProfile,
    ModelRole,
    is_open,
    problem_of_profile,
)
from evennia_ai.llm.sentence_model import INSTALL, missing_packages
from evennia_ai.settings.kinds import PREFIX
from evennia_ai.settings.model import SETTINGS, Conf


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A setting with a wrong value; `id` is that of its system check."""

    id: str
    message: str
    hint: str


def wrong_together(conf: Conf) -> Iterator[Problem]:
    """What contradicts itself in the settings, and profiles that cannot be used."""
    if conf.base_url and not conf.profiles[DEFAULT].model:
        yield Problem(
            id="E017",
            message="EVENNIA_AI_BASE_URL is set and EVENNIA_AI_MODEL is not.",
            hint="Name the model to ask for at that address.",
        )
        return
    if conf.reply_tokens >= conf.context_tokens:
        yield Problem(
            id="E018",
            message="EVENNIA_AI_REPLY_TOKENS is not smaller than EVENNIA_AI_CONTEXT_TOKENS.",
            hint="The prompt gets what the reply leaves: leave it some.",
        )
        return
    yield from _unknown_profiles(conf.given_roles, conf.profiles)
    yield from _said_twice(conf)
    yield from _unusable(conf.profiles)
    yield from _without_embeddings(conf)


def doubtful(conf: Conf, *, given_budget: Any) -> Iterator[Problem]:
    """What may be meant so and mostly is not; `given_budget` is the budget as the game wrote it."""
    for name, variable in _missing_keys(conf):
        yield Problem(
            id="W002",
            message=f"Profile '{name}': the environment has no {variable}.",
            hint="Set it to the key of that profile, or take api_key_env out if it needs none.",
        )
    is_offline = conf.profiles[DEFAULT].client == "offline"
    if conf.given_profiles and is_offline and "speaker" not in conf.given_roles:
        known = ", ".join(conf.given_profiles)
        yield Problem(
            id="W003",
            message=f"NPCs speak without a model, though there are profiles: {known}.",
            hint=f"Name one in {PREFIX}MODEL_ROLES['speaker'], or call one of them 'default'.",
        )
    for key, site in conf.knowledge_wikis.items():
        if site.password_env and not site.password:
            yield Problem(
                id="W005",
                message=f"The wiki '{key}': the environment has no {site.password_env}.",
                hint="Set it to the password of that wiki's bot, or nothing can be read there.",
            )
    if problem := read_budget(given_budget)[1]:
        yield Problem(
            id="W006",
            message=f"{PREFIX}KNOWLEDGE_BUDGET is not used: {problem}.",
            hint="NPCs search as often as without the setting; correct it.",
        )
    for sender in _sent_openly(conf):
        yield Problem(
            id="W007",
            message=f"{sender} over plain http to another machine; whoever is on the way reads it.",
            hint="Use https, a tunnel (ssh -L) to an address of this machine, or no key.",
        )
    yield from _missing_packages(conf)


def _missing_keys(conf: Conf) -> Iterator[tuple[str, str]]:
    """Profiles for which somebody named a key that the environment has not, with its variable."""
    for name, profile in conf.profiles.items():
        variable = profile.api_key_env
        if variable and not conf.key_of(profile) and _names_its_key(conf, name):
            yield name, variable


def _names_its_key(conf: Conf, name: str) -> bool:
    """Whether somebody named a key for a profile; many servers need none."""
    given = conf.given_profiles.get(name, {})
    if "api_key_env" in given or given.get("client") == "anthropic":
        return True
    usual = SETTINGS["api_key_env"].default
    return name == DEFAULT and bool(conf.base_url) and conf.api_key_env != usual


def _sent_openly(conf: Conf) -> Iterator[str]:
    """Whose keys and passwords go over plain http to another machine."""
    for profile in conf.profiles.values():
        if conf.shows_key_of(profile):
            yield f"Profile '{profile.name}' sends its key"
    for key, site in conf.knowledge_wikis.items():
        if site.password and is_open(site.api):
            yield f"The wiki '{key}' is sent its password"


def _without_embeddings(conf: Conf) -> Iterator[Problem]:
    missing = missing_packages() if conf.knowledge_embeddings else ()
    if missing:
        yield Problem(
            id="E061",
            message=f"{PREFIX}KNOWLEDGE_EMBEDDINGS needs {', '.join(missing)}, not installed here.",
            hint=f"Type: {INSTALL}",
        )


def _missing_packages(conf: Conf) -> Iterator[Problem]:
    """Settings that ask to be watched by what is not installed."""
    wanted = {
        "prometheus_client": (conf.metrics_port, "METRICS_PORT"),
        "opentelemetry.sdk": (conf.traces.to, "TRACES"),
    }
    for package, (is_wanted, setting) in wanted.items():
        if is_wanted and not _is_installed(package):
            yield Problem(
                id="W004",
                message=f"{PREFIX}{setting} needs the package {package}, which is not installed.",
                hint='Type: pip install "evennia-ai[telemetry]"',
            )


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # not even what it would be in
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
                    message=f"{where}: there is no profile {name!r}{near(name, profiles)}.",
                    hint=f"The profiles of {PREFIX}PROFILES are: {', '.join(profiles)}.",
                )


def _said_twice(conf: Conf) -> Iterator[Problem]:
    """One fact in two settings: nobody could tell which of them counts."""
    default = conf.given_profiles.get(DEFAULT, {})
    if conf.base_url and {"client", "base_url", "script"} & set(default):
        yield Problem(
            id="E029",
            message=f"{PREFIX}BASE_URL and {PREFIX}PROFILES['default'] both say where a model is.",
            hint="Keep one of them.",
        )
    in_roles = SUMMARISER in conf.given_roles
    if conf.summary_model and (in_roles or SUMMARISER in conf.given_profiles):
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
