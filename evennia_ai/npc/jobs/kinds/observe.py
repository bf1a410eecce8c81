"""Observe: the kind of job in which a model lists what an NPC should remember of a conversation.

The model reads what was said since the last observation. Its answer is passed on unchanged. The
game then decides which observations become memories, because it knows who the persons are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from twisted.internet.defer import Deferred

from evennia_ai.engine.errors import ModelError
from evennia_ai.engine.history.projection import record_of
from evennia_ai.engine.history.records import RecordKind, make_storable
from evennia_ai.engine.memory.learning import Observations, observing_request
from evennia_ai.engine.prompt.history import History
from evennia_ai.engine.prompt.messages import Message
from evennia_ai.engine.prompt.tokens import ESTIMATE
from evennia_ai.npc.jobs.job import Job, JobTools
from evennia_ai.npc.jobs.kinds.forms import SentRequest, form_to_json, read_form, sent_messages
from evennia_ai.services.llm.chat import AnswerSchema, ChatMessage, ChatReply
from evennia_ai.services.llm.profiles import SUMMARISER
from evennia_ai.services.llm.roles import chat_messages
from evennia_ai.services.llm.structured import ask_for_answer, request_for
from evennia_ai.store.history.model_requests import refuse_observed
from evennia_ai.store.history.segments import Head, PastSegment, refuse_gone, segment_at

ANSWER_TOKENS: Final = 800
MOST_REQUEST_TOKENS: Final = 8_000
_SAID: Final = frozenset({RecordKind.USER, RecordKind.ASSISTANT, RecordKind.EVENT})
"""The kinds of records of what somebody said or did."""

Place = tuple[int, int]
"""The place of a record: the number of its segment, and its number in that segment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserveGiven:
    """The input of an observation, in addition to the records of the history."""

    head: Head
    cut: int
    """The index at which prompts cut the history."""
    npc_ref: str
    npc_name: str
    """The name of the NPC in transcripts."""
    upto: Place
    """The last record that an earlier memory job has read."""
    failures: int = 0
    """The number of failed attempts in a row. If it changes meanwhile, this job is stale."""
    opened_at: int | None = None
    """The number of the turn at which failures opened the breaker, None if it is closed."""
    turn: int
    """The number of the NPC's last turn."""
    most: int
    """The most observations to request and to use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawObservation:
    """One observation as the model wrote it."""

    text: str
    about: str
    """The name of the person whom the observation is about, "" for the world."""
    importance: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserveMade:
    """The result of the job: the observations, or why there are none."""

    nothing: str = ""
    """Why no model was asked, "" if one was."""
    failed: str = ""
    """Why the model's answer is useless, "" if it is not."""
    requests: tuple[SentRequest, ...] = ()
    """The requests to the model. There is a second one if the first answer had the wrong form."""
    reply: str = ""
    """The model's last reply."""
    upto: Place = (0, 0)
    """The place of the last record in the requests."""
    observations: tuple[RawObservation, ...] = ()
    recorded: tuple[str, ...] = ()
    """The places of the records of requests that the game has already committed, in order."""


class Observe:
    """The kind of job that observes conversations (see `JobKind`)."""

    name = "observe"

    async def run(self, job: Job, tools: JobTools) -> dict[str, Any]:
        """Do the job and return an `ObserveMade` as JSON.

        Raises:
            StaleError: The conversation has a newer segment.
            StoreError: A request cannot be recorded.
        """
        given = read_form(ObserveGiven, job.given, where=job.idempotency)
        access = first_ready(tools.models(SUMMARISER))
        if access is None:
            return form_to_json(ObserveMade(nothing="no model can be asked now"))
        segment = await tools.read(_segment, given)
        new = said_since(segment.history, given.upto)
        if not new:
            return form_to_json(ObserveMade(nothing="there is nothing new to learn from"))
        return form_to_json(await _Asking(given, tools, access).made(new))

    def refuse_stale(self, job: Job) -> None:
        """Check that the result still fits the conversation.

        Raises:
            StaleError: The conversation has a newer segment (the part after a compaction), another
                memory job has read it in the meantime, or a person who spoke was forgotten.
        """
        given = read_form(ObserveGiven, job.given, where=job.idempotency)
        refuse_gone(given.head)
        refuse_observed(given.head.conversation, since=given.upto)


