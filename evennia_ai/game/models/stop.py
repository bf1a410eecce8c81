"""Stopping: while the game is stopped or an NPC is paused, no model is asked for anything.

The halts are in the database, so they hold over a reload, and are read without a query. Every model
of the game is a `Stoppable`: whoever asks, for whatever role, is refused by it, and what is under
way when the game is stopped is given up. What a stop does beside is in `game.emergency`.
"""

from typing import Final

from evennia.utils import logger
from twisted.internet.defer import Deferred, fail, maybeDeferred
from twisted.python.failure import Failure

from evennia_ai.errors import ModelError, StoreError
from evennia_ai.game.senses.presence import NPC
from evennia_ai.llm.chat import ChatModel, ChatReply, ChatRequest, Listener
from evennia_ai.store.calls.halts import GAME_REF, Halt, halts


class ModelStopped(ModelError):  # noqa: N818 - named as its siblings are
    """No model is asked, because a person stopped it; `why` says who, and why."""

    def __init__(self, endpoint: str, why: str) -> None:
        self.why = why
        super().__init__(endpoint, f"is not asked: {why}")


def is_stopped() -> str:
    """Who stopped the whole game and why, in words; "" while it runs."""
    return _in_words(GAME_REF)


def is_paused(npc: NPC) -> bool:
    """Whether this NPC alone is paused."""
    return bool(_in_words(str(npc.id)))


def why_halted(npc_ref: str) -> str:
    """Why this NPC may ask no model now: "stopped by Mira: ...", "paused by ..."; "" if it may."""
    return _in_words(GAME_REF) or _in_words(npc_ref)


def refuse_if_stopped(endpoint: str, npc_ref: str = GAME_REF) -> None:
    """ModelStopped if the game, or this NPC where one is given, may ask no model now."""
    why = why_halted(npc_ref)
    if why:
        raise ModelStopped(endpoint, why)


class Stoppable:
    """A model that is asked while the game is not stopped; itself a `ChatModel`.

    The one door of every model: `Access` has it around whatever it holds.
    """

    def __init__(self, model: ChatModel) -> None:
        self._model: Final = model
        # What is handed out, and what it waits for.
        self._asked: dict[Deferred[ChatReply], Deferred[ChatReply]] = {}

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def offline(self) -> bool:
        return self._model.offline

    @property
    def behind(self) -> ChatModel:
        """The model behind it."""
        return self._model

    def complete(
        self, request: ChatRequest, *, listener: Listener | None = None
    ) -> Deferred[ChatReply]:
        """The model's reply; fails with ModelStopped at once, or as soon as the game is stopped."""
        why = is_stopped()
        if why:
            return fail(ModelStopped(self.name, why))
        asked = maybeDeferred(self._model.complete, request, listener=listener)
        through: Deferred[ChatReply] = Deferred(lambda _: asked.cancel())
        self._asked[through] = asked
        asked.addBoth(self._passed_on, through)
        return through

    def close(self) -> None:
        self._model.close()

    def give_up(self, why: str) -> int:
        """Fail all that is under way with ModelStopped; how much that was."""
        given_up = tuple(self._asked.items())
        for through, asked in given_up:
            self._asked.pop(through, None)
            asked.cancel()
            through.errback(ModelStopped(self.name, why))
        return len(given_up)

    def _passed_on(self, outcome: ChatReply | Failure, through: Deferred[ChatReply]) -> None:
        if through in self._asked:
            del self._asked[through]
            through.callback(outcome)


def _in_words(npc_ref: str) -> str:
    halt = _halt(npc_ref)
    return str(halt) if halt is not None else ""


def _halt(npc_ref: str) -> Halt | None:
    """The halt in force; where the database cannot be read, what was asked is not refused."""
    try:
        return halts().get(npc_ref)
    except StoreError as error:
        logger.log_err(f"evennia_ai: it is not known whether NPCs are stopped: {error}")
        return None
