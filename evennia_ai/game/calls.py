"""Calls: how a model is asked in the running game, so that it is stopped, counted and watched.

Whoever has a transaction of its own for what comes of a call asks with `Call` and writes its `row`
there (`store.model_calls.add`); everybody else asks with `asked`, which writes the row itself.
"""

from collections.abc import Sequence

from twisted.internet.defer import Deferred

from evennia_ai.game.counting import CountedCall
from evennia_ai.game.endpoints import Access
from evennia_ai.game.events import Line
from evennia_ai.game.limits import CallKey
from evennia_ai.game.runtime import runtime
from evennia_ai.llm.chat import ChatReply, ChatRequest
from evennia_ai.prompt.messages import Message


class Call(CountedCall):
    """One call of a model for an NPC, in a role; asked once."""

    def __init__(
        self,
        access: Access,
        *,
        npc_ref: str,
        role: str,
        name: str = "",
        player_ref: str = "",
        turn: int | None = None,
        prompt_tokens: int = 0,
        line: Line | None = None,
    ) -> None:
        """`prompt_tokens` are estimated where they are 0; the rest is as in `CallKey`."""
        key = CallKey(
            npc_ref=npc_ref,
            player_ref=player_ref,
            role=role,
            name=name,
            turn=turn,
            prompt_tokens=prompt_tokens,
            line=line,
        )
        super().__init__(runtime().counting, access, key)


def asked(
    access: Access,
    request: ChatRequest,
    *,
    npc_ref: str,
    role: str,
    name: str = "",
    player_ref: str = "",
    prompt_tokens: int = 0,
    line: Line | None = None,
    prompt: Sequence[Message] = (),
) -> Deferred[ChatReply]:
    """The model's reply to a request that belongs to no turn; its row is written at its end."""
    key = CallKey(
        npc_ref=npc_ref,
        player_ref=player_ref,
        role=role,
        name=name,
        prompt_tokens=prompt_tokens,
        line=line,
    )
    return runtime().counting.asked(access, request, key, prompt=prompt)
