"""Compaction: replace the older part of a nearly full history by a summary, in a new segment.

A turn whose prompt is nearly full waits for a compaction. In idle time, one compaction at a time
runs in the background. The kind of work in `npc/jobs/kinds/compact.py` makes the summary. This
module requests it, checks the result against the current conversation, and commits either all of it
or nothing. A bad summary changes nothing; if the turn needs room, an extract of the history is used
instead. The next prompt is checked for room like any other prompt.

`Fullness` does not count dialogue examples. They are dropped in favour of the history anyway, so a
compaction would not make room for them.
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
    CompactionRules,
    CompactionSettings,
    is_due,
    refuse_thrash,
    tokens_from_cut,
)
from evennia_ai.engine.history.compaction.summaries import (
    Reply,
    SummaryAttempt,
    attempt_record,
    summary_record,
)
from evennia_ai.engine.history.projection import record_of
from evennia_ai.engine.history.records import Record
from evennia_ai.engine.prompt.fragments import Tier
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.prompt import Prompt
from evennia_ai.engine.prompt.tokens import TokenCounter
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
from evennia_ai.services.llm.profiles import SUMMARISER
from evennia_ai.store.core.snapshots import one_transaction
from evennia_ai.store.history import conversations, model_requests, turns
from evennia_ai.store.history.conversations import begin_segment
from evennia_ai.store.history.model_requests import ModelRequest
from evennia_ai.store.history.record_rows import ConversationRef
from evennia_ai.store.history.segments import head_of, refuse_moved
from evennia_ai.store.history.windows import windows


@dataclass(frozen=True, slots=True, kw_only=True)
class Fullness:
    """How full a prompt is: the tokens of its history, and those of everything else in it."""

    history_tokens: int
    other_tokens: int
    limit_tokens: int
    counter: TokenCounter

    @property
    def tokens(self) -> int:
        """Return how many tokens a prompt with the whole history has."""
        return self.history_tokens + self.other_tokens

    def is_due(self, rules: CompactionRules, when: CompactionMoment) -> bool:
        """True if the history should be compacted."""
        return is_due(
            self.history_tokens,
            limit_tokens=self.limit_tokens,
            rules=rules,
            when=when,
            other_tokens=self.other_tokens,
        )

    def refuse_thrash(self, rules: CompactionRules) -> None:
        """Check that a history that was just compacted has enough room.

        Raises:
            ThrashError: Another compaction would be due at once.
        """
        refuse_thrash(
            self.history_tokens,
            limit_tokens=self.limit_tokens,
            rules=rules,
            other_tokens=self.other_tokens,
        )


def fullness_of(prompt: Prompt, *, cut: int) -> Fullness:
    """Return how full a prompt is.

    Args:
        cut: The index of the oldest history message in the previous prompt.
    """
    return _fullness(prompt, prompt.history, cut=cut, other_tokens=_tokens_outside_history(prompt))


def fullness_after(prompt: Prompt, history: History, *, cut: int) -> Fullness:
    """Estimate how full the next prompt will be: `prompt` with the history as it is now.

    The event that `prompt` answered is now part of the history.
    """
    answered = sum(tokens for _, tokens in prompt.fixed)
    other_tokens = _tokens_outside_history(prompt) - answered
    return _fullness(prompt, history, cut=cut, other_tokens=other_tokens)


def _tokens_outside_history(prompt: Prompt) -> int:
    yielding = sum(p.tokens for p in prompt.fragments if p.claim.tier is Tier.YIELDING)
    return prompt.tokens - prompt.fitted.history_tokens - yielding


def _fullness(prompt: Prompt, history: History, *, cut: int, other_tokens: int) -> Fullness:
    return Fullness(
        history_tokens=tokens_from_cut(cut, history, prompt.counter),
        other_tokens=other_tokens,
        limit_tokens=prompt.limit_tokens,
        counter=prompt.counter,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A request for a compaction.

    `asked_by` is a turn, "idle time" or the name of a builder. `is_pressing` is True if room is
    needed or a builder asked, so an extract is better than nothing. `unanswered` has the records
    that turns will still answer. `npc_limits` are the NPC's own limits for calls of workers.
    """

    conversation: ConversationRef
    npc_name: str
    asked_by: str
    is_pressing: bool
    fullness: Fullness
    unanswered: Collection[str] = ()
    npc_limits: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a compaction. `told` describes it in words."""

    told: str
    record: Record | None = None
    """The record of the summary, None if nothing was changed."""
    stopped: bool = False
    """True if the server stops, so that no other work may begin."""


class Compactor:
    """Compacts histories, each conversation at most once at a time."""

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
        # Has a key for each conversation whose compaction is running. The value has the Deferreds
        # of the later callers, who wait for the same compaction.
        self._waiting: dict[int, list[Deferred[Outcome]]] = {}

    def is_due(self, fullness: Fullness, when: CompactionMoment) -> bool:
        """True if a history is so full that it should be compacted now."""
        return self._settings.enabled and fullness.is_due(self._settings.rules, when)

    def compact(self, wanted: Wanted) -> "Deferred[Outcome]":
        """Compact a conversation, or wait for the compaction of it that is running.

        The Deferred never fails. Errors are logged, and bad summaries are committed as attempts.
        """
        if self._work.in_workers and not wanted.is_pressing:
            asked = Deferred.fromCoroutine(self._give_to_workers(wanted))
            return asked.addErrback(_log_given_up, wanted)
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

        done = Deferred.fromCoroutine(self._compact_now(wanted))
        return done.addErrback(_log_given_up, wanted).addCallback(ended)

    def compact_room(self, mind: Mind, *, by: Actor) -> "Deferred[Outcome]":
        """Compact the history of an NPC's room for a builder.

        Raises:
            NotPermittedError: The builder has no permission to do so.
            BudgetError: No prompt can be composed, so the available room is unknown.
        """
        by.check(f"compacting what {mind.npc.key} remembers")
        if mind.is_busy:
            return succeed(Outcome(told="the NPC is answering somebody now; try again in a moment"))
        room = mind.npc.location
        key = ConversationKey(kind="room", place_ref=str(room.id) if room else "nowhere")
        where = heard.find_conversation(mind.ref, key)
        if where is None:
            return succeed(Outcome(told="the NPC has no conversation in this room"))
        wanted = Wanted(
            conversation=where,
            npc_name=mind.view().char_name,
            asked_by=by.name,
            is_pressing=True,
            fullness=fullness_of(mind.preview(), cut=windows(where.id).cut),
        )
        return self.compact(wanted)

    def close(self) -> None:
        """Commit nothing any more, even if threads still return results."""
        self._is_closed = True

    async def look_again(self, prompt: Prompt, wanted: Wanted) -> None:
        """Check that the first prompt after a compaction has enough room.

        Raises:
            ThrashError: Another compaction would be due at once, so no model may be asked. The
                failure is committed, and no compaction is tried for some turns.
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
        """Return the job that makes the summary, or an outcome that says why none is made now."""
        where, rules = wanted.conversation, self._settings.rules
        newest, turn = model_requests.newest_attempt(where), turns.next_number(where.npc_ref)
        is_open = newest.breaker.is_open(turn, rules=rules)
        if is_open and (_was_useless(newest) or not wanted.is_pressing):
            return Outcome(told=self._rest_reason(newest))
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
        """True if the settings want a model to write summaries, and there is such a model."""
        return self._settings.by == "model" and bool(self._calls.models.thinking(SUMMARISER))

    async def _compact_now(self, wanted: Wanted) -> Outcome:
        job = self.job_of(wanted)
        if isinstance(job, Outcome):
            return job
        outcome = await done_here(KIND, job, self._calls, self._in_thread)
        assert isinstance(outcome, Outcome)  # `apply_compaction` returns it
        return outcome

    async def _give_to_workers(self, wanted: Wanted) -> Outcome:
        """Give the job to workers, and do not wait for them."""
        job = self.job_of(wanted)
        if isinstance(job, Outcome):
            return job
        self._work.submit(job)
        return Outcome(told="a worker was asked to do it")

    def _in_thread(self, work: Callable[..., Any], *values: Any) -> "Deferred[Any]":
        """Call `work` in a thread and return its result.

        Raises:
            CancelledError: The server stopped meanwhile.
        """

        def unless_closed(made: Any) -> Any:
            if self._is_closed:
                raise CancelledError("the server stops")
            return made

        return self._threads(work, *values).addCallback(unless_closed)

    def _rest_reason(self, newest: SummaryAttempt) -> str:
        until = (newest.breaker.opened_at or 0) + self._settings.rules.rest_turns
        return (
            f"no compaction is tried before turn {until}, after {newest.breaker.failures}"
            " failures in a"
            f" row; the last failure: {newest.reason}"
        )


