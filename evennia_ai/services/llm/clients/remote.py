"""The code that all clients of models over HTTP share.

Everything that `complete` calls runs in the bridge's thread. Each attempt has three limits: its
total time, the time without data, and the size of the reply. The module of the protocol checks the
reply, because a server may send anything. Inside the thread, errors are returned as values and
raised only at the end. Otherwise exceptions of the HTTP library would be chained to them, and those
contain the request and the key.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from twisted.internet.defer import Deferred

from evennia_ai.engine.errors import (
    ModelError,
    ModelRefused,
    ModelRubbish,
    ModelTimeout,
    ModelUnavailable,
)
from evennia_ai.engine.prompt.messages import ToolCall
from evennia_ai.services.llm.chat import ChatReply, ChatRequest, Listener
from evennia_ai.services.llm.clients.answers import (
    FailedRequest,
    ReplyReader,
    failed_with_status,
    with_believable_usage,
)
from evennia_ai.services.llm.clients.error_bodies import redirection, words_in
from evennia_ai.services.llm.learned import ROLES_TAKEN, Learned, setting_for, without_fields
from evennia_ai.services.llm.profiles import Endpoint
from evennia_ai.services.net.bridge import AsyncBridge, PerLoop
from evennia_ai.services.net.events import LARGEST_EVENT_BYTES, BodyStart, EventReader
from evennia_ai.services.net.http import (
    BrokenOff,
    NoConnection,
    TooLarge,
    headers_of,
    http_client,
    json_value,
    open_response,
    reason_of,
    receive_body,
    retry_attempts,
)
from evennia_ai.services.net.secrets import KeyMask

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")
log: Final = logging.getLogger(__name__)

ENDING_SECONDS: Final = 2.0
"""How long a stream may be silent after the complete text, while the token counts are missing."""

STREAM_OVERHEAD: Final = 20
"""The most bytes that a stream may have per byte of text. Each word comes inside much JSON."""

NO_KEY: Final = "none"
"""The key that is sent if none is configured, because some servers require the header."""


class Attempt:
    """One attempt to send a request. The reply is streamed if there is a listener."""

    def __init__(self, chat: "RemoteChat", request: ChatRequest, hear: Listener | None) -> None:
        self._chat = chat
        self._endpoint = chat.endpoint
        self._reader = chat.reader(request)
        self._is_streamed: bool | None = None  # None until enough bytes have arrived to decide.
        self._content_type = ""
        self._start = BodyStart("")
        self._request = request
        self._hear = hear
        self._idle = asyncio.timeout(self._endpoint.idle_seconds if hear else None)
        self._events = EventReader(
            limit_bytes=max(LARGEST_EVENT_BYTES, self._endpoint.max_reply_bytes)
        )
        self._unmasked = self._endpoint.api_key.mask.stream()
        self._body = bytearray()
        self._left_bytes = self._endpoint.max_reply_bytes
        self._received_bytes = 0

    async def outcome(self, client: "httpx2.AsyncClient") -> ChatReply | FailedRequest:
        """Send the request and return the reply, or the failure as a value.

        A returned failure has no chained exception, which could contain the key.
        """
        failed = await self._exchange(client)
        if failed is not None and not self._is_complete:
            return failed
        try:
            return self._reply()
        except ModelError as problem:
            return _failed_request(problem)
        finally:
            self._chat.notes += self._reader.notes

    @property
    def _is_complete(self) -> bool:
        return bool(self._is_streamed) and self._reader.is_complete

    def _reply(self) -> ChatReply:
        reader = self._reader
        if self._is_streamed:
            reply = reader.reply()
        else:
            reply = reader.read_body(bytes(self._body), content_type=self._content_type)
        received = self._received_bytes
        believable = with_believable_usage(reply, self._request, received_bytes=received)
        return _without_key(believable, self._endpoint.api_key.mask)

    async def _exchange(self, client: "httpx2.AsyncClient") -> FailedRequest | None:
        """Send the request and read the reply within the time limits.

        Returns:
            The failure, or None if everything was received.
        """
        endpoint = self._endpoint
        try:
            async with asyncio.timeout(endpoint.timeout_seconds), self._idle:
                return await self._read(client)
        except TimeoutError:
            return FailedRequest(error=self._too_slow())
        except ModelError as problem:
            return _failed_request(problem)
        except NoConnection as problem:
            why = endpoint.api_key.quote(str(problem))
            advice = "see whether the server runs, and base_url of the profile"
            return self._unavailable(f"no connection ({why}); {advice}")
        except BrokenOff as problem:
            return self._unavailable(f"the connection broke off in the reply ({problem})")
        except TooLarge as problem:
            size = problem.problem or f"the reply is larger than {endpoint.max_reply_bytes} bytes"
            return FailedRequest(error=ModelRubbish(endpoint.name, size, too_much=True))

    async def _read(self, client: "httpx2.AsyncClient") -> FailedRequest | None:
        streams, extra = self._hear is not None, self._request.sampling.extra
        body = self._chat.body(self._request, stream=streams)
        request = client.build_request(
            "POST",
            self._chat.address,
            headers=self._headers(),
            json=without_fields(body, self._chat.learned.left_out(extra)),
        )
        async with open_response(client, request) as response:
            if not response.is_success:
                said, headers = await reason_of(response), headers_of(response)
                words = words_in(said)
                if response.is_redirect:
                    words = redirection(headers.get("location", ""))
                return failed_with_status(
                    self._endpoint,
                    response.status_code,
                    words,
                    headers,
                    request=self._request,
                    body=json_value(said),
                )
            self._content_type = response.headers.get("content-type", "")
            self._start = BodyStart(self._content_type)
            self._arrived()
            limit_bytes = self._endpoint.max_reply_bytes * STREAM_OVERHEAD
            await receive_body(response, self._take, limit_bytes=limit_bytes)
        if self._is_streamed is None:
            self._is_streamed = self._start.at_the_end()
        if self._is_streamed:
            self._take_rest()
        return None

    def _headers(self) -> dict[str, str]:
        sent = {"Accept": "application/json", **self._chat.headers()}
        session, name = self._chat.session_of(self._request), self._endpoint.session_header
        return {name: session, **sent} if name and session else sent

    def _take(self, chunk: bytes) -> None:
        self._received_bytes += len(chunk)
        if not self._is_streamed:
            self._body += chunk
        if self._is_streamed is None:
            self._is_streamed = self._start.is_stream(chunk)
            if self._is_streamed:
                chunk = bytes(self._body)
        if self._is_streamed:
            was_ending = self._reader.is_ending
            events = list(self._events.feed(chunk))
            self._take_events(events)
            # The chunk contains only data that keeps the connection open.
            if was_ending and not events:
                return
        elif len(self._body) > self._endpoint.max_reply_bytes:
            raise TooLarge
        self._arrived()

    def _take_rest(self) -> None:
        """Read the last event, which may be incomplete or lack the blank line after it."""
        try:
            self._take_events(self._events.finish())
        except ModelRubbish as problem:
            if problem.too_much:
                raise
            raise BrokenOff("half an event") from None
        if not self._is_complete and not self._reader.is_enough:
            raise BrokenOff("no end of the stream")
        self._say(self._unmasked.finish())

    def _take_events(self, events: Iterable[str]) -> None:
        """Read several events and pass their text to the listener as one fragment."""
        piece = "".join(map(self._reader.read_event, events))
        self._left_bytes -= len(piece.encode("utf-8", "replace"))
        if self._left_bytes < 0:
            raise TooLarge
        self._say(self._unmasked.feed(piece))

    def _say(self, piece: str) -> None:
        if piece and self._hear is not None:
            self._hear(piece)

    def _arrived(self) -> None:
        """Restart the timeout for silence. It is shorter if only the token counts are missing."""
        idle_seconds = self._endpoint.idle_seconds
        if self._is_streamed and self._reader.is_ending:
            idle_seconds = min(idle_seconds, ENDING_SECONDS)
        self._idle.reschedule(asyncio.get_running_loop().time() + idle_seconds)

    def _too_slow(self) -> ModelTimeout:
        if self._idle.expired():
            return ModelTimeout(self._endpoint.name, self._endpoint.idle_seconds, "silent")
        return ModelTimeout(self._endpoint.name, self._endpoint.timeout_seconds)

    def _unavailable(self, why: str) -> FailedRequest:
        return FailedRequest(error=ModelUnavailable(self._endpoint.name, why), again=True)


def _without_key(reply: ChatReply, mask: KeyMask) -> ChatReply:
    """Return the reply with the endpoint's key masked."""
    return replace(
        reply,
        text=mask.mask_text(reply.text),
        tool_calls=tuple(
            ToolCall(
                id=mask.mask_text(call.id),
                name=mask.mask_text(call.name),
                arguments=mask.mask_text(call.arguments),
            )
            for call in reply.tool_calls
        ),
    )


