"""The settings: the only place that reads them, and the environment.

Every name begins with `EVENNIA_AI_`. The address and the model may also come from environment
variables of the same names, which win; API keys come from the environment alone and are never in
the settings, the database, a log or the `repr` of anything.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.signals import setting_changed

from evennia_ai.cards.limits import CardLimits
from evennia_ai.errors import EvenniaAIError
from evennia_ai.history.compaction_settings import CompactionSettings
from evennia_ai.knowledge.lorekeeper_settings import LorekeeperSettings
from evennia_ai.knowledge.search_budget import SearchBudget, read_budget
from evennia_ai.llm.allowances import Allowances
from evennia_ai.llm.profiles import (
    ANTHROPIC_KEY,
    DEFAULT,
    IDLE_SECONDS,
    MODEL_ROLES,
    SUMMARISER,
    Given,
    ModelProfile,
    ModelRole,
    is_open,
    profiles_of,
)
from evennia_ai.lorebook.rules import ActivationRules
from evennia_ai.memory.settings import MemorySettings
from evennia_ai.net.secrets import SecretText
from evennia_ai.prompt.expansion import Layout
from evennia_ai.prompt.staying import BlocksMode
from evennia_ai.setting_problems import Problem, doubtful, wrong_together
from evennia_ai.setting_values import (
    PREFIX,
    LogMode,
    TimeSuffix,
    Tracing,
    call_limits,
    card_limits,
    compaction,
    knowledge_wikis,
    log_mode,
    lore_rules,
    lorekeeper,
    memory,
    model_profiles,
    model_roles,
    tracing,
    writing_limits,
)
from evennia_ai.settings_table import SETTINGS, Setting
from evennia_ai.wiki.site import Site, site_of
from evennia_ai.writing_limits import WritingLimits

_ADDRESSES = ("base_url", "knowledge_wikipedia")


class SettingError(EvenniaAIError):
    """A setting has a value it cannot have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conf:
    """All settings of evennia_ai, checked.

    `base_url`, `model` and `api_key_env` are those of the profile `default`; without a `base_url`
    anywhere no endpoint is configured and the offline responder answers. `given_profiles` and
    `given_roles` are what the settings say, `profiles` and `model_roles` what follows from it.
    `api_keys` are those that were found, by the names of their variables. `card_folder` and
    `knowledge_folder` are absolute: builders import from there and from nowhere else. `lore_facts`
    are dotted paths of the game's own functions (`evennia_ai.game.facts`), `context_providers`
    those of what tells NPCs the facts of the moment (`evennia_ai.game.providers`). An empty
    `summary_model` means that the role `summariser` says who is asked for summaries.
    """

    base_url: str
    model: str
    api_key_env: str
    api_keys: Mapping[str, SecretText]
    model_timeout_seconds: float
    context_tokens: int
    reply_tokens: int
    layout: Layout
    max_concurrent_calls: int
    queue_limit: int
    speaker_limit: int
    hop_limit: int
    line_npcs: int
    line_calls: int
    hop_seconds: float
    cooldown_seconds: float
    engagement_seconds: float
    refresh_seconds: float
    fallback_line: str
    thinking_seconds: float
    thinking_line: str
    game_folder: Path
    card_folder: Path
    knowledge_folder: Path
    max_source_characters: int
    card_limits: CardLimits
    post_history_depth: int
    lore: ActivationRules
    lore_facts: tuple[str, ...]
    keep_turn_days: int
    summary_model: str
    compaction: CompactionSettings
    dynamic_block: BlocksMode
    given_profiles: Mapping[str, Given]
    given_roles: Mapping[ModelRole, tuple[str, ...]]
    limits: Allowances
    limit_line: str
    keep_call_days: int
    memory: MemorySettings
    lorekeeper: LorekeeperSettings
    log_llm_requests: LogMode
    metrics_port: int
    traces: Tracing
    tick_alone: bool
    tools: tuple[str, ...]
    use_item: str
    writings: WritingLimits
    knowledge_embeddings: bool
    knowledge_vault: bool
    knowledge_budget: SearchBudget
    context_providers: tuple[str, ...]
    elsewhere_tokens: int
    time_suffix: TimeSuffix
    knowledge_wikis: Mapping[str, Site]
    knowledge_wikipedia: str

    @property
    def profiles(self) -> dict[str, ModelProfile]:
        """All profiles of models by name; `default` is there always."""
        found = profiles_of(self.given_profiles, game=self._default_profile())
        if self.summary_model:
            summariser = replace(found[DEFAULT], name=SUMMARISER, model=self.summary_model)
            found[SUMMARISER] = summariser
        return found

    @property
    def model_roles(self) -> dict[ModelRole, tuple[str, ...]]:
        """The names of the profiles that each role asks, one after the other.

        A role of which nothing is said asks those of the speaker.
        """
        speaker = self.given_roles.get("speaker", (DEFAULT,))
        found = {role: self.given_roles.get(role, speaker) for role in MODEL_ROLES}
        if self.summary_model:
            found[SUMMARISER] = (SUMMARISER,)
        return found

    def key_of(self, profile: ModelProfile) -> SecretText:
        """The key that goes with a profile, empty where there is none."""
        return self.api_keys.get(profile.api_key_env, SecretText())

    def shows_key_of(self, profile: ModelProfile) -> bool:
        """Whether the key of a profile is sent so that everybody on the way can read it."""
        return bool(self.key_of(profile)) and is_open(profile.base_url)

    @property
    def limit_tokens(self) -> int:
        """What a prompt may have of the model that NPCs speak with unless they have another."""
        return self.profiles[self.model_roles["speaker"][0]].limit_tokens

    @property
    def is_offline(self) -> bool:
        """Whether NPCs speak without any model."""
        found = self.profiles
        return all(found[name].client == "offline" for name in self.model_roles["speaker"])

    def _default_profile(self) -> ModelProfile:
        """What the settings without a profile's name make."""
        return ModelProfile(
            name=DEFAULT,
            client="openai" if self.base_url else "offline",
            base_url=self.base_url,
            model=self.model if self.base_url else "",
            api_key_env=self.api_key_env,
            reply_tokens=self.reply_tokens,
            context_tokens=self.context_tokens,
            timeout_seconds=self.model_timeout_seconds,
            idle_seconds=min(IDLE_SECONDS, self.model_timeout_seconds),
            max_concurrent=self.max_concurrent_calls,
        )


