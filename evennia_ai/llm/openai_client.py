"""Any OpenAI-compatible server as a `ChatModel`.

`openai_wire` makes the request's body, `openai_reply` reads what comes back, `remote` does the
rest.
"""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from evennia_ai.llm.bridge import AsyncBridge
from evennia_ai.llm.chat import ChatReply, ChatRequest
from evennia_ai.llm.endpoint import Endpoint
from evennia_ai.llm.openai_reply import StreamedReply, whole_reply
from evennia_ai.llm.openai_wire import body_of
from evennia_ai.llm.remote import RemoteChat

if TYPE_CHECKING:
    import openai

NO_KEY: Final = "none"
"""Sent where no key is configured: without any, the library would take OPENAI_API_KEY, which
may belong to quite another server."""


_NAMED: Final = ("model", "messages", "stream")
"""What the library must know of a body; the rest is none of its business."""


class OpenAIChat(RemoteChat):
    """One endpoint that speaks the chat completions API."""

    def __init__(self, endpoint: Endpoint, bridge: AsyncBridge) -> None:
        super().__init__(_OpenAI(endpoint=endpoint), bridge)


@dataclass(frozen=True, slots=True, kw_only=True)
class _OpenAI:
    """The `Provider` of such servers."""

    endpoint: Endpoint

    def library(self) -> Any:
        import openai

        return openai

    def library_error(self) -> type[Exception]:
        import openai

        return openai.OpenAIError

    def client(self, http: Any) -> "openai.AsyncOpenAI":
        import openai

        client = openai.AsyncOpenAI(
            base_url=self.endpoint.base_url,
            api_key=self.endpoint.api_key.reveal() or NO_KEY,
            http_client=http,
            timeout=None,
            max_retries=0,
        )
        # The library takes these from the environment; like the key, they belong to one provider.
        client.organization = client.project = None
        _ = client.chat.completions.with_streaming_response  # loads what is only loaded when used
        return client

    def asked(
        self, client: "openai.AsyncOpenAI", request: ChatRequest, *, stream: bool
    ) -> AbstractAsyncContextManager[Any]:
        body = body_of(request, model=self.endpoint.model, stream=stream)
        named = {name: body.pop(name) for name in _NAMED if name in body}
        create: Any = client.chat.completions.with_streaming_response.create
        asked: AbstractAsyncContextManager[Any] = create(**named, extra_body=body)
        return asked

    def whole(self, body: bytes, request: ChatRequest) -> ChatReply:
        return whole_reply(body, request=request, endpoint=self.endpoint)

    def streamed(self, request: ChatRequest) -> StreamedReply:
        return StreamedReply(request=request, endpoint=self.endpoint)