def _failed_request(error: ModelError) -> FailedRequest:
    """Return the failure for an error inside a reply. It is retried if another try may help."""
    return FailedRequest(
        error=error, again=error.fault is not None and error.fault.is_worth_a_retry
    )


class RemoteChat(ABC):
    """A client for one server over HTTP. Subclasses implement the protocol."""

    offline: Final = False

    def __init__(
        self,
        endpoint: Endpoint,
        bridge: AsyncBridge,
        *,
        learned: Learned | None = None,
        tell: Callable[[str], object] = log.warning,
    ) -> None:
        """Create a client without connecting.

        Args:
            learned: What the server's refusals have shown; all clients of the model share it.
            tell: Called with each message that an admin should read.
        """
        self.endpoint: Final = endpoint
        self.learned: Final = learned or Learned()
        self.notes: list[str] = []
        self._tell: Final = tell
        self._told: set[str] = set()
        self._bridge = bridge
        self._client = PerLoop(bridge, http_client, lambda client: client.aclose())

    @property
    @abstractmethod
    def address(self) -> str:
        """The address to which requests are sent."""

    @abstractmethod
    def headers(self) -> dict[str, str]:
        """Return the headers of a request, with the key."""

    @abstractmethod
    def body(self, request: ChatRequest, *, stream: bool) -> dict[str, Any]:
        """Return the body of a request as a JSON object."""

    @abstractmethod
    def reader(self, request: ChatRequest) -> ReplyReader:
        """Return a new reader for the reply to a request."""

    def session_of(self, request: ChatRequest) -> str | None:
        """Return the session key, or None.

        With it, a router finds the server that has the start of the prompt in its cache.
        """
        key = request.cache_key
        return None if key is None else self.endpoint.session_key(key)

    @property
    def name(self) -> str:
        return self.endpoint.name

    def complete(
        self, request: ChatRequest, *, listener: Listener | None = None
    ) -> Deferred[ChatReply]:
        """Send a request and return a Deferred of the reply. It fails with a `ModelError`."""
        if listener is None or not self.endpoint.stream:
            asked = self._bridge.run(lambda: self.answer(request, None))
        else:
            asked = self._bridge.run_heard(lambda hear: self.answer(request, hear), listener)
        return asked.addBoth(self._report_notes)

    def prepare(self) -> Deferred[None]:
        """Import the HTTP library and create the client before the first request."""
        return self._bridge.run(self._prepare_client)

    def close(self) -> None:
        """Close the connections, if there are any."""
        self._client.close()

    def _report_notes(self, outcome: T) -> T:
        """Send each new message to the admin once, and return the outcome unchanged."""
        notes, self.notes = self.notes, []
        for note in dict.fromkeys(notes):
            if note not in self._told:
                self._told.add(note)
                self._tell(f"evennia_ai: {note}")
        return outcome

    async def aclose(self) -> None:
        """Close the connections. Call it in the bridge's thread."""
        await self._client.aclose()

    async def _prepare_client(self) -> None:
        self._client.now()

    async def answer(self, request: ChatRequest, hear: Listener | None) -> ChatReply:
        """Send a request and return the reply. Call it in the bridge's thread.

        Raises:
            ModelError: the server gave no reply.
        """
        answer = await self._asked(_Hearing(hear), request)
        if isinstance(answer, ModelError):
            raise answer
        return answer

    async def _asked(self, hearing: "_Hearing", request: ChatRequest) -> ChatReply | ModelError:
        """Send a request until there is a reply, a retry is useless, or the time is over."""
        client, broken = self._client.now(), 0
        now = asyncio.get_running_loop().time
        until = now() + request.timeout_seconds

        async def attempt() -> ChatReply | FailedRequest:
            nonlocal broken
            while True:
                outcome = await Attempt(self, request, hearing.hear).outcome(client)
                if isinstance(outcome, ChatReply):
                    return outcome
                # A server may refuse one field after another. After each refusal one more field is
                # left out.
                if hearing.heard or not self._learn_from(outcome.error):
                    break
            broken += _is_broken(outcome.error)
            is_worth_it = not hearing.heard and (request.schema is None or broken < 2)
            return replace(outcome, again=outcome.again and is_worth_it)

        try:
            async with asyncio.timeout_at(until):
                outcome = await retry_attempts(
                    attempt,
                    max_retries=self.endpoint.max_retries,
                    may_pause=lambda pause: now() + pause < until,
                )
        except TimeoutError:
            return ModelTimeout(self.name, request.timeout_seconds)
        return outcome if isinstance(outcome, ChatReply) else outcome.error

    def _learn_from(self, error: ModelError) -> bool:
        """Learn from a refusal. True if later requests leave out fields that the server refused.

        If the server refuses the roles of messages, the prompt itself must change. Then the result
        is False, and the caller must send a new request.
        """
        if not isinstance(error, ModelRefused):
            return False
        refused = error.refused
        if self.learned.learn_roles(error.wants_roles):
            change, setting = ROLES_TAKEN[error.wants_roles]
            self.notes.append(
                f"model '{self.name}' refuses the roles of messages: it {change} until the game's"
                f" server restarts; to make it permanent, set {setting} in its profile"
            )
        news = {
            field: instead
            for field, instead in refused.items()
            if self.learned.learn_refusal(field, instead=instead)
        }
        for field, instead in news.items():
            change = f"'{instead}' is sent instead" if instead else "it is left out"
            setting = setting_for({field: instead})
            self.notes.append(
                f"model '{self.name}' refuses the field '{field}': {change} until the game's"
                f" server restarts; to make it permanent, set {setting} in its profile"
            )
        return bool(news)


class _Hearing:
    """A listener that records whether it got text. A retry would repeat that text."""

    def __init__(self, listener: Listener | None) -> None:
        self.heard = False
        self._listener = listener

    @property
    def hear(self) -> Listener | None:
        return None if self._listener is None else self._pass_on

    def _pass_on(self, piece: str) -> None:
        self.heard = True
        if self._listener is not None:
            self._listener(piece)


def _is_broken(error: ModelError) -> bool:
    """True if the server failed with status 500.

    A retry may be useless: a server that fails at a reply with a schema fails each time.
    """
    return isinstance(error, ModelUnavailable) and error.status == 500
