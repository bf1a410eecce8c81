"""Compact: the kind of job that makes a summary of the older part of a history.

The history is read as it was when the job was requested. The models of the role `summariser` are
asked in order until one replies. Its reply is checked, because a model may return anything. If no
model gives a summary and the prompt is nearly full, an extract of the history is used, after the
same checks. The result lists all attempts. The game decides whether to try again.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from evennia_ai.engine.errors import (
    ModelError,
    RefusalReason,
    SummaryRefused,
    TranscriptTooLongError,
)
from evennia_ai.engine.history.compaction.extract import extract_summary
from evennia_ai.engine.history.compaction.planning import (
    CompactionPlan,
    CompactionRules,
    NoPlan,
    SummaryMaker,
    plan_compaction,
    tokens_from_cut,
)
from evennia_ai.engine.history.compaction.summaries import (
    REQUEST_TOKENS,
    check_summary,
    summarisable_history,
    summary_ids,
    summary_request,
)
from evennia_ai.engine.history.projection import message_of, record_of
from evennia_ai.engine.history.records import make_storable
from evennia_ai.engine.prompt.tokens import TokenCounter
from evennia_ai.formats.scenario.tokenizers import counter_named
from evennia_ai.npc.jobs.job import Job, JobTools
from evennia_ai.npc.jobs.kinds.forms import SentRequest, form_to_json, read_form, sent_messages
from evennia_ai.services.llm.chat import ChatReply
from evennia_ai.services.llm.profiles import SUMMARISER
from evennia_ai.services.llm.reasoning import takes_another_role, without_reasoning
from evennia_ai.services.llm.roles import chat_messages
from evennia_ai.store.history.segments import Head, PastSegment, refuse_gone, segment_at


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactGiven:
    """The input of a compaction, in addition to the records of the history."""

    head: Head
    cut: int
    """The index at which prompts cut the history."""
    npc_ref: str
    npc_name: str
    """The name of the NPC in transcripts."""
    asked_by: str
    """What requested the compaction: a turn, "idle time" or a builder's name."""
    is_pressing: bool
    """True if the prompt is nearly full or a builder asked. Then an extract is good enough."""
    by_model: bool
    """True if models are asked before an extract is made."""
    has_model: bool
    """True if the game has a summariser. Then a summary by extract does not close its breaker."""
    until: str = ""
    """The id of the record at which the summary must end, because a turn will answer it; "" for
    none."""
    attempt: str = ""
    """The place of the newest attempt. If another attempt is made meanwhile, this job is stale."""
    turn: int = 1
    """The number of the NPC's next turn. The breaker counts its rest in turns."""
    counter: str
    """The name of the token counter."""
    tokens: int
    """The tokens of a prompt with the whole history."""
    limit_tokens: int
    rules: CompactionRules


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryTry:
    """One attempt to make the summary, by a model or by extract."""

    by: SummaryMaker
    result: Literal["accepted", "refused", "failed"] = "accepted"
    reason: str = ""
    request: int | None = None
    """The index in `requests` of the request that the reply answers; None without a reply."""
    reply: str = ""
    model: str = ""
    """The name that the model's reply gave for the model."""
    tokens: tuple[int, int] | None = None
    """The tokens of request and reply, as the provider reports them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactMade:
    """The result of the job. If `summary` is empty, the game compacts nothing."""

    nothing: str = ""
    """Why no summary was tried, "" if one was."""
    requests: tuple[SentRequest, ...] = ()
    """The requests to models, in order."""
    warnings: tuple[str, ...] = ()
    """Problems that did not stop the job, for builders."""
    tries: tuple[SummaryTry, ...] = ()
    """The attempts in order. If there is a summary, it comes from the last one."""
    summary: str = ""
    last: str = ""
    """The place of the last summarised record."""
    messages: int = 0
    """How many messages were summarised."""
    messages_tokens: int = 0
    kept: int = 0
    """How many later messages stay in the history."""
    recorded: tuple[str, ...] = ()
    """The places of the records of requests that the game has already committed, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    given: CompactGiven
    plan: CompactionPlan
    counter: TokenCounter

    @property
    def answer_tokens(self) -> int:
        """Return the most tokens of a reply: more than requested, so that it is not cut off."""
        return min(2 * self.plan.summary_tokens, self.given.rules.most_summary_tokens)


class Compact:
    """The kind of job that makes summaries (see `JobKind`)."""

    name = "compact"

    async def run(self, job: Job, tools: JobTools) -> dict[str, Any]:
        """Do the job and return a `CompactMade` as JSON.

        Raises:
            StaleError: The conversation has a newer segment.
            StoreError: A request cannot be recorded.
        """
        given = read_form(CompactGiven, job.given, where=job.idempotency)
        segment = await tools.read(_segment, given)
        task = await tools.off(_plan_job, given, segment)
        if isinstance(task, NoPlan):
            detail = f" ({task.detail})" if task.detail else ""
            return form_to_json(CompactMade(nothing=f"{task.reason}{detail}"))
        return form_to_json(await _Making(task, tools).made())

    def refuse_stale(self, job: Job) -> None:
        """Check that the conversation has no newer segment.

        Raises:
            StaleError: It has one.
        """
        refuse_gone(read_form(CompactGiven, job.given, where=job.idempotency).head)


COMPACT: Final = Compact()


