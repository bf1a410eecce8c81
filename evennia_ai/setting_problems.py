"""Problems of settings: values that are right each, and wrong or doubtful together.

Functions of values that were read already; each problem has the id of its system check, which is
documented and stays.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from evennia_ai.knowledge.search_budget import read_budget
from evennia_ai.llm.profiles import (
    DEFAULT,
    SUMMARISER,
    ModelProfile,
    ModelRole,
    problem_of_profile,
)
from evennia_ai.llm.sentence_model import INSTALL, missing_packages
from evennia_ai.prompt.given_settings import near
from evennia_ai.setting_values import PREFIX


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A setting with a wrong value; `id` is that of its system check."""

    id: str
    message: str
    hint: str


Values = Mapping[str, Any]
"""What the settings say, by the names of their fields; each value is one that it can have."""


def wrong_together(
    value: Values,
    *,
    profiles: Mapping[str, ModelProfile],
    roles: Mapping[ModelRole, tuple[str, ...]],
) -> Iterator[Problem]:
    """What contradicts itself in the settings, and profiles that cannot be used."""
    if value["base_url"] and not profiles[DEFAULT].model:
        yield Problem(
            id="E017",
            message="EVENNIA_AI_BASE_URL is set and EVENNIA_AI_MODEL is not.",
            hint="Name the model to ask for at that address.",
        )
        return
    if value["reply_tokens"] >= value["context_tokens"]:
        yield Problem(
            id="E018",
            message="EVENNIA_AI_REPLY_TOKENS is not smaller than EVENNIA_AI_CONTEXT_TOKENS.",
            hint="The prompt gets what the reply leaves: leave it some.",
        )
        return
    yield from _unknown_profiles(roles, profiles)
    yield from _said_twice(value, roles)
    yield from _unusable(profiles)
    yield from _without_embeddings(value)


def doubtful(
    value: Values,
    *,
    profiles: Mapping[str, ModelProfile],
    roles: Mapping[ModelRole, tuple[str, ...]],
    missing_keys: Mapping[str, str],
    missing_passwords: Mapping[str, str],
    sent_openly: Iterable[str],
) -> Iterator[Problem]:
    """What may be meant so and mostly is not.

    `missing_keys` are variables by their profiles, `missing_passwords` by their wikis;
    `sent_openly` says whose key or password goes over plain http to another machine.
    """
    for name, variable in missing_keys.items():
        yield Problem(
            id="W002",
            message=f"Profile '{name}': the environment has no {variable}.",
            hint="Set it to the key of that profile, or take api_key_env out if it needs none.",
        )
    is_offline = profiles[DEFAULT].client == "offline"
    if value["profiles"] and is_offline and "speaker" not in roles:
        known = ", ".join(value["profiles"])
        yield Problem(
            id="W003",
            message=f"NPCs speak without a model, though there are profiles: {known}.",
            hint=f"Name one in {PREFIX}MODEL_ROLES['speaker'], or call one of them 'default'.",
        )
    for key, variable in missing_passwords.items():
        yield Problem(
            id="W005",
            message=f"The wiki '{key}': the environment has no {variable}.",
            hint="Set it to the password of that wiki's bot, or nothing can be read there.",
        )
    if problem := read_budget(value["knowledge_budget"])[1]:
        yield Problem(
            id="W006",
            message=f"{PREFIX}KNOWLEDGE_BUDGET is not used: {problem}.",
            hint="NPCs search as often as without the setting; correct it.",
        )
    for told in sent_openly:
        yield Problem(
            id="W007",
            message=f"{told} over plain http to another machine; whoever is on the way reads it.",
            hint="Use https, a tunnel (ssh -L) to an address of this machine, or no key.",
        )
    yield from _missing_packages(value)


def _without_embeddings(value: Values) -> Iterator[Problem]:
    missing = missing_packages() if value["knowledge_embeddings"] else ()
    if missing:
        yield Problem(
            id="E061",
            message=f"{PREFIX}KNOWLEDGE_EMBEDDINGS needs {', '.join(missing)}, not installed here.",
            hint=f"Type: {INSTALL}",
        )


def _missing_packages(value: Values) -> Iterator[Problem]:
    """Settings that ask to be watched by what is not installed."""
    wanted = {
        "prometheus_client": (value["metrics_port"], "METRICS_PORT"),
        "opentelemetry.sdk": (value["traces"].get("to"), "TRACES"),
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


def _said_twice(value: Values, roles: Mapping[ModelRole, tuple[str, ...]]) -> Iterator[Problem]:
    """One fact in two settings: nobody could tell which of them counts."""
    default = value["profiles"].get(DEFAULT, {})
    if value["base_url"] and {"client", "base_url", "script"} & set(default):
        yield Problem(
            id="E029",
            message=f"{PREFIX}BASE_URL and {PREFIX}PROFILES['default'] both say where a model is.",
            hint="Keep one of them.",
        )
    if value["summary_model"] and (SUMMARISER in roles or SUMMARISER in value["profiles"]):
        place = f"{PREFIX}MODEL_ROLES" if SUMMARISER in roles else f"{PREFIX}PROFILES"
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
