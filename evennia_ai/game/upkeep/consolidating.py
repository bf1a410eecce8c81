"""Consolidating: in idle time a model notes what of a conversation is worth remembering.

A model of the role `summariser` is asked through the same queue, limits and breaker as for replies,
with messages that were committed before. Each of its observations has to pass what a memory of the
NPC's own has to pass. Without a model nothing is learnt; what fades and what says the same twice is
tidied up all the same, once a day of the game.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from django.db import DatabaseError
from evennia.utils import logger
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from evennia_ai.errors import EvenniaAIError, HistoryConflictError, ModelError, ReplayError
from evennia_ai.game.inputs.facts import hours_now
from evennia_ai.game.models.calls import Counting
from evennia_ai.game.models.clients import Access, Models
from evennia_ai.game.models.limits import CallKey
from evennia_ai.game.upkeep.remembering import remember
from evennia_ai.history.compaction.extract import a_name
from evennia_ai.history.compaction.planning import Breaker
from evennia_ai.history.projection import record_of
from evennia_ai.history.records import Record
from evennia_ai.llm.chat import AnswerSchema, ChatMessage, ChatReply, ChatRequest
from evennia_ai.llm.roles import adapt, chat_messages
from evennia_ai.llm.structured import answered, asking
from evennia_ai.memory.learning import Observation, Observations, observing_request
from evennia_ai.memory.memories import OF_NPC, Held, Memory, standing
from evennia_ai.prompt.messages import Message
from evennia_ai.prompt.tokens import ESTIMATE
from evennia_ai.settings.game import Conf
from evennia_ai.store import memories
from evennia_ai.store.history import model_requests, turns
from evennia_ai.store.history.model_requests import (
    Consolidated,
    ModelRequest,
    Observed,
    Place,
    place_of,
)
from evennia_ai.store.history.record_rows import ConversationRef
from evennia_ai.store.history.windows import windows

ROLE: Final = "summariser"
ANSWER_TOKENS: Final = 800
MOST_REQUEST_TOKENS: Final = 8_000
_DAY_HOURS: Final = 24.0


@dataclass(slots=True, kw_only=True)
class _Work:
    """A conversation that is observed: its new messages, and what was asked about them."""

    where: ConversationRef
    npc_name: str
    segment: int
    messages: Sequence[Message]
    upto: Place
    before: Consolidated
    turn: int
    access: Access
    asked: ModelRequest | None = None
    reply: str = ""

    @property
    def people(self) -> dict[str, str]:
        """Who spoke in it: name as the transcript writes it, in small letters -> reference.

        "" where several bore it, in records from before they were told apart.
        """
        found: dict[str, str] = {}
        for record in map(record_of, self.messages):
            speaker = str(record.meta.get("speaker", "")) if record is not None else ""
            if record is not None and speaker and record.name:
                name = a_name(record.name).casefold()
                found[name] = speaker if found.get(name, speaker) == speaker else ""
        return found


class Consolidator:
    """Has NPCs learn from their conversations, and forget what fades."""

    def __init__(self, conf: Conf, models: Models, *, counting: Counting) -> None:
        self._conf: Final = conf
        self._models: Final = models
        self._counting: Final = counting
        self._rules: Final = conf.compaction.rules  # how often it may fail, and how long it rests
        self._tidied: dict[str, float] = {}  # when, in hours of the game, by NPC

    def is_due(self, where: ConversationRef) -> bool:
        """Whether enough was said since the last time that a model is to be asked."""
        after = self._conf.memory.after_messages
        if not (self._conf.memory.enabled and after) or self._access() is None:
            return False
        known = model_requests.consolidated(where.id)
        if known.breaker.is_open(turns.next_number(where.npc_ref), rules=self._rules):
            return False
        return len(_said_since(where, known.upto, most=after)) >= after

    def consolidate(self, where: ConversationRef, *, npc_name: str) -> "Deferred[str]":
        """Ask for what is to be remembered; what came of it, in words. It never fails."""
        done = Deferred.fromCoroutine(self._consolidated(where, npc_name))
        return done.addErrback(partial(_given_up, where))

    def tidy(self, npc_ref: str) -> None:
        """Once a day of the game, let go what faded and make one of what says the same twice."""
        now = hours_now()
        is_early = now - self._tidied.get(npc_ref, -_DAY_HOURS) < _DAY_HOURS
        if is_early or not self._conf.memory.enabled:
            return
        self._tidied[npc_ref] = now
        held = memories.held_by(npc_ref)
        for kept, others in _doubles(held):
            memories.merge(npc_ref, kept, others, by=OF_NPC)
        if gone := self._faded(memories.held_by(npc_ref), now):
            memories.fade(npc_ref, (memory.id for memory in gone), by=OF_NPC)
            logger.log_info(f"evennia_ai: NPC {npc_ref}: {len(gone)} memories faded")

    def _faded(self, held: Held, now: float) -> list[Memory]:
        settings = self._conf.memory
        oldest = now - settings.forget_days * _DAY_HOURS
        return [
            memory
            for memory in held.memories
            if not memory.is_builders
            and memory.recalled_at < oldest
            and standing(memory, hours=now) * 100 < settings.floor_percent
        ]

    def _access(self) -> Access | None:
        """The first model that can be asked now; a responder without one notes nothing."""
        found = [one for one in self._models.of_role(ROLE) if not one.model.offline]
        ready = (one for one in found if one.breaker is None or one.breaker.admits)
        return next(ready, None)

    async def _consolidated(self, where: ConversationRef, npc_name: str) -> str:
        work = self._work(where, npc_name)
        if work is None:
            return "there is nothing new to learn from"
        refusal = self._counting.limits.refusal(npc_ref=where.npc_ref, player_ref="", npc_limits={})
        if refusal is not None:
            return refusal.told
        try:
            answer = await self._asked(work)
        except ModelError as error:
            return self._failed(work, error)
        return self._kept(work, answer.observations[: self._conf.memory.most_observations])

    def _work(self, where: ConversationRef, npc_name: str) -> _Work | None:
        access, before = self._access(), model_requests.consolidated(where.id)
        new = _said_since(where, before.upto)
        last = record_of(new[-1]) if new else None
        if access is None or last is None:
            return None
        return _Work(
            where=where,
            npc_name=npc_name,
            segment=windows(where.id).end.segment,
            messages=new,
            upto=place_of(last),
            before=before,
            turn=turns.next_number(where.npc_ref) - 1,
            access=access,
        )

    def _asked(self, work: _Work) -> "Deferred[Observations]":
        profile = work.access.profile
        request = observing_request(
            work.messages,
            npc_name=work.npc_name,
            most=self._conf.memory.most_observations,
            counter=ESTIMATE,
            most_tokens=min(MOST_REQUEST_TOKENS, profile.context_tokens - ANSWER_TOKENS),
        )
        messages, schema = asking(
            chat_messages(request), Observations, native=profile.schema == "native"
        )
        return answered(partial(self._ask, work, schema), messages, Observations)

    def _ask(
        self, work: _Work, schema: AnswerSchema | None, messages: tuple[ChatMessage, ...]
    ) -> "Deferred[ChatReply]":
        """Commit the messages, then ask."""
        access = work.access
        work.asked = asked = model_requests.ask_to_observe(
            work.where,
            [Message(role=said.role, content=said.content) for said in messages],
            model=access.model_id or access.name,
            segment=work.segment,
            schema=schema.schema if schema is not None else None,
        )
        request = ChatRequest(
            messages=adapt(chat_messages(asked.messages), profile=access.roles),
            model=access.model_id,
            max_tokens=ANSWER_TOKENS,
            timeout_seconds=access.profile.timeout_seconds,
            sampling=access.profile.sampling,
            schema=schema,
        )
        key = CallKey(npc_ref=work.where.npc_ref, role=ROLE, name="observing")
        answer = self._counting.asked(access, request, key, prompt=asked.messages)
        return answer.addCallback(partial(_noted, work))

    def _failed(self, work: _Work, error: ModelError) -> str:
        """Write down that the model gave nothing of use; after some failures it rests."""
        breaker = work.before.breaker.after_failure(work.turn + 1, rules=self._rules)
        state = replace(work.before, breaker=breaker)
        _refuse_another_segment(work)
        _tell(work, Observed(outcome=f"failed: {error}", reply=work.reply, state=state))
        _log(work.where, f"{error} ({breaker.failures} in a row)")
        return f"nothing was learnt: {error}"

    def _kept(self, work: _Work, found: Sequence[Observation]) -> str:
        """Keep what passes the rules, and write down what came of it."""
        _refuse_another_segment(work)
        made = [_remembered(work, one) for one in found]
        kept = [memory for memory, _ in made if memory is not None]
        refusals = [refusal for memory, refusal in made if memory is None]
        told = f"{len(kept)} remembered, {len(refusals)} refused"
        if refusals:
            told += f": {'; '.join(dict.fromkeys(refusals))}"
        observed = Observed(
            outcome=told,
            reply=work.reply,
            model=work.access.model_id or work.access.name,
            memories=tuple(memory.origin for memory in kept),
            refused=len(refusals),
            state=Consolidated(upto=work.upto, breaker=Breaker()),
        )
        _tell(work, observed)
        return told


def _remembered(work: _Work, one: Observation) -> tuple[Memory | None, str]:
    """The memory that an observation became, or why it became none."""
    about = ""
    if one.about.strip():
        about = work.people.get(a_name(one.about).casefold(), "")
        if one.about.strip().casefold() == work.npc_name.casefold():
            return None, "it is about the NPC itself"
        if not about:
            return None, "it is about somebody who did not speak, or one of several of that name"
    done = remember(
        work.where.npc_ref,
        one.text,
        importance=one.importance,
        about=about,
        where=work.where,
        source=work.turn,
    )
    return done.memory, done.refusal


def _said_since(where: ConversationRef, upto: Place, *, most: int | None = None) -> list[Message]:
    """What was said and done after a record, oldest first; at most the newest `most` of it."""
    history = windows(where.id).history
    found: list[Message] = []
    for index in range(history.stop - 1, history.earlier - 1, -1):
        message = history[index]
        record = record_of(message)
        if not message.counted or record is None:
            continue
        if place_of(record) <= upto or len(found) == most:
            break
        if _is_said(record):
            found.append(message)
    return found[::-1]


def _is_said(record: Record) -> bool:
    """Whether it is what somebody said or did, and no summary of that."""
    return record.kind in ("user", "assistant", "event")


def _doubles(held: Held) -> list[tuple[Memory, list[Memory]]]:
    """Memories that say the same, each with those after it that do."""
    groups: dict[Any, list[Memory]] = {}
    for memory in held.memories:
        groups.setdefault((memory.about, memory.learnt, memory.wording), []).append(memory)
    return [(first, others) for first, *others in groups.values() if others]


def _noted(work: _Work, reply: ChatReply) -> ChatReply:
    work.reply = reply.text
    return reply


def _refuse_another_segment(work: _Work) -> None:
    """HistoryConflictError where the conversation was erased or compacted meanwhile."""
    if windows(work.where.id).end.segment != work.segment:
        raise HistoryConflictError(str(work.where))


def _tell(work: _Work, observed: Observed) -> None:
    model_requests.tell_observed(work.where, observed, asked=work.asked)


def _given_up(where: ConversationRef, failure: Failure) -> str:
    """Nothing was learnt; the log says why, with all there is to say where it is our fault."""
    if failure.check(CancelledError):
        return "the server stops"
    known = failure.check(EvenniaAIError, ReplayError, DatabaseError)
    why = failure.getErrorMessage()
    _log(where, why if known else failure.getTraceback())
    return f"nothing was learnt: {why}"


def _log(where: ConversationRef, problem: str) -> None:
    logger.log_err(f"evennia_ai: {where}, learning from it: {problem}")