@lru_cache(maxsize=1)
def conf() -> Conf:
    """The settings as values, read once; SettingError names the first wrong one."""
    for problem in problems():
        raise SettingError(f"{problem.message} {problem.hint}")
    return _made()


def problems() -> list[Problem]:
    """What is wrong with the settings, in the order of the ids of the checks."""
    found = [_problem(setting) for setting in SETTINGS if not setting.accepts(_value(setting))]
    if found:
        return found
    made = _made()
    return list(wrong_together(_values(), profiles=made.profiles, roles=made.given_roles))


def doubts() -> list[Problem]:
    """What may be meant so and mostly is not; nothing while something is wrong."""
    if problems():
        return []
    made = _made()
    found = doubtful(
        _values(),
        profiles=made.profiles,
        roles=made.given_roles,
        missing_keys=_missing_keys(made),
        missing_passwords=_missing_passwords(made),
        sent_openly=_sent_openly(made),
    )
    return list(found)


def unknown_names() -> list[tuple[str, str]]:
    """Settings with our prefix that we do not know, each with a near known name or ""."""
    known = [setting.name for setting in SETTINGS]
    given = [name for name in dir(settings) if name.startswith(PREFIX) and name not in known]
    return [(name, next(iter(get_close_matches(name, known, n=1)), "")) for name in given]


def _value(setting: Setting) -> Any:
    variable = _variable(setting)
    return os.environ[variable] if variable else getattr(settings, setting.name, setting.default)


def _variable(setting: Setting) -> str:
    """The environment variable that says what the setting is; "" where none does."""
    names = (setting.name, setting.alias) if setting.from_environment else ()
    return next((name for name in names if name and name in os.environ), "")


