"""Any OpenAI-compatible server as a `ChatModel`.

The `openai` library is imported in the bridge's thread only: its import takes up to two seconds,
which would freeze the game. The reply is read as bytes up to a limit and judged here, because a
"compatible" server may send anything. A key never gets into an error: what a server says is
cleaned of it, and the library's own exceptions, which hold the request, are not chained.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from twisted.internet.defer import CancelledError, Deferred

from evennia_ai.llm.bridge import AsyncBridge
from evennia_ai.llm.chat import ChatMessage, ChatReply, ChatRequest, Listener, Usage
from evennia_ai.llm.endpoint import Endpoint
from evennia_ai.llm.errors import (
    ModelError,
    ModelRefused,
    ModelRubbish,
    ModelTimeout,
    ModelUnavailable,
)
from evennia_ai.prompt.messages import ToolCall

if TYPE_CHECKING:
    import openai

NO_KEY: Final = "none"
"""Sent where no key is configured: without any, the library would take OPENAI_API_KEY, which
may belong to quite another server."""

QUOTED_CHARACTERS: Final = 200
"""How much of a server's own words an error quotes."""


class OpenAIChat:
    """One endpoint, asked through the bridge."""

    offline: Final = False

    def __init__(self, endpoint: Endpoint, bridge: AsyncBridge) -> None:
        self.endpoint = endpoint
        self._bridge = bridge
        self._client: openai.AsyncOpenAI | None = None
        self._client_loop: asyncio.AbstractEventLoop | None = None

    @property
    def name(self) -> str:
        return self.endpoint.name

    def complete(
        self, request: ChatRequest, *, listener: Listener | None = None
    ) -> Deferred[ChatReply]:
        """The server's reply; fails with a `ModelError`."""
        return self._bridge.run(lambda: self._answer(request))

    def prepare(self) -> Deferred[None]:
        """Import the library and make the client ahead of the first request."""
        return self._bridge.run(self._prepared)

    def close(self) -> None:
        """Close the connections, if there are any."""
        if self._bridge.running:
            # A stop of the bridge right after this cancels it, and closes the connections itself.
            self._bridge.run(self._closed).addErrback(lambda failure: failure.trap(CancelledError))

    async def _prepared(self) -> None:
        self._connected()

    async def _closed(self) -> None:
        client, self._client = self._client, None
        if client is not None and self._client_loop is asyncio.get_running_loop():
            await client.close()

    def _connected(self) -> "openai.AsyncOpenAI":
        """The client of the loop that runs now; connections of an ended loop are useless."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._client_loop is not loop:
            self._client, self._client_loop = _client_of(self.endpoint), loop
            self._bridge.at_stop(self._client.close)
        return self._client

    async def _answer(self, request: ChatRequest) -> ChatReply:
        client = self._connected()
        try:
            async with asyncio.timeout(request.timeout_seconds):
                answer = await self._asked(client, request)
        except TimeoutError:
            answer = ModelTimeout(self.name, request.timeout_seconds)
        if isinstance(answer, ModelError):
            raise answer
        return self._reply(answer, request)

    async def _asked(
        self, client: "openai.AsyncOpenAI", request: ChatRequest
    ) -> bytes | ModelError:
        """The reply's bytes, or what went wrong, as a value: nothing is chained to it."""
        import openai

        asked = client.chat.completions.with_streaming_response.create(**self._body(request))
        try:
            async with asked as response:
                return await self._read(response)
        except openai.APITimeoutError:
            return ModelTimeout(self.name, self.endpoint.timeout_seconds)
        except openai.APIConnectionError as problem:
            return ModelUnavailable(self.name, f"no connection ({self._quoted(_cause(problem))})")
        except openai.APIStatusError as problem:
            return self._turned_down(problem.status_code, problem.body)
        except openai.OpenAIError as problem:
            return ModelUnavailable(self.name, self._quoted(str(problem)))

    def _body(self, request: ChatRequest) -> dict[str, Any]:
        """The request as the chat completions API takes it; what is not set is not sent."""
        body: dict[str, Any] = {
            "model": request.model or self.endpoint.model,
            "messages": [_wire(message) for message in request.messages],
            "max_tokens": request.max_tokens,
        }
        if request.sampling.temperature is not None:
            body["temperature"] = request.sampling.temperature
        if request.cache_key is not None:
            body["user"] = request.cache_key
        return body

    async def _read(self, response: Any) -> bytes | ModelError:
        """The body, unless it is over the limit or breaks off."""
        limit, body = self.endpoint.max_reply_bytes, bytearray()
        try:
            async for chunk in response.iter_bytes():
                body += chunk
                if len(body) > limit:
                    return ModelRubbish(self.name, f"the reply is larger than {limit} bytes")
        except Exception as problem:  # the transport's own errors, of httpx by whichever name
            why = type(problem).__name__
            return ModelUnavailable(self.name, f"the connection broke off in the reply ({why})")
        return bytes(body)

    def _turned_down(self, status: int, body: object) -> ModelError:
        said = self._quoted(_provider_words(body))
        if status in (408, 409, 425, 429) or status >= 500:
            return ModelUnavailable(self.name, f"status {status}: {said}", status=status)
        return ModelRefused(self.name, status, said)

    def _quoted(self, words: str) -> str:
        """A server's words on one short line, without the key."""
        line = " ".join(self.endpoint.api_key.hidden_in(words).split())
        printable = "".join(letter for letter in line if letter.isprintable())
        return printable[:QUOTED_CHARACTERS] or "no reason given"

    def _reply(self, body: bytes, request: ChatRequest) -> ChatReply:
        """The reply in a body; ModelRubbish where there is none."""
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError):
            raise ModelRubbish(self.name, "the reply is not JSON") from None
        if not isinstance(answer, dict):
            raise ModelRubbish(self.name, "the reply is not a JSON object")
        choices = answer.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            raise ModelRubbish(self.name, f"the reply has no choices{self._own_error(answer)}")
        finish = self._quoted(_text(choices[0].get("finish_reason")) or "stop")
        text = _message_text(choices[0].get("message"))
        if not text.strip():
            raise ModelRubbish(self.name, f"the text is empty (finish reason '{finish[:40]}')")
        named = _text(answer.get("model")) or request.model or self.endpoint.model
        model = self._quoted(named)  # it gets into the log: no line of the server's own, no key
        usage = _usage(answer.get("usage"))
        return ChatReply(text=text, model=model, finish_reason=finish, usage=usage)

    def _own_error(self, answer: Mapping[str, object]) -> str:
        """Some routers answer an error with status 200."""
        return f": {self._quoted(_provider_words(answer))}" if "error" in answer else ""


