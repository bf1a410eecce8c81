"""Commit the tool calls of a reply, run them, and commit their results.

A call never runs before it is committed. After a crash, the records therefore show which calls may
have changed the world. These get a result that says so, and never run again.

A tool that takes long becomes an errand, and the turn goes on. A later event tells the NPC only
that the errand has ended. The NPC reads the result with the tool `errand_result`. So everything
that it learns about the world is the result of a call.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Final, Literal

from evennia.utils import logger
from twisted.internet.defer import Deferred

from evennia_ai.engine.errors import StoreError
from evennia_ai.engine.history.projection import message_of, tool_result_record
from evennia_ai.engine.history.records import NewRecord, Record, RecordKind
from evennia_ai.engine.prompt.messages import Message, ToolCall
from evennia_ai.engine.prompt.names import wearer_of
from evennia_ai.npc.recording.heard import event_record
from evennia_ai.npc.recording.retrying import until_done
from evennia_ai.npc.recording.writer import Writer
from evennia_ai.npc.senses.events import ERRAND, Event
from evennia_ai.npc.tools.tool import Use
from evennia_ai.npc.tools.toolbox import GIVEN_UP, Found, Ran, Toolbox, Wrong
from evennia_ai.npc.turn.ending import Commits
from evennia_ai.store.core.snapshots import one_transaction
from evennia_ai.store.history import conversations, errands
from evennia_ai.store.history.errands import LOST, Errand
from evennia_ai.store.history.record_rows import ConversationRef
from evennia_ai.store.history.turns import StoredTurn
from evennia_ai.store.history.windows import windows

ERRAND_SECONDS: Final = 600.0
"""An errand that takes longer is given up."""

NOT_BEGUN: Final = "That did not work."


async def sent_off(use: Use, later: "Deferred[Ran]", call: ToolCall, *, writer: Writer) -> str:
    """Record an errand and schedule what follows its end. Return what the model reads now."""
    try:
        errand = await writer.write(
            partial(errands.begin_errand, use.conversation, call, turn=use.turn)
        )
    except StoreError as error:
        logger.log_err(
            f"evennia_ai: NPC {use.mind.ref}: an errand cannot be recorded and is given up: {error}"
        )
        later.cancel()
        return NOT_BEGUN
    clock: Any = writer.clock
    later.addTimeout(ERRAND_SECONDS, clock, lambda *_: Ran(text=GIVEN_UP, ok=False))
    later.addCallback(lambda ran: _finish_errand(use, errand, ran, writer))
    return f"Errand {errand.number} has begun: {call.name}. You will be told when it is done."


def close_lost(*, begun_before: float) -> int:
    """End the errands of a process that died, and record that in their conversations.

    Returns:
        The number of these errands.

    Raises:
        StoreError: Some errands may still be open. None has ended without its record.
    """
    lost = errands.open_errands(begun_before=begun_before)
    for one in lost:
        where = one.conversation
        # Read before the transaction, because SQLite may refuse to write in one that began by
        # reading.
        windows(where.id)
        with one_transaction(f"closing errand {one.number} of NPC {one.npc_ref}"):
            if errands.end_errand(one, LOST, state="lost"):
                conversations.append_records(
                    where, [event_record(_errand_event(one, _errand_base_event(one)))]
                )
    return len(lost)


def _finish_errand(use: Use, errand: Errand, ran: Ran, writer: Writer) -> None:
    """Commit the result of an errand. Then tell the NPC, unless the errand was erased or lost."""
    doing = f"NPC {use.mind.ref}: errand {errand.number} is not closed"
    state: Literal["done", "failed"] = "done" if ran.ok else "failed"
    end = partial(errands.end_errand, errand, ran.text, state=state)

    def tell(is_news: bool) -> None:
        if is_news and use.npc.pk is not None:
            use.mind.hear(_errand_event(errand, use.event))

    until_done(lambda: writer.write(end).addCallback(tell), doing, clock=writer.clock)


def _errand_event(errand: Errand, event: Event) -> Event:
    """Return the event "an errand has ended".

    Its conversation is the one in which the errand began.

    If another errand's end made the NPC begin this one, it counts one more hop, because no person
    spoke in between.
    """
    number = errand.number
    return replace(
        event,
        kind=ERRAND,
        text=f"Errand {number} ({errand.call.name}) has ended; errand_result tells the outcome.",
        to_ref=errand.npc_ref,
        hops=event.hops + (event.kind == ERRAND),
        data={"errand": number},
        wants_answer=True,
        item="",
        language="",
        volume="",
    )


def _errand_base_event(errand: Errand) -> Event:
    where = errand.conversation
    return Event(
        kind=ERRAND,
        speaker_ref=wearer_of(where.partner_ref),
        known_ref=where.partner_ref,
        speaker_name="",
        text="",
        room_ref=where.place_ref,
        private=where.kind == "private",
    )


GONE: Final = "Not done: you are no more."
PLAYED: Final = "Not done: a player acts for you now."
MOST_CALLS: Final = 16
"""The most calls of one reply that are used. Further ones are ignored."""

WAIT_SECONDS: Final = 120.0
"""How long a turn waits for the result of a tool with `waits`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acted:
    """The results of the calls of a reply.

    `messages` are the calls and results for the next prompt. `names` are the called tools. `spoke`
    is True if people heard or saw an answer. `is_end` is True if a call ends the turn, so that the
    model is not asked again.
    """

    messages: tuple[Message, ...]
    names: tuple[str, ...]
    spoke: bool
    is_end: bool

    @property
    def outcome(self) -> str:
        """Return the outcome of the round in words, such as "used look, say"."""
        return f"used {', '.join(self.names)}"


