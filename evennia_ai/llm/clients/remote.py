"""A model behind HTTP as a `ChatModel`: what the clients of all providers have in common.

Everything below `complete` runs in the bridge's thread. Errors leave it as values and are raised
last, so that nothing is chained to them: the HTTP library's own exceptions hold the request, and
with it the key.
"""

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from twisted.internet.defer import CancelledError, Deferred

from evennia_ai.errors import ModelError, ModelTimeout, ModelUnavailable
from evennia_ai.llm.chat import ChatReply, ChatRequest, Listener
from evennia_ai.llm.clients.answers import FailedRequest
from evennia_ai.llm.clients.attempt import Attempt, ChatApi
from evennia_ai.llm.endpoint import Endpoint
from evennia_ai.net.bridge import AsyncBridge
from evennia_ai.net.http import http_client, persistently

if TYPE_CHECKING:
    import httpx2


class RemoteChat:
    """One endpoint, asked through the bridge in the way of its provider."""

    offline: Final = False

    def __init__(self, provider: ChatApi, bridge: AsyncBridge) -> None:
        self._provider = provider
        self._bridge = bridge
        self._client: httpx2.AsyncClient | None = None
        self._client_loop: asyncio.AbstractEventLoop | None = None

    @property
    def endpoint(self) -> Endpoint:
        return self._provider.endpoint

    @property
    def name(self) -> str:
        return self.endpoint.name

    def complete(
        self, request: ChatRequest, *, listener: Listener | None = None
    ) -> Deferred[ChatReply]:
        """The server's reply; fails with a `ModelError`."""
        if listener is None or not self.endpoint.stream:
            return self._bridge.run(lambda: self._answer(request, None))
        return self._bridge.run_heard(lambda hear: self._answer(request, hear), listener)

    def prepare(self) -> Deferred[None]:
        """Import the HTTP library and make the client ahead of the first request."""
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
            await client.aclose()

    def _connected(self) -> "httpx2.AsyncClient":
        """The client of the loop that runs now; connections of an ended loop are useless."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._client_loop is not loop:
            self._client, self._client_loop = http_client(), loop
            self._bridge.at_stop(self._client.aclose)
        return self._client

    async def _answer(self, request: ChatRequest, hear: Listener | None) -> ChatReply:
        answer = await self._asked(_Hearing(hear), request)
        if isinstance(answer, ModelError):
            raise answer
        return answer

    async def _asked(self, hearing: "_Hearing", request: ChatRequest) -> ChatReply | ModelError:
        """Ask until there is a reply, it is no use, or the request's time is over."""
        client, broken = self._connected(), 0
        now = asyncio.get_running_loop().time
        until = now() + request.timeout_seconds

        async def attempt() -> ChatReply | FailedRequest:
            nonlocal broken
            outcome = await Attempt(self._provider, request, hearing.hear).outcome(client)
            if isinstance(outcome, ChatReply):
                return outcome
            broken += _is_broken(outcome.error)
            is_worth_it = not hearing.heard and (request.schema is None or broken < 2)
            return replace(outcome, again=outcome.again and is_worth_it)

        try:
            async with asyncio.timeout_at(until):
                outcome = await persistently(
                    attempt,
                    max_retries=self.endpoint.max_retries,
                    may_pause=lambda pause: now() + pause < until,
                )
        except TimeoutError:
            return ModelTimeout(self.name, request.timeout_seconds)
        return outcome if isinstance(outcome, ChatReply) else outcome.error


class _Hearing:
    """The listener of a request, and whether it heard anything: then nothing is said again."""

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
    """Whether a server broke down; one that may not end a reply to a schema does so each time."""
    return isinstance(error, ModelUnavailable) and error.status == 500
