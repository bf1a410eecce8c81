"""Anthropic's Messages API as a `ChatModel`.

`anthropic_wire` makes the request's body, `anthropic_reply` reads what comes back, `remote` does
the rest.
"""

from dataclasses import dataclass
from typing import Any, Final

from evennia_ai.llm.anthropic_reply import AnthropicStream, whole_reply
from evennia_ai.llm.anthropic_wire import body_of
from evennia_ai.llm.chat import ChatReply, ChatRequest
from evennia_ai.llm.endpoint import Endpoint
from evennia_ai.llm.remote import RemoteChat
from evennia_ai.net.bridge import AsyncBridge

API_VERSION: Final = "2023-06-01"
"""The only one there is of the Messages API; the server wants it said."""

NO_KEY: Final = "none"
"""Sent where no key is configured: a server may want the header and look at nothing in it."""


class AnthropicChat(RemoteChat):
    """One endpoint that speaks the Messages API."""

    def __init__(self, endpoint: Endpoint, bridge: AsyncBridge) -> None:
        super().__init__(_Anthropic(endpoint=endpoint), bridge)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Anthropic:
    """The `Provider` of such servers."""

    endpoint: Endpoint

    @property
    def address(self) -> str:
        return f"{self.endpoint.base_url.rstrip('/').removesuffix('/v1')}/v1/messages"

    def headers(self) -> dict[str, str]:
        key = self.endpoint.api_key.reveal() or NO_KEY
        return {"x-api-key": key, "anthropic-version": API_VERSION}

    def body(self, request: ChatRequest, *, stream: bool) -> dict[str, Any]:
        return body_of(request, model=self.endpoint.model, stream=stream)

    def whole(self, body: bytes, request: ChatRequest) -> ChatReply:
        return whole_reply(body, request=request, endpoint=self.endpoint)

    def streamed(self, request: ChatRequest) -> AnthropicStream:
        return AnthropicStream(request=request, endpoint=self.endpoint)
