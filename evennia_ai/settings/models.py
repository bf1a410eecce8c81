"""The settings of models: where they are, under which profiles, and who asks which.

The first of them are the profile `default`; `EVENNIA_AI_PROFILES` has others under names of their
own. What the settings say of profiles and roles is `given_profiles` and `given_roles`; `profiles`
and `model_roles` are what follows from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

from pydantic import Field

from evennia_ai.foreign.fields import UNBOUNDED
from evennia_ai.llm.profiles import (
    DEFAULT,
    IDLE_SECONDS,
    MODEL_ROLES,
    SUMMARISER,
    Given,
    ModelProfile,
    ModelRole,
    is_open,
    profiles_of,
    read_profiles,
    read_roles,
)
from evennia_ai.net.secrets import SecretText
from evennia_ai.settings.kinds import Address, Count, Setting, SomeSeconds, Variable, read_by


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """Which models there are for the game; without an address the offline responder answers."""

    api_keys: Mapping[str, SecretText] = field(default_factory=dict)
    """The keys that the environment has, by the names of their variables."""
    base_url: Annotated[
        Address,
        Setting(
            "E001",
            "",
            'an http or https address without a name, a password or a query, or ""',
            from_environment=True,
            is_shown=False,
        ),
    ]
    """address of an OpenAI-compatible server, such as `http://localhost:8080/v1`; empty: the
    offline responder answers"""
    model: Annotated[
        str, Setting("E002", "", "the name of a model, as text", from_environment=True)
    ]
    """the model's name on that server"""
    api_key_env: Annotated[Variable, Setting("E003", "EVENNIA_AI_API_KEY")]
    """the name of the environment variable that holds the key"""
    model_timeout_seconds: Annotated[SomeSeconds, Setting("E004", 60.0)]
    """how long a reply may take, waiting and retries included"""
    context_tokens: Annotated[int, Field(ge=256, le=UNBOUNDED), Setting("E005", 8192)]
    """the model's context; a prompt gets what the reply leaves of it"""
    reply_tokens: Annotated[Count, Setting("E006", 400)]
    """room for the reply"""
    max_concurrent_calls: Annotated[int, Field(ge=1, le=1000), Setting("E008", 4)]
    """turns of the whole game at one time"""
    given_profiles: Annotated[
        Mapping[str, Given],
        read_by(read_profiles, name="PROFILES"),
        Setting(
            "E026",
            {},
            'a dictionary of profiles, such as {"cheap": {"model": "a-small-model"}}',
            name="profiles",
        ),
    ]
    """models under a name, see below"""
    given_roles: Annotated[
        Mapping[ModelRole, tuple[str, ...]],
        read_by(read_roles, name="MODEL_ROLES"),
        Setting(
            "E027",
            {},
            'a dictionary, such as {"speaker": ["default", "cheap"], "decider": ["cheap"]}',
            name="model_roles",
        ),
    ]
    """which of them are asked for what, see below"""
    summary_model: Annotated[
        str,
        Setting(
            "E023", "", 'the name of a model at the same address, or "" for the one that answers'
        ),
    ]
    """the model that is asked for summaries of long histories, at the address of `default`;
    empty: the role `summariser` says"""

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