def _was_useless(newest: SummaryAttempt) -> bool:
    """True if the last attempt failed even with an extract, or did not make enough room."""
    by_extract = (newest.result, newest.by) == ("refused", "extract")
    return newest.result == "thrash" or by_extract


def commit_request(job: Job, request: SentRequest) -> ModelRequest:
    """Commit a request for a summary, before it is sent or together with its reply.

    Raises:
        HistoryConflictError: The conversation is in another segment, or may have been erased.
        StoreError: Nothing was committed for another reason, so no model may be asked.
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


def apply_compaction(job: Job, body: Mapping[str, Any]) -> Outcome:
    """Commit the requests, the attempts and the new segment, or nothing at all.

    Raises:
        StaleError: The conversation is in another segment, or another attempt was made meanwhile.
        HistoryConflictError: Another process wrote at the same moment; try again.
    """
    given = read_form(CompactGiven, job.given, where=job.idempotency)
    made = read_form(CompactMade, body, where=job.idempotency)
    where = conversations.conversation_by_number(given.head.conversation)
    refuse_moved(where, given.head)
    newest = model_requests.newest_attempt(where)
    if newest.place != given.attempt:
        raise StaleError(f"another attempt to compact {where} was made meanwhile")
    if not made.tries:
        return Outcome(told=made.nothing)
    attempts = _attempts(given, made, newest.breaker)
    with one_transaction(f"compacting {where}"):
        later = made.requests[len(made.recorded) :]
        asked = [*made.recorded, *(commit_request(job, one).record.place for one in later)]
        pairs = zip(attempts, made.tries, strict=True)
        told = [attempt_record(one, reply=_reply(tried, asked)) for one, tried in pairs]
        conversations.append_records(where, told)
        record = _begin_new_segment(where, given, made) if made.summary else None
    for problem in (*made.warnings, *(_attempt_problem(one) for one in attempts if one.reason)):
        _log(where, problem)
    told_of = made.tries[-1].reason if record is None else _describe_summary(made)
    return Outcome(told=told_of, record=record)


def _attempts(given: CompactGiven, made: CompactMade, breaker: Breaker) -> list[SummaryAttempt]:
    """Return the attempts to summarise, each with the state of the circuit breaker after it."""
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
    """Return the model's reply in one attempt, None if no model was asked.

    Args:
        asked: The places of the recorded requests.
    """
    if tried.request is None:
        return None
    return Reply(
        asked=asked[tried.request],
        text=tried.reply,
        model=tried.model,
        tokens=tried.tokens,
    )


def _begin_new_segment(where: ConversationRef, given: CompactGiven, made: CompactMade) -> Record:
    """Start the new segment with the summary. Records after the last summarised one are kept."""
    now = windows(where.id).history
    places = ((at, record_of(now[at])) for at in range(now.earlier, now.stop))
    found = (at for at, record in places if record is not None and record.place == made.last)
    at = next(found, None)
    if at is None:
        raise StaleError(f"record {made.last} of {where} is no longer in the history")
    new = summary_record(
        made.summary,
        by=made.tries[-1].by,
        asked_by=given.asked_by,
        messages=made.messages,
    )
    return begin_segment(where, new, summarised=now, first_kept=at + 1)


def _describe_summary(made: CompactMade) -> str:
    how = "an extract" if made.tries[-1].by == "extract" else "a summary of the model"
    return (
        f"{made.messages} messages of {made.messages_tokens} tokens were replaced by {how};"
        f" the {made.kept} after them stay as they are"
    )


def _attempt_problem(attempt: SummaryAttempt) -> str:
    return f"{attempt.reason} ({attempt.breaker.failures} in a row)"


class _Applies:
    """Applies the results of compaction jobs in the game."""

    name = COMPACT.name

    def apply(self, job: Job, body: Mapping[str, Any]) -> Outcome:
        """Commit the result of a job."""
        return apply_compaction(job, body)

    def ended(self, job: Job, ending: Ending, reason: str) -> None:
        """Do nothing: the next turn checks again whether a compaction is due."""


KIND: Final = GameKind(does=COMPACT, applies=_Applies(), records=commit_request)


def _log_given_up(failure: Failure, wanted: Wanted) -> Outcome:
    """Log why nothing was changed, and return that as the outcome. A bug is logged with its
    traceback.
    """
    if failure.check(CancelledError):
        return Outcome(told="the server stops", stopped=True)
    known = failure.check(EvenniaAIError, DatabaseError)
    why = failure.getErrorMessage()
    _log(
        wanted.conversation,
        f"the history was not compacted: {why if known else failure.getTraceback()}",
    )
    return Outcome(told=f"nothing was changed: {why}")


def _log(where: ConversationRef, problem: str) -> None:
    logger.log_err(f"evennia_ai: compacting {where}: {problem}")
