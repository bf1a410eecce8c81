"""Consolidating: in idle time a model notes what of a conversation is worth remembering.

A model of the role `summariser` is asked through the same queue, limits and breaker as for replies,
with messages that were committed before. Each of its observations has to pass what a memory of the
NPC's own has to pass. Without a model nothing is learnt; what fades and what says the same twice is
tidied up all the same, once a day of the game.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from django.db import DatabaseError
from evennia.utils import logger
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from evennia_ai.endpoints import Access
from evennia_ai.errors import EvenniaAIError, ModelError, ReplayError
from evennia_ai.game.inputs.facts import hours_now
from evennia_ai.game.models.calls import ModelCalls
from evennia_ai.game.models.limits import CallKey
from evennia_ai.game.upkeep.remembering import remember
from evennia_ai.history.compaction.extract import a_name
from evennia_ai.history.compaction.planning import Breaker
from evennia_ai.history.projection import record_of
from evennia_ai.history.records import RecordKind
from evennia_ai.llm.chat import AnswerSchema, ChatMessage, ChatReply
from evennia_ai.llm.roles import chat_messages
from evennia_ai.llm.structured import answered, asking
from evennia_ai.memory.learning import Observation, Observations, observing_request
from evennia_ai.memory.memories import OF_NPC, Held, Memory, standing
from evennia_ai.memory.recalling import MemorySettings
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
)
from evennia_ai.store.history.record_rows import ConversationRef
from evennia_ai.store.history.windows import windows

ROLE: Final = "summariser"
ANSWER_TOKENS: Final = 800
MOST_REQUEST_TOKENS: Final = 8_000
MOST_TIDIED: Final = 4096
_DAY_HOURS: Final = 24.0
_SAID: Final = frozenset({RecordKind.USER, RecordKind.ASSISTANT, RecordKind.EVENT})
"""What somebody said or did, and no summary of that."""


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

    def __init__(self, conf: Conf, calls: ModelCalls) -> None:
        self._settings: Final = conf.memory
        self._calls: Final = calls
        self._rules: Final = conf.compaction.rules  # how often it may fail, and how long it rests
        # When, in hours of the game, by NPC; of those that were tidied last.
        self._tidied: OrderedDict[str, float] = OrderedDict()

    def is_due(self, where: ConversationRef) -> bool:
        """Whether enough was said since the last time that a model is to be asked."""
        after = self._settings.after_messages
        if not (self._settings.enabled and after) or len(windows(where.id).history) < after:
            return False
        if self._calls.models.ready(ROLE) is None:
            return False
        known = model_requests.consolidated(where.id)
        if known.breaker.is_open(turns.next_number(where.npc_ref), rules=self._rules):
            return False
        return len(_said_since(where, known.upto, most=after)) >= after

    def consolidate(
        self, where: ConversationRef, *, npc_name: str, npc_limits: Mapping[str, int]
    ) -> "Deferred[str]":
        """Ask for what is to be remembered; what came of it, in words. It never fails.

        `npc_limits` narrow what the NPC may use.
        """
        done = Deferred.fromCoroutine(self._consolidated(where, npc_name, npc_limits))
        return done.addErrback(partial(_given_up, where))

    def tidy(self, npc_ref: str) -> None:
        """Once a day of the game, let go what faded and make one of what says the same twice."""
        now = hours_now()
        is_early = now - self._tidied.get(npc_ref, -_DAY_HOURS) < _DAY_HOURS
        if is_early or not self._settings.enabled:
            return
        self._tidied[npc_ref] = now
        self._tidied.move_to_end(npc_ref)
        if len(self._tidied) > MOST_TIDIED:
            self._tidied.popitem(last=False)
        held = memories.held_by(npc_ref)
        for kept, others in _doubles(held):
            memories.merge(npc_ref, kept, others, by=OF_NPC)
        if gone := self._faded(memories.held_by(npc_ref), now):
            memories.fade(npc_ref, (memory.id for memory in gone), by=OF_NPC)
            logger.log_info(f"evennia_ai: NPC {npc_ref}: {len(gone)} memories faded")

    def _faded(self, held: Held, now: float) -> list[Memory]:
        settings = self._settings
        oldest = now - settings.forget_days * _DAY_HOURS
        return [
            memory
            for memory in held.memories
            if not memory.is_builders
            and memory.recalled_at < oldest
            and standing(memory, hours=now) * 100 < settings.floor_percent
        ]

    async def _consolidated(
        self, where: ConversationRef, npc_name: str, npc_limits: Mapping[str, int]
    ) -> str:
        work = self._work(where, npc_name)
        if work is None:
            return "there is nothing new to learn from"
        refusal = self._calls.limits.refusal(npc_ref=where.npc_ref, npc_limits=npc_limits)
        if refusal is not None:
            return refusal.told
        try:
            answer = await self._asked(work)
        except ModelError as error:
            return self._failed(work, error)
        return self._kept(work, answer.observations[: self._settings.most_observations])

    def _work(self, where: ConversationRef, npc_name: str) -> _Work | None:
        access, before = self._calls.models.ready(ROLE), model_requests.consolidated(where.id)
        new = _said_since(where, before.upto)
        last = record_of(new[-1]) if new else None
        if access is None or last is None:
            return None
        return _Work(
            where=where,
            npc_name=npc_name,
            segment=windows(where.id).end.segment,
            messages=new,
            upto=(last.segment, last.seq),
            before=before,
            turn=turns.next_number(where.npc_ref) - 1,
            access=access,
        )

    def _asked(self, work: _Work) -> "Deferred[Observations]":
        profile = work.access.profile
        request = observing_request(
            work.messages,
            npc_name=work.npc_name,
            most=self._settings.most_observations,
            counter=ESTIMATE,
            most_tokens=min(MOST_REQUEST_TOKENS, profile.context_tokens - ANSWER_TOKENS),
        )
        messages, schema = asking(
            chat_messages(request), Observations, native=work.access.is_held_to_schemas
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
        messages = chat_messages(asked.messages)
        request = access.request(messages, max_tokens=ANSWER_TOKENS, schema=schema)
        key = CallKey(npc_ref=work.where.npc_ref, role=ROLE, name="observing")
        answer = self._calls.asked(access, request, key, prompt=asked.messages)
        return answer.addCallback(partial(_noted, work))

    def _failed(self, work: _Work, error: ModelError) -> str:
        """Write down that the model gave nothing of use; after some failures it rests."""
        breaker = work.before.breaker.after_failure(work.turn + 1, rules=self._rules)
        state = replace(work.before, breaker=breaker)
        model_requests.refuse_another_segment(work.where, work.segment)
        _tell(work, Observed(outcome=f"failed: {error}", reply=work.reply, state=state))
        _log(work.where, f"{error} ({breaker.failures} in a row)")
        return f"nothing was learnt: {error}"

    def _kept(self, work: _Work, found: Sequence[Observation]) -> str:
        """Keep what passes the rules, and write down what came of it."""
        model_requests.refuse_another_segment(work.where, work.segment)
        made = [_remembered(work, one, rules=self._settings) for one in found]
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


def _remembered(
    work: _Work, one: Observation, *, rules: MemorySettings
) -> tuple[Memory | None, str]:
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
        rules=rules,
        lines=work.messages,
    )
    return done.memory, done.refusal


def _said_since(where: ConversationRef, upto: Place, *, most: int | None = None) -> list[Message]:
    """What was said and done after a record, oldest first; at most the newest `most` of it."""
    history = windows(where.id).history
    found: list[Message] = []
    for message in reversed(history.between(history.earlier, history.stop)):
        record = record_of(message)
        if not message.counted or record is None:
            continue
        if (record.segment, record.seq) <= upto or len(found) == most:
            break
        if record.kind in _SAID:
            found.append(message)
    return found[::-1]


def _doubles(held: Held) -> list[tuple[Memory, list[Memory]]]:
    """Memories that say the same, each with those after it that do."""
    groups: dict[Any, list[Memory]] = {}
    for memory in held.memories:
        groups.setdefault((memory.about, memory.learnt, memory.wording), []).append(memory)
    return [(first, others) for first, *others in groups.values() if others]


def _noted(work: _Work, reply: ChatReply) -> ChatReply:
    work.reply = reply.text
    return reply


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
