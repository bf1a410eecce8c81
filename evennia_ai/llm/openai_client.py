"""Any OpenAI-compatible server as a `ChatModel`.

`openai_wire` makes the request's body, `openai_reply` reads what comes back, `remote` does the
rest.
"""

from dataclasses import dataclass
from typing import Any, Final

from evennia_ai.llm.chat import ChatReply, ChatRequest
from evennia_ai.llm.endpoint import Endpoint
from evennia_ai.llm.openai_reply import OpenAIStream, whole_reply
from evennia_ai.llm.openai_wire import body_of
from evennia_ai.llm.remote import RemoteChat
from evennia_ai.net.bridge import AsyncBridge

NO_KEY: Final = "none"
"""Sent where no key is configured: a server may want the header and look at nothing in it."""


class OpenAIChat(RemoteChat):
    """One endpoint that speaks the chat completions API."""

    def __init__(self, endpoint: Endpoint, bridge: AsyncBridge) -> None:
        super().__init__(_OpenAI(endpoint=endpoint), bridge)


@dataclass(frozen=True, slots=True, kw_only=True)
class _OpenAI:
    """The `Provider` of such servers."""

    endpoint: Endpoint

    @property
    def address(self) -> str:
        return f"{self.endpoint.base_url.rstrip('/')}/chat/completions"

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.endpoint.api_key.reveal() or NO_KEY}"}

    def body(self, request: ChatRequest, *, stream: bool) -> dict[str, Any]:
        return body_of(request, model=self.endpoint.model, stream=stream)

    def whole(self, body: bytes, request: ChatRequest) -> ChatReply:
        return whole_reply(body, request=request, endpoint=self.endpoint)

    def streamed(self, request: ChatRequest) -> OpenAIStream:
        return OpenAIStream(request=request, endpoint=self.endpoint)
