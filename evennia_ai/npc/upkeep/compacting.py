"""Compacting: a history that is nearly full goes on in a new segment, behind a summary.

Before a turn the turn waits for it; in idle time it runs beside the game, one at a time. A kind of
work makes the summary (`npc/jobs/kinds/compact.py`). It is asked for here, and what comes of it is
checked against what the conversation is by then and committed, all of it or nothing. A summary that
is no good changes nothing; before a turn, when room is short, an extract takes its place. The
prompt made afterwards meets the check that every prompt meets.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from django.db import DatabaseError
from evennia.utils import logger
from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.python.failure import Failure

from evennia_ai.engine.actors import Actor
from evennia_ai.engine.errors import (
    EvenniaAIError,
    StaleError,
    ThrashError,
)
from evennia_ai.engine.history.compaction.extract import clean_name
from evennia_ai.engine.history.compaction.planning import (
    Breaker,
    CompactionMoment,
    CompactionSettings,
)
from evennia_ai.engine.history.compaction.summaries import (
    Reply,
    SummaryAttempt,
    attempt_record,
    summary_record,
)
from evennia_ai.engine.history.projection import record_of
from evennia_ai.engine.history.records import Record
from evennia_ai.engine.prompt.prompt import Prompt
from evennia_ai.npc.background.applying import Ending, GameKind
from evennia_ai.npc.background.in_process import InThread, done_here
from evennia_ai.npc.background.work import Work
from evennia_ai.npc.inputs.mind import Mind
from evennia_ai.npc.jobs.job import Job
from evennia_ai.npc.jobs.kinds.compact import (
    COMPACT,
    CompactGiven,
    CompactMade,
    SummaryTry,
)
from evennia_ai.npc.jobs.kinds.forms import SentRequest, read_form
from evennia_ai.npc.model_calls.calls import ModelCalls
from evennia_ai.npc.recording import heard
from evennia_ai.npc.recording.heard import ConversationKey
from evennia_ai.npc.upkeep.conversation_jobs import job_about
from evennia_ai.npc.upkeep.fullness import Fullness, fullness_of
from evennia_ai.services.llm.profiles import SUMMARISER
from evennia_ai.store.core.snapshots import one_transaction
from evennia_ai.store.history import conversations, model_requests, turns
from evennia_ai.store.history.conversations import begin_segment
from evennia_ai.store.history.model_requests import ModelRequest
from evennia_ai.store.history.record_rows import ConversationRef
from evennia_ai.store.history.segments import head_of, refuse_moved
from evennia_ai.store.history.windows import windows


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A compaction that somebody wants.

    `asked_by` is a turn, idle time or a builder's name; `is_pressing`: room is short or somebody
    asked for it, so an extract will do. `unanswered` are records that turns will answer.
    `npc_limits` narrow what a worker may ask for the NPC.
    """

    conversation: ConversationRef
    npc_name: str
    asked_by: str
    is_pressing: bool
    fullness: Fullness
    unanswered: Collection[str] = ()
    npc_limits: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a compaction."""

    told: str
    record: Record | None = None
    """The summary, None where nothing was changed."""
    stopped: bool = False
    """The server stops, and nothing is to be begun any more."""


class Compactor:
    """Compacts the histories of one process, each at most once at a time."""

    def __init__(
        self,
        settings: CompactionSettings,
        calls: ModelCalls,
        *,
        in_thread: InThread,
        work: Work,
    ) -> None:
        self._settings: Final = settings
        self._threads: Final = in_thread
        self._calls: Final = calls
        self._work: Final = work
        self._write: Final = calls.writer.write
        self._is_closed = False
        # Who else waits for the compaction of a conversation that is under way.
        self._waiting: dict[int, list[Deferred[Outcome]]] = {}

    def is_due(self, fullness: Fullness, when: CompactionMoment) -> bool:
        """True if a history is to be compacted now."""
        return self._settings.enabled and fullness.is_due(self._settings.rules, when)

    def compact(self, wanted: Wanted) -> "Deferred[Outcome]":
        """Compact a conversation, or wait for who is at it; never fails.

        What went wrong is logged, and committed where a summary was no good.
        """
        if self._work.in_workers and not wanted.is_pressing:
            asked = Deferred.fromCoroutine(self._asked_of_workers(wanted))
            return asked.addErrback(_given_up, wanted)
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

    def compact_room(self, mind: Mind, *, by: Actor) -> "Deferred[Outcome]":
        """Compact what an NPC remembers of the room it is in, as a builder wants it.

        NotPermittedError: they may not. BudgetError: no prompt can be made, so nobody knows how
        much room there is.
        """
        by.check(f"compacting what {mind.npc.key} remembers")
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
            asked_by=by.name,
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
            await self._write(partial(model_requests.commit_attempt, where, attempt_record(thrash)))
            raise

    def job_of(self, wanted: Wanted) -> Job | Outcome:
        """The work that makes the summary, or why nothing is tried now."""
        where, rules = wanted.conversation, self._settings.rules
        newest, turn = model_requests.newest_attempt(where), turns.next_number(where.npc_ref)
        is_open = newest.breaker.is_open(turn, rules=rules)
        if is_open and (_was_no_use(newest) or not wanted.is_pressing):
            return Outcome(told=self._resting(newest))
        window, fullness = windows(where.id), wanted.fullness
        waiting = (m.record for m in window.history if m.record in wanted.unanswered)
        given = CompactGiven(
            head=head_of(where),
            cut=window.cut,
            npc_ref=where.npc_ref,
            npc_name=clean_name(wanted.npc_name),
            asked_by=wanted.asked_by,
            is_pressing=wanted.is_pressing,
            by_model=self._asks_a_model and not is_open,
            has_model=self._asks_a_model,
            until=next(waiting, None) or "",
            attempt=newest.place,
            turn=turn,
            counter=fullness.counter.name,
            tokens=fullness.tokens,
            limit_tokens=fullness.limit_tokens,
            rules=rules,
        )
        now = self._calls.clock.seconds()
        return job_about(given, kind=COMPACT.name, npc_limits=wanted.npc_limits, now=now)

    @property
    def _asks_a_model(self) -> bool:
        """True if there is a model to ask, and the game wants it asked."""
        return self._settings.by == "model" and bool(self._calls.models.thinking(SUMMARISER))

    async def _compacted(self, wanted: Wanted) -> Outcome:
        job = self.job_of(wanted)
        if isinstance(job, Outcome):
            return job
        outcome = await done_here(KIND, job, self._calls, self._in_thread)
        assert isinstance(outcome, Outcome)  # it is what `apply` returns
        return outcome

    async def _asked_of_workers(self, wanted: Wanted) -> Outcome:
        """Ask workers for it; nobody waits for them."""
        job = self.job_of(wanted)
        if isinstance(job, Outcome):
            return job
        self._work.submit(job)
        return Outcome(told="a worker is asked for it")

    def _in_thread(self, work: Callable[..., Any], *values: Any) -> "Deferred[Any]":
        """What `work` makes of values in another thread; CancelledError after a stop."""

        def unless_closed(made: Any) -> Any:
            if self._is_closed:
                raise CancelledError("the server stops")
            return made

        return self._threads(work, *values).addCallback(unless_closed)

    def _resting(self, newest: SummaryAttempt) -> str:
        until = (newest.breaker.opened_at or 0) + self._settings.rules.rest_turns
        return (
            f"nothing is tried before turn {until}, after {newest.breaker.failures} failures in a"
            f" row; the last one: {newest.reason}"
        )


def _was_no_use(newest: SummaryAttempt) -> bool:
    """True if not even an extract was of use."""
    by_extract = (newest.result, newest.by) == ("refused", "extract")
    return newest.result == "thrash" or by_extract


def commit_request(job: Job, request: SentRequest) -> ModelRequest:
    """Commit what a model is asked for a summary, before it is asked or with what came of it.

    HistoryConflictError: the conversation has left the segment since, and may have been erased.
    StoreError: another reason. Nothing was committed, so ask no model.
    """
    given = read_form(CompactGiven, job.given, where=job.idempotency)
    return model_requests.ask_for_summary(
        conversations.conversation_by_number(given.head.conversation),
        [one.message for one in request.messages],
        asked_by=given.asked_by,
        model=request.model,
        messages=request.about,
        segment=given.head.segment,
    )


def apply(job: Job, body: Mapping[str, Any]) -> Outcome:
    """Commit what came of the work: its requests, its tries and the new segment, or nothing.

    StaleError: the conversation has gone on in another segment, or another try was made.
    HistoryConflictError: another process wrote at the same moment; do it again.
    """
    given = read_form(CompactGiven, job.given, where=job.idempotency)
    made = read_form(CompactMade, body, where=job.idempotency)
    where = conversations.conversation_by_number(given.head.conversation)
    refuse_moved(where, given.head)
    newest = model_requests.newest_attempt(where)
    if newest.place != given.attempt:
        raise StaleError(f"another try to compact {where} was made")
    if not made.tries:
        return Outcome(told=made.nothing)
    attempts = _attempts(given, made, newest.breaker)
    with one_transaction(f"compacting {where}"):
        later = made.requests[len(made.recorded) :]
        asked = [*made.recorded, *(commit_request(job, one).record.place for one in later)]
        pairs = zip(attempts, made.tries, strict=True)
        told = [attempt_record(one, reply=_reply(tried, asked)) for one, tried in pairs]
        conversations.append_records(where, told)
        record = _begun(where, given, made) if made.summary else None
    for problem in (*made.warnings, *(_problem(one) for one in attempts if one.reason)):
        _log(where, problem)
    told_of = made.tries[-1].reason if record is None else _replaced(made)
    return Outcome(told=told_of, record=record)


def _attempts(given: CompactGiven, made: CompactMade, breaker: Breaker) -> list[SummaryAttempt]:
    """The tries as their records tell them, each with the breaker after it."""
    found = []
    for tried in made.tries:
        if tried.result != "accepted":
            breaker = breaker.after_failure(given.turn, rules=given.rules)
        elif tried.by == "model" or not given.has_model:
            breaker = breaker.after_success()
        attempt = SummaryAttempt(
            result=tried.result,
            asked_by=given.asked_by,
            by=tried.by,
            reason=tried.reason,
            breaker=breaker,
        )
        found.append(attempt)
    return found


def _reply(tried: SummaryTry, asked: Sequence[str]) -> Reply | None:
    """What a model said in this try, None for nothing; `asked` are the places of the requests."""
    if tried.request is None:
        return None
    return Reply(
        asked=asked[tried.request],
        text=tried.reply,
        model=tried.model,
        tokens=tried.tokens,
    )


def _begun(where: ConversationRef, given: CompactGiven, made: CompactMade) -> Record:
    """Begin the segment behind the last summarised record; what was said since is kept."""
    now = windows(where.id).history
    places = ((at, record_of(now[at])) for at in range(now.earlier, now.stop))
    found = (at for at, record in places if record is not None and record.place == made.last)
    at = next(found, None)
    if at is None:
        raise StaleError(f"record {made.last} of {where} is history no more")
    new = summary_record(
        made.summary,
        by=made.tries[-1].by,
        asked_by=given.asked_by,
        messages=made.messages,
    )
    return begin_segment(where, new, summarised=now, first_kept=at + 1)


def _replaced(made: CompactMade) -> str:
    how = "an extract" if made.tries[-1].by == "extract" else "a summary of the model"
    return (
        f"{made.messages} messages of {made.messages_tokens} tokens were replaced by {how};"
        f" the {made.kept} after them stay as they are"
    )


def _problem(attempt: SummaryAttempt) -> str:
    return f"{attempt.reason} ({attempt.breaker.failures} in a row)"


class _Applies:
    """The game's half of this kind of work."""

    name = COMPACT.name

    def apply(self, job: Job, body: Mapping[str, Any]) -> Outcome:
        """Commit what came of it."""
        return apply(job, body)

    def ended(self, job: Job, ending: Ending, reason: str) -> None:
        """Nobody waits for what workers do; the next turn looks anew whether it is due."""


KIND: Final = GameKind(does=COMPACT, applies=_Applies(), records=commit_request)


def _given_up(failure: Failure, wanted: Wanted) -> Outcome:
    """Nothing was changed; the log says why, with all there is to say where it is our fault."""
    if failure.check(CancelledError):
        return Outcome(told="the server stops", stopped=True)
    known = failure.check(EvenniaAIError, DatabaseError)
    why = failure.getErrorMessage()
    _log(wanted.conversation, f"not compacted: {why if known else failure.getTraceback()}")
    return Outcome(told=f"nothing was changed: {why}")


def _log(where: ConversationRef, problem: str) -> None:
    logger.log_err(f"evennia_ai: {where}, compacting: {problem}")