class Acts:
    """Runs the calls that one reply asks for. `use` belongs to the round `stored`."""

    def __init__(
        self, use: Use, toolbox: Toolbox, commits: Commits, *, stored: StoredTurn, writer: Writer
    ) -> None:
        self._use: Final = use
        self._toolbox: Final = toolbox
        self._commits: Final = commits
        self._stored: Final = stored
        self._writer: Final = writer
        self._waited_for: Deferred[Ran] | None = None

    def cancel(self) -> None:
        """Stop waiting for a tool, whose action counts as given up."""
        if self._waited_for is not None:
            self._waited_for.cancel()

    async def called(self, calls: Sequence[ToolCall], *, text: str) -> "Called":
        """Commit the calls of a reply, together with the text of the reply."""
        numbered = _number_calls(calls[:MOST_CALLS], where=self._stored.conversation)
        found = tuple(self._toolbox.find(call) for call in numbered)
        recorded = _call_record(text, [one.recorded for one in found])
        record = await self._commits.add(self._stored, recorded)
        return Called(record=record, found=found)

    async def done(self, called: "Called") -> Acted:
        """Run the calls in order. Commit each result before the next call runs."""
        ran: list[Ran] = []
        results: list[Record] = []
        for one in called.found:
            ran.append(await self._run_call(one))
            result = tool_result_record(ran[-1].text, call_id=one.recorded.id)
            results.append(await self._commits.add(self._stored, result))
        return Acted(
            messages=tuple(map(_tool_message, (called.record, *results))),
            names=tuple(one.recorded.name for one in called.found),
            spoke=any(one.ok and one.spoke for one in ran),
            is_end=any(one.ok and one.ends_turn for one in ran),
        )

    async def _run_call(self, one: Found | Wrong) -> Ran:
        use = self._use
        if isinstance(one, Wrong):
            return Ran(text=one.text, ok=False)
        if use.npc.pk is None:
            return Ran(text=GONE, ok=False)
        # the tool would have the permissions of the player who controls the NPC
        if use.npc.has_account:
            return Ran(text=PLAYED, ok=False)
        ran = self._toolbox.run(one, use)
        if ran.later is None:
            return ran
        if ran.waits:
            return await self._wait_for_result(ran.later)
        told = await sent_off(use, ran.later, one.recorded, writer=self._writer)
        return replace(ran, text=told)

    async def _wait_for_result(self, later: "Deferred[Ran]") -> Ran:
        """Return the result of a tool. The turn waits until the result is there."""
        clock: Any = self._writer.clock
        self._waited_for = later
        try:
            return await later.addTimeout(
                WAIT_SECONDS, clock, lambda *_: Ran(text=GIVEN_UP, ok=False)
            )
        finally:
            self._waited_for = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """Calls that are committed and have not run yet."""

    record: Record
    found: tuple[Found | Wrong, ...]


def _number_calls(calls: Sequence[ToolCall], *, where: ConversationRef) -> list[ToolCall]:
    """Return the calls with ids that are unique in the conversation, because models repeat ids.

    An id encodes the place of the call's record, which is unique even in imported conversations. It
    has nine letters and digits, a form that every provider accepts.
    """
    end = windows(where.id).end
    place = f"{_in_base_36(end.segment, digits=2)}{_in_base_36(end.seq + 1, digits=5)}"
    return [replace(call, id=f"{place}{index:02}") for index, call in enumerate(calls)]


def _in_base_36(number: int, *, digits: int) -> str:
    told = ""
    while number:
        number, digit = divmod(number, 36)
        told = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + told
    return told.rjust(digits, "0")


def _call_record(text: str, calls: Sequence[ToolCall]) -> NewRecord:
    return NewRecord(
        kind=RecordKind.TOOL_CALL,
        role="assistant",
        body=text,
        meta={"tool_calls": [asdict(call) for call in calls]},
    )


def _tool_message(record: Record) -> Message:
    """Return a record as a message of the next prompt, which follows the event."""
    message = message_of(record)
    assert message is not None  # a record of this kind always has a message
    return replace(message, block="tool", origin="tool")
