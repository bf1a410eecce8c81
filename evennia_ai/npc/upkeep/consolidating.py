"""Consolidation: in idle time, a model notes what the NPC should remember of a conversation.

The kind of work in `npc/jobs/kinds/observe.py` asks the model. This module judges each observation
by the rules for memories. The allowed ones are stored in one transaction with the record of the
result. Without a model, the NPC learns nothing. Once per game day, with or without a model, faded
memories are dropped and duplicates merged.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from django.db import DatabaseError
from evennia.utils import logger
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from evennia_ai.engine.errors import EvenniaAIError, ReplayError, StaleError
from evennia_ai.engine.history.compaction.extract import clean_name
from evennia_ai.engine.history.compaction.planning import Breaker
from evennia_ai.engine.history.projection import record_of
from evennia_ai.engine.history.records import speaker_known_in
from evennia_ai.engine.memory.memories import OF_NPC, Learnt, Memory, MemorySet, base_score
from evennia_ai.engine.memory.recalling import MemorySettings
from evennia_ai.engine.prompt.messages import Message
from evennia_ai.npc.background.applying import Ending, GameKind
from evennia_ai.npc.background.in_process import InThread, done_here
from evennia_ai.npc.background.work import Work
from evennia_ai.npc.inputs.facts import hours_now
from evennia_ai.npc.jobs.job import Job
from evennia_ai.npc.jobs.kinds.forms import SentRequest, form_to_json, read_form
from evennia_ai.npc.jobs.kinds.observe import (
    OBSERVE,
    ObserveGiven,
    ObserveMade,
    RawObservation,
    place_of,
    said_since,
)
from evennia_ai.npc.model_calls.calls import ModelCalls
from evennia_ai.npc.upkeep.conversation_jobs import job_about
from evennia_ai.npc.upkeep.remembering import THE_NPC, judge_memory, keep_memory
from evennia_ai.services.llm.profiles import SUMMARISER
from evennia_ai.services.settings.game import Conf
from evennia_ai.store import memories
from evennia_ai.store.core.snapshots import one_transaction
from evennia_ai.store.history import conversations, model_requests, turns
from evennia_ai.store.history.model_requests import Consolidated, ModelRequest, Observed
from evennia_ai.store.history.record_rows import ConversationRef
from evennia_ai.store.history.segments import head_of, refuse_moved
from evennia_ai.store.history.windows import windows

MOST_TIDIED: Final = 4096
_DAY_HOURS: Final = 24.0
_NO_LIMITS: Final[Mapping[str, float]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Observed:
    """A conversation, with the messages that a memory job gave to the model."""

    where: ConversationRef
    given: ObserveGiven
    messages: Sequence[Message]

    @property
    def people(self) -> dict[str, str]:
        """Return the references of the speakers, by the case-folded name in the transcript.

        A name that several speakers had has the value "". That occurs only in old records, whose
        names have no marks.
        """
        found: dict[str, str] = {}
        for record in map(record_of, self.messages):
            speaker = speaker_known_in(record) if record is not None else ""
            if record is not None and speaker and record.name:
                name = clean_name(record.name).casefold()
                found[name] = speaker if found.get(name, speaker) == speaker else ""
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _JudgedObservation:
    """An observation in the form of a memory, or the reason why it must not become one."""

    refusal: str = ""
    text: str = ""
    about: str = ""
    importance: int = 0
    hours: float = 0.0
    learnt: Learnt = "aloud"
    place_ref: str = ""
    scene: str = ""

    def memory(self, given: ObserveGiven) -> Memory:
        """Return the memory that the observation becomes."""
        return Memory(
            id=memories.NEW,
            text=self.text,
            about=self.about,
            importance=self.importance,
            created_at=self.hours,
            recalled_at=self.hours,
            learnt=self.learnt,
            place_ref=self.place_ref,
            turn=given.turn,
            author=OF_NPC,
            scene=self.scene,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """The result of a memory job, with a decision for each observation: store it or refuse it."""

    made: ObserveMade
    observations: tuple[_JudgedObservation, ...]

    @property
    def recorded(self) -> tuple[str, ...]:
        return self.made.recorded


class Consolidator:
    """Lets NPCs learn from their conversations, and drops memories that have faded."""

    name = OBSERVE.name

    def __init__(self, conf: Conf, calls: ModelCalls, *, in_thread: InThread, work: Work) -> None:
        self._settings: Final = conf.memory
        self._calls: Final = calls
        self._in_thread: Final = in_thread
        self._work: Final = work
        # how many failures open the breaker, and for how long
        self._rules: Final = conf.compaction.rules
        # The game hours of the last tidying by NPC, for the most recent NPCs only.
        self._tidied: OrderedDict[str, float] = OrderedDict()

    def is_due(self, where: ConversationRef) -> bool:
        """True if enough was said since the last memory job to ask a model again."""
        after = self._settings.after_messages
        if not (self._settings.enabled and after) or len(windows(where.id).history) < after:
            return False
        if self._calls.models.ready(SUMMARISER) is None:
            return False
        known = model_requests.consolidated(where.id)
        if known.breaker.is_open(turns.next_number(where.npc_ref), rules=self._rules):
            return False
        return len(said_since(windows(where.id).history, known.upto, most=after)) >= after

    def consolidate(
        self, where: ConversationRef, *, npc_name: str, npc_limits: Mapping[str, float]
    ) -> "Deferred[str]":
        """Let the NPC learn from a conversation. Return the result in words.

        The Deferred never fails.

        Args:
            npc_limits: The limits of this NPC for model calls.
        """
        done = Deferred.fromCoroutine(self._consolidate_now(where, npc_name, npc_limits))
        return done.addErrback(partial(_log_given_up, where))

    def job_of(
        self, where: ConversationRef, *, npc_name: str, npc_limits: Mapping[str, float] = _NO_LIMITS
    ) -> Job:
        """Return the memory job for what was said since the last memory job."""
        before = model_requests.consolidated(where.id)
        given = ObserveGiven(
            head=head_of(where),
            cut=windows(where.id).cut,
            npc_ref=where.npc_ref,
            npc_name=clean_name(npc_name),
            upto=before.upto,
            failures=before.breaker.failures,
            opened_at=before.breaker.opened_at,
            turn=turns.next_number(where.npc_ref) - 1,
            most=self._settings.most_observations,
        )
        now = self._calls.clock.seconds()
        return job_about(given, kind=OBSERVE.name, npc_limits=npc_limits, now=now)

    def prepare(self, job: Job, body: Mapping[str, Any]) -> dict[str, Any]:
        """Judge the observations. Return a `_Judged` as JSON.

        This runs in the reactor's thread, because it uses objects of the game.
        """
        given = read_form(ObserveGiven, job.given, where=job.idempotency)
        made = read_form(ObserveMade, body, where=job.idempotency)
        where = conversations.conversation_by_number(given.head.conversation)
        new = said_since(windows(where.id).history, given.upto)
        messages = [message for message in new if place_of(message) <= made.upto]
        observed = _Observed(where=where, given=given, messages=messages)
        found = [
            _judge_observation(observed, one, rules=self._settings) for one in made.observations
        ]
        return form_to_json(_Judged(made=made, observations=tuple(found)))

    def apply(self, job: Job, body: Mapping[str, Any]) -> str:
        """Store the allowed observations and the model's requests, or nothing. Describe the result.

        Raises:
            StaleError: The conversation is in another segment, or another memory job has read it.
            HistoryConflictError: Another process wrote at the same moment; try again.
        """
        given = read_form(ObserveGiven, job.given, where=job.idempotency)
        judged = read_form(_Judged, body, where=job.idempotency)
        made, where = judged.made, conversations.conversation_by_number(given.head.conversation)
        refuse_moved(where, given.head)
        before = Breaker(failures=given.failures, opened_at=given.opened_at)
        if model_requests.consolidated(where.id) != Consolidated(upto=given.upto, breaker=before):
            raise StaleError(f"{where} was observed meanwhile")
        if made.nothing:
            return made.nothing
        with one_transaction(f"learning from {where}"):
            later = made.requests[len(judged.recorded) :]
            asked = [*judged.recorded, *(commit_request(job, one).record.place for one in later)]
            observed = (
                self._failure_result(where, given, made)
                if made.failed
                else self._store_allowed(given, judged)
            )
            model_requests.commit_observation(where, observed, asked=asked[-1] if asked else None)
        return f"nothing was learnt: {made.failed}" if made.failed else observed.outcome

    def ended(self, job: Job, ending: Ending, reason: str) -> None:
        """Do nothing: the next turn checks again whether enough was said."""

    @property
    def kind(self) -> GameKind:
        """Return this kind of work: what workers do for it, and what the game does."""
        return GameKind(does=OBSERVE, applies=self, records=commit_request, prepares=self.prepare)

    def tidy(self, npc_ref: str) -> None:
        """Drop faded memories and merge duplicates, once per game day."""
        now = hours_now()
        is_early = now - self._tidied.get(npc_ref, -_DAY_HOURS) < _DAY_HOURS
        if is_early or not self._settings.enabled:
            return
        self._tidied[npc_ref] = now
        self._tidied.move_to_end(npc_ref)
        if len(self._tidied) > MOST_TIDIED:
            self._tidied.popitem(last=False)
        held = memories.held_by(npc_ref)
        for first, others in _find_duplicates(held):
            memories.merge_memories(npc_ref, first, others, by=THE_NPC)
        if gone := self._faded_memories(memories.held_by(npc_ref), now):
            memories.fade_memories(npc_ref, (memory.id for memory in gone), by=THE_NPC)
            logger.log_info(f"evennia_ai: NPC {npc_ref}: {len(gone)} memories faded")

    def _faded_memories(self, held: MemorySet, now: float) -> list[Memory]:
        settings = self._settings
        oldest = now - settings.forget_days * _DAY_HOURS
        return [
            memory
            for memory in held.memories
            if not memory.is_by_builder
            and memory.recalled_at < oldest
            and base_score(memory, hours=now) * 100 < settings.floor_percent
        ]

    async def _consolidate_now(
        self, where: ConversationRef, npc_name: str, npc_limits: Mapping[str, float]
    ) -> str:
        refusal = self._calls.limits.refusal(npc_ref=where.npc_ref, npc_limits=npc_limits)
        if refusal is not None:
            return refusal.told
        job = self.job_of(where, npc_name=npc_name, npc_limits=npc_limits)
        if self._work.in_workers:
            self._work.submit(job)
            return "a worker was asked to do it"
        return str(await done_here(self.kind, job, self._calls, self._in_thread))

    def _failure_result(
        self, where: ConversationRef, given: ObserveGiven, made: ObserveMade
    ) -> Observed:
        """Return what is recorded of a useless answer.

        After some failures in a row, the model is not asked for a while.
        """
        before = Breaker(failures=given.failures, opened_at=given.opened_at)
        breaker = before.after_failure(given.turn + 1, rules=self._rules)
        _log(where, f"{made.failed} ({breaker.failures} in a row)")
        state = Consolidated(upto=given.upto, breaker=breaker)
        return Observed(outcome=f"failed: {made.failed}", reply=made.reply, state=state)

    def _store_allowed(self, given: ObserveGiven, judged: "_Judged") -> Observed:
        """Store the allowed observations. Return what is recorded of the result."""
        made, npc_ref = judged.made, given.npc_ref
        allowed = [one.memory(given) for one in judged.observations if not one.refusal]
        new = [keep_memory(npc_ref, one, by=THE_NPC, most=self._settings.kept) for one in allowed]
        refusals = [one.refusal for one in judged.observations if one.refusal]
        told = f"{len(new)} remembered, {len(refusals)} refused"
        if refusals:
            told += f": {'; '.join(dict.fromkeys(refusals))}"
        return Observed(
            outcome=told,
            reply=made.reply,
            model=made.requests[-1].model if made.requests else "",
            memories=tuple(one.memory.origin for one in new if one.memory is not None),
            refused=len(refusals),
            state=Consolidated(upto=made.upto, breaker=Breaker()),
        )


def commit_request(job: Job, request: SentRequest) -> ModelRequest:
    """Commit a request for observations, before it is sent or together with its reply.

    Raises:
        HistoryConflictError: The conversation is in another segment, or may have been erased.
        StoreError: Nothing was committed for another reason, so no model may be asked.
    """
    given = read_form(ObserveGiven, job.given, where=job.idempotency)
    return model_requests.ask_to_observe(
        conversations.conversation_by_number(given.head.conversation),
        [one.message for one in request.messages],
        model=request.model,
        segment=given.head.segment,
        schema=request.schema,
    )


def _judge_observation(
    observed: _Observed, one: RawObservation, *, rules: MemorySettings
) -> _JudgedObservation:
    """Return the memory that an observation becomes, or why it must not become one."""
    about, given = "", observed.given
    if one.about.strip():
        about = observed.people.get(clean_name(one.about).casefold(), "")
        if clean_name(one.about).casefold() == given.npc_name.casefold():
            return _JudgedObservation(refusal="it is about the NPC itself")
        if not about:
            why = "it is about somebody who did not speak, or whose name several people have"
            return _JudgedObservation(refusal=why)
    new = judge_memory(
        given.npc_ref,
        one.text,
        importance=one.importance,
        about=about,
        where=observed.where,
        source=given.turn,
        rules=rules,
        lines=observed.messages,
    )
    if isinstance(new, str):
        return _JudgedObservation(refusal=new)
    return _JudgedObservation(
        text=new.text,
        about=new.about,
        importance=new.importance,
        hours=new.created_at,
        learnt=new.learnt,
        place_ref=new.place_ref,
        scene=new.scene,
    )


def _find_duplicates(held: MemorySet) -> list[tuple[Memory, list[Memory]]]:
    """Return each memory that has duplicates, together with its later duplicates."""
    groups: dict[Any, list[Memory]] = {}
    for memory in held.memories:
        groups.setdefault((memory.about, memory.learnt, memory.wording), []).append(memory)
    return [(first, others) for first, *others in groups.values() if others]


def _log_given_up(where: ConversationRef, failure: Failure) -> str:
    """Log why nothing was learnt, and return that in words. A bug is logged with its traceback."""
    if failure.check(CancelledError):
        return "the server stops"
    known = failure.check(EvenniaAIError, ReplayError, DatabaseError)
    why = failure.getErrorMessage()
    _log(where, why if known else failure.getTraceback())
    return f"nothing was learnt: {why}"


def _log(where: ConversationRef, problem: str) -> None:
    logger.log_err(f"evennia_ai: learning from {where}: {problem}")