@dataclass(slots=True)
class _Making:
    """The work on one summary: its requests, warnings and attempts so far."""

    task: _Task
    tools: JobTools
    requests: list[SentRequest] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    tries: list[SummaryTry] = field(default_factory=list)

    async def made(self) -> CompactMade:
        """Return the summary, or the list of failed attempts without one."""
        given, plan = self.task.given, self.task.plan
        summary = await self._ask_models()
        if not summary and (given.is_pressing or not self.tries):
            summary = await self._extract_summary()
        last = record_of(plan.summarised[-1])
        assert last is not None  # every summarised message has a record
        return CompactMade(
            requests=tuple(self.requests),
            warnings=tuple(self.warnings),
            tries=tuple(self.tries),
            summary=summary,
            last=last.place,
            messages=len(plan.summarised),
            messages_tokens=plan.summarised_tokens,
            kept=len(plan.tail),
        )

    async def _ask_models(self) -> str:
        """Return the summary of the first model that replies, "" for none."""
        given = self.task.given
        accesses = self.tools.models(SUMMARISER) if given.by_model else ()
        for number, access in enumerate(accesses, start=1):
            try:
                return await self._ask_model(access)
            # The transcript is too long for any model, so another one could not help.
            except TranscriptTooLongError as error:
                self.warnings.append(str(error))
                return ""
            except ModelError as error:
                is_asked_elsewhere = error.fault is not None and error.fault.is_asked_elsewhere
                if number == len(accesses) or not is_asked_elsewhere:
                    self._add_failed_try(error)
                    return ""
                self.warnings.append(f"summarising: {error}")
        return ""

    async def _ask_model(self, access: Any) -> str:
        """Ask this model. Return its summary, "" if the checks refuse its reply."""
        task, tools = self.task, self.tools
        request = await tools.off(_request, task, access)
        sent = await tools.record(request)
        self.requests.append(request)
        answer = await tools.ask(
            access,
            access.request(chat_messages(sent), max_tokens=task.answer_tokens),
            role=SUMMARISER,
            npc_ref=task.given.npc_ref,
            prompt=sent,
        )
        said = SummaryTry(
            by="model",
            request=len(self.requests) - 1,
            reply=make_storable(answer.text),
            model=make_storable(answer.model),
            tokens=(answer.usage.input_tokens, answer.usage.output_tokens)
            if answer.usage
            else None,
        )
        try:
            summary: str = await tools.off(_checked_answer, task, answer)
        except SummaryRefused as error:
            self.tries.append(replace(said, result="refused", reason=str(error)))
            return ""
        self.tries.append(said)
        return summary

    async def _extract_summary(self) -> str:
        """Return an extract of the history as summary, "" if the checks refuse it."""
        try:
            summary: str = await self.tools.off(_make_extract, self.task)
        except SummaryRefused as error:
            self.tries.append(SummaryTry(by="extract", result="refused", reason=str(error)))
            return ""
        self.tries.append(SummaryTry(by="extract"))
        return summary

    def _add_failed_try(self, error: ModelError) -> None:
        self.tries.append(SummaryTry(by="model", result="failed", reason=str(error)))


def _segment(given: CompactGiven) -> PastSegment:
    return segment_at(given.head, cut=given.cut)


def _plan_job(given: CompactGiven, segment: PastSegment) -> _Task | NoPlan:
    opening = message_of(segment.opening) if segment.opening is not None else None
    unanswered = {given.until} - {""}
    history = summarisable_history(segment.history, opening=opening, unanswered=unanswered)
    summaries = summary_ids(segment.history)
    if segment.opening is not None:
        summaries |= {segment.opening.id}
    counter = counter_named(given.counter)
    made = plan_compaction(
        history,
        rules=given.rules,
        counter=counter,
        limit_tokens=given.limit_tokens,
        other_tokens=max(0, given.tokens - tokens_from_cut(given.cut, history, counter)),
        summaries=summaries,
    )
    return made if isinstance(made, NoPlan) else _Task(given=given, plan=made, counter=counter)


def _request(task: _Task, access: Any) -> SentRequest:
    """Return the request for a model, short enough to leave tokens for the reply."""
    room = access.context_tokens - task.answer_tokens
    messages = summary_request(
        task.plan,
        npc_name=task.given.npc_name,
        counter=task.counter,
        most_tokens=min(REQUEST_TOKENS, room),
    )
    return SentRequest(
        model=access.model_id or access.name,
        messages=sent_messages(messages),
        about=len(task.plan.summarised),
    )


def _checked_answer(task: _Task, answer: ChatReply) -> str:
    if answer.finish_reason == "length":
        detail = f"the model stopped at the limit of {task.answer_tokens} tokens"
        raise SummaryRefused(RefusalReason.TOO_LONG, detail)
    if takes_another_role(answer.text):
        detail = "the model continued in another role than its own"
        raise SummaryRefused(RefusalReason.ROLE_MARKUP, detail)
    return _check_text(task, without_reasoning(answer.text))


def _make_extract(task: _Task) -> str:
    made = extract_summary(task.plan, npc_name=task.given.npc_name, counter=task.counter)
    return _check_text(task, made)


def _check_text(task: _Task, text: str) -> str:
    return check_summary(text, plan=task.plan, rules=task.given.rules, counter=task.counter)
