"""Clients: what speaks with the model of a profile, one kind a provider.

A provider's library is imported when it is first needed, in the thread of the bridge.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from twisted.internet.defer import Deferred, fail, succeed

from evennia_ai.errors import ModelUnavailable
from evennia_ai.llm.chat import ChatModel, ChatReply, ChatRequest, Listener
from evennia_ai.llm.clients.anthropic import AnthropicChat
from evennia_ai.llm.clients.offline import OfflineResponder
from evennia_ai.llm.clients.openai import OpenAIChat
from evennia_ai.llm.clients.scripted import FILES, scripted_from
from evennia_ai.llm.endpoint import Endpoint
from evennia_ai.llm.fitting.roles import OPEN, STRICT, RoleProfile
from evennia_ai.llm.profiles import DEFAULT, Client, ModelProfile
from evennia_ai.llm.resilience import Clock
from evennia_ai.net.bridge import AsyncBridge
from evennia_ai.settings.model import Conf

OFFLINE: Final = "offline responder"


class NotReady:
    """A model that cannot be asked, because its profile is of no use: it says why each time."""

    offline: Final = False

    def __init__(self, name: str, reason: str) -> None:
        self._name = name
        self.reason: Final = reason

    @property
    def name(self) -> str:
        return self._name

    def complete(
        self, request: ChatRequest, *, listener: Listener | None = None
    ) -> Deferred[ChatReply]:
        """Nothing: the call fails at once."""
        return fail(ModelUnavailable(self._name, self.reason, was_sent=False))

    def prepare(self) -> Deferred[None]:
        """Fails with the reason."""
        return fail(ModelUnavailable(self._name, self.reason, was_sent=False))

    def close(self) -> None:
        """Nothing is open."""


def title_of(profile: ModelProfile) -> str:
    """What logs and builders call the model of a profile."""
    if profile.name == DEFAULT:
        return profile.model or profile.client
    return f"{profile.name} ({profile.model})" if profile.model else profile.name


def endpoint_of(profile: ModelProfile, conf: Conf) -> Endpoint:
    """Where the model of a profile is, with its key; EndpointError: it cannot be there."""
    return Endpoint(
        name=title_of(profile),
        base_url=profile.base_url,
        model=profile.model,
        api_key=conf.key_of(profile),
        timeout_seconds=profile.timeout_seconds,
        idle_seconds=profile.idle_seconds,
        max_retries=profile.max_retries,
        max_concurrent=profile.max_concurrent,
        stream=profile.stream,
        strict_roles=profile.strict_roles,
        structured=profile.schema,
        tools=profile.tools,
    )


def roles_of(profile: ModelProfile) -> RoleProfile:
    """What messages to the model of a profile must look like."""
    return replace(STRICT if profile.strict_roles else OPEN, tools=profile.tools)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What clients are made with."""

    conf: Conf
    clock: Clock
    bridge: AsyncBridge


def client_of(profile: ModelProfile, around: Surroundings) -> ChatModel:
    """A client for the model of a profile; EvenniaAIError says why there can be none."""
    return _MAKERS[profile.client](profile, around)


def prepared(client: ChatModel) -> Deferred[None]:
    """Fires when the client has what a first request needs; some need nothing."""
    prepare: Callable[[], Deferred[None]] | None = getattr(client, "prepare", None)
    return succeed(None) if prepare is None else prepare()


def _openai(profile: ModelProfile, around: Surroundings) -> ChatModel:
    return OpenAIChat(endpoint_of(profile, around.conf), around.bridge)


def _anthropic(profile: ModelProfile, around: Surroundings) -> ChatModel:
    return AnthropicChat(endpoint_of(profile, around.conf), around.bridge)


def _scripted(profile: ModelProfile, around: Surroundings) -> ChatModel:
    script = Path(around.conf.game_folder, profile.script)
    is_file = script.suffix.lower() in FILES
    return scripted_from(
        script if is_file else profile.script, name=title_of(profile), clock=around.clock
    )


def _offline(profile: ModelProfile, around: Surroundings) -> ChatModel:
    return OfflineResponder(around.conf.fallback_line, name=OFFLINE)


_MAKERS: Final[dict[Client, Callable[[ModelProfile, Surroundings], ChatModel]]] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "scripted": _scripted,
    "offline": _offline,
}