def _client_of(endpoint: Endpoint) -> "openai.AsyncOpenAI":
    import openai

    client = openai.AsyncOpenAI(
        base_url=endpoint.base_url,
        api_key=endpoint.api_key.reveal() or NO_KEY,
        timeout=endpoint.timeout_seconds,
        max_retries=endpoint.max_retries,
    )
    # The library takes these from the environment; like the key, they belong to one provider.
    client.organization = client.project = None
    return client


def _wire(message: ChatMessage) -> dict[str, Any]:
    wire: dict[str, Any] = {"role": message.role, "content": _sendable(message.content)}
    if message.name is not None:
        wire["name"] = _sendable(message.name)
    if message.tool_call_id is not None:
        wire["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        wire["tool_calls"] = [_wire_call(call) for call in message.tool_calls]
    return wire


def _wire_call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": _sendable(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}


def _sendable(text: str) -> str:
    """`text` with a question mark for half a surrogate pair: a player's client can send one."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _message_text(message: object) -> str:
    """The text of an answer's message, which may be one string or a list of parts."""
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict) and part.get("type") == "text"]
        return "".join(_text(part.get("text")) for part in parts)
    return _text(content)


def _usage(usage: object) -> Usage | None:
    if not isinstance(usage, dict):
        return None
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else 0
    return Usage(
        input_tokens=_count(usage.get("prompt_tokens")),
        output_tokens=_count(usage.get("completion_tokens")),
        cached_tokens=_count(cached),
    )


def _provider_words(body: object) -> str:
    """A server's own explanation, wherever in its error body it stands."""
    said = body
    for field in ("error", "message", "detail"):
        if isinstance(said, dict) and field in said:
            said = said[field]
    return said if isinstance(said, str) else ""


def _cause(problem: BaseException) -> str:
    """Why a connection failed: the system's words where it has any (refused, certificate, ...).

    Of any other error only the kind is told: its text may quote the request.
    """
    kind = type(problem.__cause__ or problem).__name__
    link: BaseException | None = problem
    while link is not None:
        if isinstance(link, OSError) and link.strerror:
            return f"{kind}: {link.strerror}"
        link = link.__cause__ or link.__context__
    return kind


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object) -> int:
    return value if isinstance(value, int) and value >= 0 else 0
