"""Clients: what speaks with the model of a profile, one kind a provider.

A client's library is imported when it is first needed, and not here.
"""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Final

from twisted.internet.defer import Deferred, fail, succeed

from evennia_ai.conf import Conf, SettingError
from evennia_ai.llm.bridge import AsyncBridge
from evennia_ai.llm.chat import ChatModel, ChatReply, ChatRequest, Listener
from evennia_ai.llm.endpoint import Endpoint
from evennia_ai.llm.errors import ModelUnavailable
from evennia_ai.llm.offline import OfflineResponder
from evennia_ai.llm.openai_client import OpenAIChat
from evennia_ai.llm.profiles import DEFAULT, Client, ModelProfile
from evennia_ai.llm.roles import OPEN, STRICT, RoleProfile

OFFLINE: Final = "offline responder"


class NotReady:
    """A model that cannot be asked, because its profile is of no use: it says why each time."""

    offline: Final = False

    def __init__(self, name: str, reason: str) -> None:
        self._name = name
        self._reason = reason

    @property
    def name(self) -> str:
        return self._name

    def complete(
        self, request: ChatRequest, *, listener: Listener | None = None
    ) -> Deferred[ChatReply]:
        """Nothing: the call fails at once."""
        return fail(ModelUnavailable(self._name, self._reason))

    def prepare(self) -> Deferred[None]:
        """Fails with the reason."""
        return fail(ModelUnavailable(self._name, self._reason))

    def close(self) -> None:
        """Nothing is open."""


def title_of(profile: ModelProfile) -> str:
    """What logs and builders call the model of a profile."""
    if profile.name == DEFAULT:
        return profile.model
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
    return STRICT if profile.strict_roles else OPEN


def client_of(profile: ModelProfile, conf: Conf, *, bridge: AsyncBridge) -> ChatModel:
    """A client for the model of a profile; EvenniaAIError says why there can be none."""
    return _MAKERS[profile.client](profile, conf, bridge)


def prepared(client: ChatModel) -> Deferred[None]:
    """Fires when the client has what a first request needs; some need nothing."""
    prepare: Callable[[], Deferred[None]] | None = getattr(client, "prepare", None)
    return succeed(None) if prepare is None else prepare()


def _openai(profile: ModelProfile, conf: Conf, bridge: AsyncBridge) -> ChatModel:
    return OpenAIChat(endpoint_of(profile, conf), bridge)


def _anthropic(profile: ModelProfile, conf: Conf, bridge: AsyncBridge) -> ChatModel:
    if find_spec("anthropic") is None:
        raise SettingError('anthropic is not installed; type: pip install "evennia-ai[anthropic]"')
    client = import_module("evennia_ai.llm.anthropic_client")
    made: ChatModel = client.AnthropicChat(endpoint_of(profile, conf), bridge)
    return made


def _scripted(profile: ModelProfile, conf: Conf, bridge: AsyncBridge) -> ChatModel:
    scripted = import_module("evennia_ai.llm.scripted")
    made: ChatModel = scripted.scripted_from(profile.script)
    return made


def _offline(profile: ModelProfile, conf: Conf, bridge: AsyncBridge) -> ChatModel:
    return OfflineResponder(conf.fallback_line, name=OFFLINE)


_MAKERS: Final[dict[Client, Callable[[ModelProfile, Conf, AsyncBridge], ChatModel]]] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "scripted": _scripted,
    "offline": _offline,
}
