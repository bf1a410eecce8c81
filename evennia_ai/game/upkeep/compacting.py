"""Compacting: a history that is nearly full goes on in a new segment, behind a summary.

Before a turn the turn waits for it; in idle time it runs beside the game, one at a time. A summary
that is no good changes nothing; before a turn, when room is short, an extract takes its place. The
prompt made afterwards meets the check that every prompt meets.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from django.db import DatabaseError
from evennia.utils import logger
from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.python.failure import Failure

from evennia_ai.errors import (
    EvenniaAIError,
    HistoryConflictError,
    ModelError,
    SummaryRefused,
    ThrashError,
    TranscriptTooLongError,
)
from evennia_ai.game.inputs.mind import Mind
from evennia_ai.game.models.calls import ModelCalls
from evennia_ai.game.recording import heard
from evennia_ai.game.recording.heard import ConversationKey
from evennia_ai.game.upkeep.summarising import (
    Fullness,
    InThread,
    ReplyRefusedError,
    Summariser,
    Summary,
    Task,
    fullness_of,
    summaries_in,
    summarisable,
    tokens_since,
)
from evennia_ai.history.compaction.planning import (
    Breaker,
    By,
    CompactionPlan,
    CompactionSettings,
    NoPlan,
    When,
    plan,
)
from evennia_ai.history.compaction.summaries import SummaryAttempt, attempt_record, summary_record
from evennia_ai.history.projection import message_of
from evennia_ai.history.records import Record
from evennia_ai.prompt.history import History
from evennia_ai.prompt.prompt import Prompt
from evennia_ai.store.core.snapshots import one_transaction
from evennia_ai.store.history import conversations, model_requests, turns
from evennia_ai.store.history.conversations import begin_segment, opening_summary
from evennia_ai.store.history.record_rows import ConversationRef
from evennia_ai.store.history.windows import windows


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A compaction that somebody wants.

    `asked_by` is a turn, idle time or a builder's name; `is_pressing`: room is short or somebody
    asked for it, so an extract will do. `unanswered` are records that turns will answer.
    """

    conversation: ConversationRef
    npc_name: str
    asked_by: str
    is_pressing: bool
    fullness: Fullness
    unanswered: Collection[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a compaction; `record` is the summary, None where nothing was changed.

    `stopped`: the server stops, and nothing is to be begun any more.
    """

    told: str
    record: Record | None = None
    stopped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """A wanted compaction with the history as it is now, and how the last try went."""

    wanted: Wanted
    history: History
    summaries: frozenset[str]
    other_tokens: int
    newest: SummaryAttempt
    turn: int


class Compactor:
    """Compacts the histories of one process, each at most once at a time."""

    def __init__(
        self, settings: CompactionSettings, calls: ModelCalls, *, in_thread: InThread
    ) -> None:
        self._settings: Final = settings
        self._threads: Final = in_thread
        self._write: Final = calls.writer.write
        self._summariser: Final = Summariser(settings, calls, in_thread=self._in_thread)
        self._is_closed = False
        # Who else waits for the compaction of a conversation that is under way.
        self._waiting: dict[int, list[Deferred[Outcome]]] = {}

    def is_due(self, fullness: Fullness, when: When) -> bool:
        """Whether a history is to be compacted now."""
        return self._settings.enabled and fullness.is_due(self._settings.rules, when)

    def compact(self, wanted: Wanted) -> "Deferred[Outcome]":
        """Compact a conversation, or wait for who is at it; never fails.

        What went wrong is logged, and committed where a summary was no good.
        """
        key = wanted.conversation.id
        if key in self._waiting:
            joined: Deferred[Outcome] = Deferred()
            self._waiting[key].append(joined)
            return joined
        self._waiting[key] = []

        def ended(outcome: Outcome) -> Outcome:
            for waiting in self._waiting.pop(key):
                waiting.callback(outcome)
            return outcome

        done = Deferred.fromCoroutine(self._compacted(wanted))
        return done.addErrback(_given_up, wanted).addCallback(ended)

    def compact_room(self, mind: Mind, *, by: str) -> "Deferred[Outcome]":
        """Compact what an NPC remembers of the room it is in, as a builder wants it.

        BudgetError: no prompt can be made, so nobody knows how much room there is.
        """
        if mind.is_busy:
            return succeed(Outcome(told="it is answering somebody; try again in a moment"))
        room = mind.npc.location
        key = ConversationKey(kind="room", place_ref=str(room.id) if room else "nowhere")
        where = heard.found(mind.ref, key)
        if where is None:
            return succeed(Outcome(told="nothing was said here that it remembers"))
        wanted = Wanted(
            conversation=where,
            npc_name=mind.view().char_name,
            asked_by=by,
            is_pressing=True,
            fullness=fullness_of(mind.preview(), cut=windows(where.id).cut),
        )
        return self.compact(wanted)

    def close(self) -> None:
        """Commit nothing any more, whatever still comes from other threads."""
        self._is_closed = True

    async def look_again(self, prompt: Prompt, wanted: Wanted) -> None:
        """The check that every prompt meets, on the one that was made after a compaction.

        ThrashError: the history is due again at once, so no model may be asked. It is committed
        that the compaction was no use, and for some turns none is tried.
        """
        where, rules = wanted.conversation, self._settings.rules
        try:
            fullness_of(prompt, cut=windows(where.id).cut).refuse_thrash(rules)
        except ThrashError as error:
            newest = model_requests.newest_attempt(where)
            breaker = newest.breaker.after_thrash(turns.next_number(where.npc_ref), rules=rules)
            thrash = replace(newest, result="thrash", reason=str(error), breaker=breaker)
            await self._write(partial(model_requests.tell_attempt, where, attempt_record(thrash)))
            raise

    async def _compacted(self, wanted: Wanted) -> Outcome:
        work = _work(wanted)
        if self._rests(work):
            return Outcome(told=self._resting(work))
        made = await self._in_thread(self._plan, work)
        if isinstance(made, NoPlan):
            return Outcome(told=f"{made.reason}{f' ({made.detail})' if made.detail else ''}")
        task = _task(work, made)
        summary = None
        if self._summariser.asks_a_model and not self._is_open(work):
            summary, work = await self._of_model(work, task)
            if summary is None and not wanted.is_pressing:
                return Outcome(told=work.newest.reason)
        if summary is None:
            summary, work = await self._of_extract(work, task)
        if summary is None:
            return Outcome(told=work.newest.reason)
        return await self._committed(work, made, summary)

    def _in_thread(self, work: Callable[..., Any], *values: Any) -> "Deferred[Any]":
        """What `work` makes of values in another thread; CancelledError after a stop."""

        def unless_closed(made: Any) -> Any:
            if self._is_closed:
                raise CancelledError("the server stops")
            return made

        return self._threads(work, *values).addCallback(unless_closed)

    def _plan(self, work: _Work) -> CompactionPlan | NoPlan:
        fullness = work.wanted.fullness
        return plan(
            work.history,
            rules=self._settings.rules,
            counter=fullness.counter,
            limit_tokens=fullness.limit_tokens,
            other_tokens=work.other_tokens,
            summaries=work.summaries,
        )

    def _is_open(self, work: _Work) -> bool:
        return work.newest.breaker.is_open(work.turn, rules=self._settings.rules)

    def _rests(self, work: _Work) -> bool:
        """Whether nothing is tried now: nothing presses, or not even an extract was of use."""
        newest = work.newest
        is_no_use = newest.result == "thrash" or (newest.result, newest.by) == (
            "refused",
            "extract",
        )
        return self._is_open(work) and (is_no_use or not work.wanted.is_pressing)

    def _resting(self, work: _Work) -> str:
        newest = work.newest
        until = (newest.breaker.opened_at or 0) + self._settings.rules.rest_turns
        return (
            f"nothing is tried before turn {until}, after {newest.breaker.failures} failures in a"
            f" row; the last one: {newest.reason}"
        )

    async def _of_model(self, work: _Work, task: Task) -> tuple[Summary | None, _Work]:
        """The summary of a model, None where it is no good, and the work after the try."""
        try:
            summary = await self._summariser.by_model(task)
        except TranscriptTooLongError as error:  # that is nobody's failure, and will stay so
            _log(work.wanted, str(error))
            summary = await self._summariser.by_extract(task)
        except (ModelError, SummaryRefused) as error:
            return None, await self._failed(work, error, by="model")
        return summary, work

    async def _of_extract(self, work: _Work, task: Task) -> tuple[Summary | None, _Work]:
        """The same without a model."""
        try:
            summary = await self._summariser.by_extract(task)
        except SummaryRefused as error:
            return None, await self._failed(work, error, by="extract")
        return summary, work

    async def _failed(self, work: _Work, error: ModelError | SummaryRefused, *, by: By) -> _Work:
        """Commit that a summary was no good; the work after it."""
        wanted = work.wanted
        failed = SummaryAttempt(
            result="failed" if isinstance(error, ModelError) else "refused",
            asked_by=wanted.asked_by,
            by=by,
            reason=str(error),
            breaker=work.newest.breaker.after_failure(work.turn, rules=self._settings.rules),
        )
        model_requests.refuse_another_segment(wanted.conversation, work.history.segment)
        _log(wanted, f"{error} ({failed.breaker.failures} in a row)")
        reply = error.reply if isinstance(error, ReplyRefusedError) else None
        attempt = attempt_record(failed, reply=reply)
        await self._write(partial(model_requests.tell_attempt, wanted.conversation, attempt))
        return replace(work, newest=failed)

    async def _committed(self, work: _Work, made: CompactionPlan, summary: Summary) -> Outcome:
        """Commit the summary as a new segment, once more where another process wrote first."""
        keeps_failures = summary.by == "extract" and self._summariser.asks_a_model
        taken = SummaryAttempt(
            asked_by=work.wanted.asked_by,
            by=summary.by,
            breaker=work.newest.breaker if keeps_failures else Breaker(),
        )
        begin = partial(_begun, work, made, summary, taken)
        try:
            record = await self._write(begin)
        except HistoryConflictError as error:
            _log(work.wanted, f"the summary is committed again: {error}")
            record = await self._write(begin)
        how = "an extract" if summary.by == "extract" else "a summary of the model"
        told = (
            f"{len(made.summarised)} messages of {made.summarised_tokens} tokens were replaced by"
            f" {how}; the {len(made.tail)} after them stay as they are"
        )
        return Outcome(told=told, record=record)


def _work(wanted: Wanted) -> _Work:
    """What there is to compact, as values for another thread."""
    where, fullness = wanted.conversation, wanted.fullness
    now = windows(where.id).history
    first = opening_summary(where)
    opening = message_of(first) if first is not None else None
    history = summarisable(now, opening=opening, unanswered=wanted.unanswered)
    own_tokens = tokens_since(windows(where.id).cut, history, fullness.counter)
    return _Work(
        wanted=wanted,
        history=history,
        summaries=summaries_in(now) | ({first.id} if first is not None else set()),
        other_tokens=max(0, fullness.tokens - own_tokens),
        newest=model_requests.newest_attempt(where),
        turn=turns.next_number(where.npc_ref),
    )


def _task(work: _Work, made: CompactionPlan) -> Task:
    wanted = work.wanted
    return Task(
        conversation=wanted.conversation,
        segment=work.history.segment,
        npc_name=wanted.npc_name,
        asked_by=wanted.asked_by,
        plan=made,
        counter=wanted.fullness.counter,
    )


def _begun(work: _Work, made: CompactionPlan, summary: Summary, taken: SummaryAttempt) -> Record:
    """Commit what came of the try and the new segment together, behind the last summarised record.

    It is looked for by its id: what was said meanwhile belongs to what is kept.
    """
    where = work.wanted.conversation
    model_requests.refuse_another_segment(where, work.history.segment)
    now = windows(where.id).history
    last = made.summarised[-1].record
    found = (at for at in range(now.earlier, now.stop) if now[at].record == last)
    at = next(found, None)
    if at is None:
        raise HistoryConflictError(str(where))
    new = summary_record(
        summary.text, by=summary.by, asked_by=taken.asked_by, messages=len(made.summarised)
    )
    with one_transaction(f"compacting {where}"):
        conversations.append(where, [attempt_record(taken, reply=summary.reply)])
        return begin_segment(where, new, summarised=now, first_kept=at + 1)


def _given_up(failure: Failure, wanted: Wanted) -> Outcome:
    """Nothing was changed; the log says why, with all there is to say where it is our fault."""
    if failure.check(CancelledError):
        return Outcome(told="the server stops", stopped=True)
    known = failure.check(EvenniaAIError, DatabaseError)
    why = failure.getErrorMessage()
    _log(wanted, f"not compacted: {why if known else failure.getTraceback()}")
    return Outcome(told=f"nothing was changed: {why}")


def _log(wanted: Wanted, problem: str) -> None:
    logger.log_err(f"evennia_ai: {wanted.conversation}, compacting: {problem}")
