"""Anthropic's Messages API as a `ChatModel`, by the extra `evennia-ai[anthropic]`.

`anthropic_wire` makes the request's body, `anthropic_reply` reads what comes back, `remote` does
the rest.
"""

import importlib
import importlib.util
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Final, cast

from evennia_ai.llm.anthropic_reply import StreamedReply, whole_reply
from evennia_ai.llm.anthropic_wire import body_of
from evennia_ai.llm.bridge import AsyncBridge
from evennia_ai.llm.chat import ChatReply, ChatRequest
from evennia_ai.llm.endpoint import Endpoint
from evennia_ai.llm.errors import ModelUnavailable
from evennia_ai.llm.remote import RemoteChat

ADDRESS: Final = "https://api.anthropic.com"
"""Where the API is, for who configures no other server."""

LIBRARY: Final = "anthropic"
MISSING: Final = "the extra is not installed; pip install 'evennia-ai[anthropic]'"

NO_KEY: Final = "none"
"""Sent where no key is configured: without any, the library would look for one by itself."""


_NAMED: Final = ("model", "messages", "max_tokens", "stream")
"""What the library must know of a body; the rest is none of its business."""


class AnthropicChat(RemoteChat):
    """One endpoint that speaks the Messages API."""

    def __init__(self, endpoint: Endpoint, bridge: AsyncBridge) -> None:
        super().__init__(_Anthropic(endpoint=endpoint), bridge)


def is_installed() -> bool:
    """Whether the extra is there; does not import it."""
    return importlib.util.find_spec(LIBRARY) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Anthropic:
    """The `Provider` of such servers."""

    endpoint: Endpoint

    def library(self) -> Any:
        try:
            return importlib.import_module(LIBRARY)
        except ImportError:
            raise ModelUnavailable(self.endpoint.name, MISSING) from None

    def library_error(self) -> type[Exception]:
        return cast(type[Exception], self.library().AnthropicError)

    def client(self, http: Any) -> Any:
        """The library adds the API's version to the address itself."""
        client = self.library().AsyncAnthropic(
            base_url=self.endpoint.base_url.rstrip("/").removesuffix("/v1"),
            api_key=self.endpoint.api_key.reveal() or NO_KEY,
            http_client=http,
            timeout=None,
            max_retries=0,
        )
        client.auth_token = None  # from the environment; it may belong to another server
        _ = client.messages.with_streaming_response  # loads what is only loaded when used
        return client

    def asked(
        self, client: Any, request: ChatRequest, *, stream: bool
    ) -> AbstractAsyncContextManager[Any]:
        body = body_of(request, model=self.endpoint.model, stream=stream)
        named = {name: body.pop(name) for name in _NAMED if name in body}
        create = client.messages.with_streaming_response.create
        asked: AbstractAsyncContextManager[Any] = create(**named, extra_body=body)
        return asked

    def whole(self, body: bytes, request: ChatRequest) -> ChatReply:
        return whole_reply(body, request=request, endpoint=self.endpoint)

    def streamed(self, request: ChatRequest) -> StreamedReply:
        return StreamedReply(request=request, endpoint=self.endpoint)
