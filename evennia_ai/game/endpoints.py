"""Endpoints: the model that the settings ask for, guarded, or the offline responder.

None configured means the offline responder: a game works, and says so, before it has a model.
"""

from dataclasses import dataclass
from typing import Final

from twisted.internet.defer import Deferred, succeed

from evennia_ai.conf import Conf
from evennia_ai.llm.bridge import AsyncBridge
from evennia_ai.llm.chat import ChatModel
from evennia_ai.llm.endpoint import Endpoint, SecretText
from evennia_ai.llm.offline import OfflineResponder
from evennia_ai.llm.openai_client import OpenAIChat
from evennia_ai.llm.resilience import CircuitBreaker, Clock, Guarded
from evennia_ai.llm.roles import OPEN, RoleProfile

OFFLINE: Final = "offline responder"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """A model and how it is asked: `roles` fits messages to it, `model_id` is its name there."""

    model: ChatModel
    model_id: str = ""
    roles: RoleProfile = OPEN
    breaker: CircuitBreaker | None = None
    bridge: AsyncBridge | None = None
    chat: OpenAIChat | None = None

    @property
    def name(self) -> str:
        """What builders read in the status."""
        return OFFLINE if self.model.offline else self.model.name

    def prepare(self) -> "Deferred[None]":
        """Load what a first reply would have to wait for, off the reactor's thread."""
        return self.chat.prepare() if self.chat is not None else succeed(None)

    def close(self) -> None:
        """Give up what is asked, close connections, end the thread."""
        self.model.close()
        if self.bridge is not None:
            self.bridge.stop()


def access_to(conf: Conf, *, clock: Clock, bridge: AsyncBridge | None = None) -> Access:
    """Access to the model of the settings; `bridge` is one of one's own for tests."""
    if conf.is_offline:
        return Access(model=OfflineResponder(conf.fallback_line, name=OFFLINE), model_id="offline")
    endpoint = Endpoint(
        name=conf.model,
        base_url=conf.base_url,
        model=conf.model,
        api_key=SecretText(conf.api_key),
        timeout_seconds=conf.model_timeout_seconds,
        max_concurrent=conf.max_concurrent_calls,
    )
    bridge = bridge or AsyncBridge()
    breaker = CircuitBreaker(seconds=clock.seconds)
    chat = OpenAIChat(endpoint, bridge)
    guarded = Guarded(
        chat,
        breaker=breaker,
        clock=clock,
        max_concurrent=endpoint.max_concurrent,
    )
    return Access(
        model=guarded,
        model_id=endpoint.model,
        roles=endpoint.roles,
        breaker=breaker,
        bridge=bridge,
        chat=chat,
    )