OBSERVE: Final = Observe()


@dataclass(slots=True)
class _Asking:
    """The question to a model. It is asked again once if the answer has the wrong form."""

    given: ObserveGiven
    tools: JobTools
    access: Any
    requests: list[SentRequest] = field(default_factory=list)
    reply: str = ""

    async def made(self, new: Sequence[Message]) -> ObserveMade:
        """Ask the model. Return its observations, or why its answer is useless."""
        found: Sequence[RawObservation] = ()
        failed = ""
        messages, schema = await self.tools.off(_question, self.given, self.access, new)
        try:
            answer = await ask_for_answer(partial(self._ask, schema), messages, Observations)
        except ModelError as error:
            failed = make_storable(str(error))
        else:
            found = [
                RawObservation(
                    text=make_storable(one.text),
                    about=make_storable(one.about),
                    importance=one.importance,
                )
                for one in answer.observations[: self.given.most]
            ]
        return ObserveMade(
            failed=failed,
            requests=tuple(self.requests),
            reply=self.reply,
            upto=place_of(new[-1]),
            observations=tuple(found),
        )

    def _ask(
        self, schema: AnswerSchema | None, messages: tuple[ChatMessage, ...]
    ) -> "Deferred[ChatReply]":
        return Deferred.fromCoroutine(self._record_and_ask(schema, messages))

    async def _record_and_ask(
        self, schema: AnswerSchema | None, messages: tuple[ChatMessage, ...]
    ) -> ChatReply:
        access = self.access
        request = SentRequest(
            model=access.model_id or access.name,
            messages=sent_messages(messages),
            schema=dict(schema.schema) if schema is not None else None,
        )
        sent = await self.tools.record(request)
        self.requests.append(request)
        answer: ChatReply = await self.tools.ask(
            access,
            access.request(chat_messages(sent), max_tokens=ANSWER_TOKENS, schema=schema),
            role=SUMMARISER,
            npc_ref=self.given.npc_ref,
            name="observing",
            prompt=sent,
        )
        self.reply = make_storable(answer.text)
        return answer


def first_ready(accesses: Sequence[Any]) -> Any | None:
    """Return the first model that its breaker allows to be asked, None if there is none."""
    ready = (one for one in accesses if one.breaker is None or one.breaker.admits)
    return next(ready, None)


def said_since(history: History, upto: Place, *, most: int | None = None) -> list[Message]:
    """Return the messages of what was said and done after a record, oldest first.

    With `most`, return only the newest ones.
    """
    found: list[Message] = []
    for message in reversed(history.between(history.earlier, history.stop)):
        record = record_of(message)
        if not message.counted or record is None:
            continue
        if place_of(message) <= upto or len(found) == most:
            break
        if record.kind in _SAID:
            found.append(message)
    return found[::-1]


def place_of(message: Message) -> Place:
    """Return the place of the record behind a message of the history."""
    record = record_of(message)
    assert record is not None  # every message of a history has a record
    return record.segment, record.seq


def _segment(given: ObserveGiven) -> PastSegment:
    return segment_at(given.head, cut=given.cut)


def _question(
    given: ObserveGiven, access: Any, new: Sequence[Message]
) -> tuple[tuple[ChatMessage, ...], AnswerSchema | None]:
    request = observing_request(
        new,
        npc_name=given.npc_name,
        most=given.most,
        counter=ESTIMATE,
        most_tokens=min(MOST_REQUEST_TOKENS, access.context_tokens - ANSWER_TOKENS),
    )
    return request_for(chat_messages(request), Observations, native=access.is_held_to_schemas)
