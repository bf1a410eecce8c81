"""What a kind of work uses where it is done in the game's own process.

A request is committed before its model is asked, by the function that the game has for it; what is
sent is made from those records.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from twisted.internet.defer import Deferred, maybeDeferred

from evennia_ai.endpoints import Access
from evennia_ai.game.models.calls import ModelCalls
from evennia_ai.game.models.limits import CallKey
from evennia_ai.llm.chat import ChatReply, ChatRequest
from evennia_ai.prompt.messages import Message
from evennia_ai.store.history.model_requests import ModelRequest
from evennia_ai.work.kinds.forms import SentRequest

InThread = Callable[..., "Deferred[Any]"]
Commit = Callable[[SentRequest], ModelRequest]


class GameTools:
    """The tools of one job; `recorded` are the requests that are committed already, in order."""

    def __init__(self, calls: ModelCalls, *, in_thread: InThread, commit: Commit) -> None:
        self._calls: Final = calls
        self._in_thread: Final = in_thread
        self._commit: Final = commit
        self.recorded: list[ModelRequest] = []

    def ask(
        self,
        access: Access,
        request: ChatRequest,
        *,
        role: Any,
        npc_ref: str,
        name: str = "",
        prompt: Sequence[Message] = (),
    ) -> "Deferred[ChatReply]":
        """Nobody's words alone ask for it, so it counts for the NPC."""
        key = CallKey(npc_ref=npc_ref, role=role, name=name)
        return self._calls.asked(access, request, key, prompt=prompt)

    def record(self, request: SentRequest) -> "Deferred[tuple[Message, ...]]":
        """Fails as the commit does, and then no model may be asked."""
        return maybeDeferred(self._commit, request).addCallback(self._recorded)

    def models(self, role: Any) -> tuple[Access, ...]:
        """Without responders that are no model."""
        return self._calls.models.thinking(role)

    def read(self, work: Callable[..., Any], *values: Any) -> "Deferred[Any]":
        """In the writer's thread, which has a connection of its own."""
        return self._calls.writer.read(partial(work, *values))

    def off(self, work: Callable[..., Any], *values: Any) -> "Deferred[Any]":
        """In another thread."""
        return self._in_thread(work, *values)

    def _recorded(self, asked: ModelRequest) -> tuple[Message, ...]:
        self.recorded.append(asked)
        return asked.messages
