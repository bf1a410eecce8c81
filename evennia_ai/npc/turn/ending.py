"""Commit the steps of a turn, and end it with or without a reply.

The end is committed before it is said, so nobody hears what is not in the history. Without a reply,
the NPC says its fallback line, unless nobody waits for the answer or the start of a reply was
already heard.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, TypeVar

from evennia.utils import logger
from twisted.internet.defer import CancelledError, Deferred

from evennia_ai.engine.errors import HistoryConflictError, StoreError, TurnClosedError, on_one_line
from evennia_ai.engine.history.records import NewRecord, Record, fallback_record, reply_record
from evennia_ai.npc.filtering import WithheldByGame
from evennia_ai.npc.inputs.mind import Mind
from evennia_ai.npc.jobs.counting import ModelStopped
from evennia_ai.npc.model_calls.calls import CountedCall
from evennia_ai.npc.model_calls.watching import TurnOutcome
from evennia_ai.npc.recording.heard import CommittedEvent
from evennia_ai.npc.recording.writer import Writer
from evennia_ai.npc.senses.languages import own_language, translate
from evennia_ai.npc.speech.voice import Voice
from evennia_ai.services.llm.chat import ChatReply
from evennia_ai.store import model_calls
from evennia_ai.store.history import conversations, turns
from evennia_ai.store.history.turns import StoredTurn
from evennia_ai.store.model_calls import NewCall

STOPPED: Final = "the server stopped before the reply"

T = TypeVar("T")


class Commits:
    """Commits the steps of one turn.

    `call` is the newest model call. Its row is committed with the end of its round.
    """

    def __init__(self, npc_ref: str, writer: Writer) -> None:
        self.call: CountedCall | None = None
        self._npc_ref: Final = npc_ref
        self._writer: Final = writer

    async def again(self, begin: Callable[[], Awaitable[T]]) -> T:
        """Start a round. If another process wrote to the history meanwhile, try once more."""
        try:
            return await begin()
        except HistoryConflictError as error:
            logger.log_err(
                f"evennia_ai: NPC {self._npc_ref}: another process wrote meanwhile,"
                f" writing again: {error}"
            )
            return await begin()

    async def written(self, write: Callable[[], T]) -> T:
        """Call `write` in the writer's thread; once more if another process wrote meanwhile."""
        return await self.again(partial(self._writer.write, write))

    async def add(self, stored: StoredTurn, new: NewRecord) -> Record:
        """Commit a record of a turn that goes on, and return it."""
        (record,) = await self.written(partial(turns.add_records, stored, [new]))
        return record

    def spoke(self, stored: StoredTurn, text: str) -> "Deferred[None]":
        """Commit the start of a reply before it is said."""
        return self._writer.write(partial(turns.commit_spoken, stored, text))

    async def finish(
        self, stored: StoredTurn, new: Sequence[NewRecord] = (), *, outcome: str
    ) -> None:
        """Commit the end of a round, together with these records."""
        await self.written(partial(turns.finish_turn, stored, new, outcome=outcome, call=self._row))
        self.call = None

    async def fail(self, stored: StoredTurn, why: str, *, new: Sequence[NewRecord] = ()) -> None:
        """Commit that a round failed, together with what the NPC says instead of a reply."""
        await self.written(partial(turns.fail_turn, stored, why, new=new, call=self._row))
        self.call = None

    async def interrupt(self, stored: StoredTurn, why: str) -> None:
        """Commit that a turn did not end, because the server stops."""
        await self.written(partial(turns.interrupt_turn, stored, why, call=self._row))
        self.call = None

    def close(self, stored: StoredTurn, why: str) -> "Deferred[None]":
        """Commit that a turn broke off, and retry until that succeeds.

        Until then the history has calls without results, so no other prompt may be made from it.
        """
        doing = f"NPC {self._npc_ref}: turn {stored.number} is not closed"
        return self._writer.until_written(partial(_close_turn, stored, why, self._row), doing)

    @property
    def _row(self) -> NewCall | None:
        return self.call.row if self.call is not None else None


class Ending:
    """The ways in which the turn of `mind` that answers `heard` may end."""

    def __init__(self, mind: Mind, heard: CommittedEvent, commits: Commits, writer: Writer) -> None:
        self._mind: Final = mind
        self._heard: Final = heard
        self._commits: Final = commits
        self._writer: Final = writer

    async def answered(self, stored: StoredTurn, reply: ChatReply, *, has_spoken: bool) -> None:
        """Commit the reply. With `has_spoken`, the NPC has already said something with a tool."""
        recorded = self._fallback_record if reply.is_fallback else reply_record
        said = [recorded(reply.text)] if reply.text else []
        outcome = "answered" if said or has_spoken else "chose to say nothing"
        await self._commits.finish(stored, said, outcome=outcome)

    def _fallback_record(self, line: str) -> NewRecord:
        """Return the record of a line of the game, in the language of the NPC."""
        return fallback_record(translate(line, own_language(self._mind.npc)))

    async def failed(
        self, stored: StoredTurn, error: Exception, *, stale: str, voice: Voice | None
    ) -> TurnOutcome:
        """Commit that there is no reply, and say the fallback line. Return the turn's outcome.

        Args:
            stale: Why nobody waits for the reply, "" if somebody does.
            voice: None if the start of a reply was already said. Then nothing else is said.
        """
        why = on_one_line(error)
        if isinstance(error, CancelledError) and not stale:
            await self._commits.interrupt(stored, STOPPED)
            return "dropped"
        if stale or is_no_fault(error):
            return await self.dropped(stored, stale or why)
        if voice is None:
            await self._commits.fail(stored, why)
            return "failed"
        is_withheld = isinstance(error, WithheldByGame)
        line = self._mind.withheld_line if is_withheld else self._mind.fallback_line
        await self._commits.fail(stored, why, new=[self._fallback_record(line)] if line else [])
        if line:
            voice.say(line, is_games=True)
        return "withheld" if is_withheld else "failed"

    async def dropped(self, stored: StoredTurn, why: str) -> TurnOutcome:
        """Commit that nobody waits for the answer, or that the NPC may not speak."""
        await self._commits.fail(stored, f"dropped: {why}")
        return "dropped"

    async def without_prompt(self, voice: Voice) -> str:
        """Commit and say the fallback line of a turn without a prompt.

        Returns:
            Why it was not said, "" if it was.
        """
        line = self._mind.fallback_line
        said = [self._fallback_record(line)]
        append = partial(conversations.append_records, self._heard.conversation, said)
        try:
            await self._writer.write(append)
        except StoreError as error:
            return f"the fallback line cannot be recorded, so nothing is said: {error}"
        voice.say(line, is_games=True)
        return ""


def is_no_fault(error: Exception) -> bool:
    """True if the server or a person stopped the call, which needs no line in the log."""
    return isinstance(error, CancelledError | ModelStopped)


def _close_turn(stored: StoredTurn, why: str, call: NewCall | None) -> None:
    """Commit that the turn failed. If it has already ended, commit only the row of the call."""
    try:
        turns.fail_turn(stored, why, call=call)
    except TurnClosedError:
        if call is not None:
            model_calls.add_call_alone(call)
