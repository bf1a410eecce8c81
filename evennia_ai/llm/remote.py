"""A model behind HTTP as a `ChatModel`: what the clients of all providers have in common.

A provider's library is imported in the bridge's thread only: its import takes up to two seconds,
which would freeze the game. Everything below `complete` runs there. Errors leave it as values and
are raised last, so that nothing is chained to them: the libraries' own exceptions hold the
request, and with it the key.
"""

import asyncio
from typing import Any, Final

from twisted.internet.defer import CancelledError, Deferred

from evennia_ai.llm.attempt import Attempt, Provider
from evennia_ai.llm.bridge import AsyncBridge
from evennia_ai.llm.chat import ChatReply, ChatRequest, Listener
from evennia_ai.llm.endpoint import Endpoint
from evennia_ai.llm.errors import ModelError, ModelTimeout, ModelUnavailable
from evennia_ai.llm.retries import persistently
from evennia_ai.llm.setbacks import Setback
from evennia_ai.llm.transport import http_client


class RemoteChat:
    """One endpoint, asked through the bridge in the way of its provider."""

    offline: Final = False

    def __init__(self, provider: Provider, bridge: AsyncBridge) -> None:
        self._provider = provider
        self._bridge = bridge
        self._client: Any = None
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

    def _connected(self) -> Any:
        """The client of the loop that runs now; connections of an ended loop are useless."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._client_loop is not loop:
            http = http_client(self._provider.library())
            self._client, self._client_loop = self._provider.client(http), loop
            self._bridge.at_stop(self._client.close)
        return self._client

    async def _answer(self, request: ChatRequest, hear: Listener | None) -> ChatReply:
        answer = await self._asked(_Hearing(hear), request)
        if isinstance(answer, ModelError):
            raise answer
        return answer

    async def _asked(self, hearing: "_Hearing", request: ChatRequest) -> ChatReply | ModelError:
        """Ask until there is a reply, it is no use, or the request's time is over."""
        client, broken = self._connected(), 0

        async def attempt() -> ChatReply | Setback:
            asked = Attempt(self._provider, request, hearing.hear)
            return await asked.outcome(client)

        def is_worth_it(setback: Setback) -> bool:
            nonlocal broken
            broken += _is_broken(setback.error)
            return not hearing.heard and (request.schema is None or broken < 2)

        until = asyncio.get_running_loop().time() + request.timeout_seconds
        try:
            async with asyncio.timeout_at(until):
                return await persistently(
                    attempt,
                    max_retries=self.endpoint.max_retries,
                    until=until,
                    again=is_worth_it,
                )
        except TimeoutError:
            return ModelTimeout(self.name, request.timeout_seconds)


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