def _problem(setting: Setting) -> Problem:
    hint = f"It must be {setting.wanted}."
    if setting.problem is not None:
        return Problem(id=setting.id, message=f"{setting.problem(_value(setting))}.", hint=hint)
    # An address with a password in it must not be repeated in a log.
    shown = "" if setting.field in _ADDRESSES else f" {_value(setting)!r}"
    place = " (from the environment)" if _variable(setting) else ""
    return Problem(
        id=setting.id,
        message=f"{setting.name}{place}{shown} is not allowed.",
        hint=hint,
    )


def _values() -> dict[str, Any]:
    return {setting.field: _value(setting) for setting in SETTINGS}


def _made() -> Conf:
    """The settings as values, each of which is one that it can have."""
    values = _values()
    folder = Path(getattr(settings, "GAME_DIR", ".")).absolute()
    given_profiles = model_profiles(values.pop("profiles"))
    named = {fields.get("api_key_env", "") for fields in given_profiles.values()}
    variables = {values["api_key_env"], ANTHROPIC_KEY, *named}
    return Conf(
        api_keys={name: SecretText(os.environ[name]) for name in variables if name in os.environ},
        given_profiles=given_profiles,
        given_roles=model_roles(values.pop("model_roles")),
        game_folder=folder,
        card_folder=folder / values.pop("card_folder"),
        knowledge_folder=folder / values.pop("knowledge_folder"),
        lore=lore_rules(values.pop("lore")),
        lore_facts=tuple(values.pop("lore_facts")),
        card_limits=card_limits(values.pop("card_limits")),
        compaction=compaction(values.pop("compaction")),
        memory=memory(values.pop("memory")),
        lorekeeper=lorekeeper(values.pop("lorekeeper")),
        limits=call_limits(values.pop("limits")),
        log_llm_requests=log_mode(values.pop("log_llm_requests")),
        traces=tracing(values.pop("traces")),
        tools=tuple(values.pop("tools")),
        writings=writing_limits(values.pop("writings")),
        knowledge_budget=read_budget(values.pop("knowledge_budget"))[0],
        context_providers=tuple(values.pop("context_providers")),
        knowledge_wikis=_sites(values.pop("knowledge_wikis")),
        **values,
    )


def _sites(given: Any) -> dict[str, Site]:
    """The wikis that are knowledge bases, each with its password where there is one."""
    return {
        key: site_of(key, fields, password=SecretText(os.environ.get(fields["password_env"], "")))
        for key, fields in knowledge_wikis(given).items()
    }


def _missing_passwords(made: Conf) -> dict[str, str]:
    """Variables that wikis name and the environment does not have, by the wiki's key."""
    return {
        key: site.password_env
        for key, site in made.knowledge_wikis.items()
        if site.password_env and not site.password
    }


def _missing_keys(made: Conf) -> dict[str, str]:
    """Variables that profiles name and the environment does not have, by the profile's name."""
    return {
        name: profile.api_key_env
        for name, profile in made.profiles.items()
        if profile.api_key_env and not made.key_of(profile) and _names_its_key(made, name)
    }


def _sent_openly(made: Conf) -> list[str]:
    """Whose keys and passwords go over plain http to another machine."""
    profiles = made.profiles.values()
    sites = made.knowledge_wikis.items()
    return [
        *(f"Profile '{one.name}' sends its key" for one in profiles if made.shows_key_of(one)),
        *(
            f"The wiki '{key}' is sent its password"
            for key, site in sites
            if site.password and is_open(site.api)
        ),
    ]


def _names_its_key(made: Conf, name: str) -> bool:
    """Whether somebody named a key for a profile; many servers need none."""
    given = made.given_profiles.get(name, {})
    if "api_key_env" in given or given.get("client") == "anthropic":
        return True
    usual = next(one.default for one in SETTINGS if one.field == "api_key_env")
    return name == DEFAULT and bool(made.base_url) and made.api_key_env != usual


def _forget(*, setting: str, **_: Any) -> None:
    if setting.startswith(PREFIX) or setting == "GAME_DIR":
        conf.cache_clear()


setting_changed.connect(_forget, dispatch_uid="evennia_ai.conf")
