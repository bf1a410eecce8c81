"""Summarising: how full a history is, what of it is summarised, and the text in its place.

Dialogue examples do not count as full: they give way to the history, so compacting for them gains
nothing. The models of the role `summariser` are asked, each where the one before it was not to be
reached, through the same queue, time limit and breaker as for replies, with messages that were
committed before. What one answers is checked like any stranger's text; an extract is as well.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Final

from evennia.utils import logger
from twisted.internet.defer import Deferred

from evennia_ai.endpoints import Access
from evennia_ai.errors import ModelTimeout, ModelUnavailable, RefusalReason, SummaryRefused
from evennia_ai.game.models.calls import ModelCalls
from evennia_ai.game.models.limits import CallKey
from evennia_ai.history.compaction.extract import extract
from evennia_ai.history.compaction.planning import (
    By,
    CompactionPlan,
    CompactionRules,
    CompactionSettings,
    When,
    is_due,
    refuse_thrash,
)
from evennia_ai.history.compaction.summaries import (
    REQUEST_TOKENS,
    Reply,
    checked_summary,
    summary_request,
    unframed,
)
from evennia_ai.history.projection import record_of
from evennia_ai.history.records import RecordKind
from evennia_ai.llm.chat import ChatReply
from evennia_ai.llm.profiles import SUMMARISER
from evennia_ai.llm.reasoning import takes_another_role, without_reasoning
from evennia_ai.llm.roles import chat_messages
from evennia_ai.prompt.history import History
from evennia_ai.prompt.messages import Message
from evennia_ai.prompt.pieces import Tier
from evennia_ai.prompt.prompt import Prompt
from evennia_ai.prompt.tokens import TokenCounter
from evennia_ai.store.history import model_requests
from evennia_ai.store.history.model_requests import ModelRequest
from evennia_ai.store.history.record_rows import ConversationRef

InThread = Callable[..., "Deferred[Any]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What is to be summarised, where and for whom; `segment` is the one that it is from."""

    conversation: ConversationRef
    segment: int
    npc_name: str
    asked_by: str
    plan: CompactionPlan
    counter: TokenCounter


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A checked summary and who made it; `reply` is what the model said, where one did."""

    text: str
    by: By
    reply: Reply | None = None


class ReplyRefusedError(SummaryRefused):
    """What a model answered is no summary; `reply` is kept for the records."""

    def __init__(self, refused: SummaryRefused, reply: Reply) -> None:
        self.reply = reply
        super().__init__(refused.reason, refused.detail)


class Summariser:
    """Makes summaries; what takes processor time goes through `in_thread`, with values alone."""

    def __init__(
        self, settings: CompactionSettings, calls: ModelCalls, *, in_thread: InThread
    ) -> None:
        self._settings: Final = settings
        self._calls: Final = calls
        self._in_thread: Final = in_thread

    @property
    def asks_a_model(self) -> bool:
        """Whether there is a model to ask, and the game wants it asked."""
        return self._settings.by == "model" and bool(self._calls.models.thinking(SUMMARISER))

    async def by_model(self, task: Task) -> Summary:
        """The summary of the first model that answers.

        TranscriptTooLongError: it cannot be asked at all. HistoryConflictError: what it would be
        asked about is history no more. ModelError: it did not answer, nor did one before it.
        ReplyRefusedError: what it answered is no summary.
        """
        *others, last = self._calls.models.thinking(SUMMARISER)
        for access in others:
            try:
                return await self._by(access, task)
            except (ModelUnavailable, ModelTimeout) as error:
                logger.log_warn(f"evennia_ai: {task.conversation}, summarising: {error}")
        return await self._by(last, task)

    async def _by(self, access: Access, task: Task) -> Summary:
        """The summary of this model."""
        request = await self._in_thread(self._request, task, access)
        asked = model_requests.ask_for_summary(
            task.conversation,
            request,
            asked_by=task.asked_by,
            model=access.model_id or access.name,
            messages=len(task.plan.summarised),
            segment=task.segment,
        )
        messages, most = chat_messages(asked.messages), self._answer_tokens(task)
        sent = access.request(messages, max_tokens=most)
        # Nobody's words alone ask for it.
        key = CallKey(npc_ref=task.conversation.npc_ref, role=SUMMARISER)
        answer = await self._calls.asked(access, sent, key, prompt=asked.messages)
        reply = _reply(asked, answer)
        try:
            text = await self._in_thread(self._checked_answer, answer, task)
        except SummaryRefused as error:
            raise ReplyRefusedError(error, reply) from error
        return Summary(text=text, by="model", reply=reply)

    async def by_extract(self, task: Task) -> Summary:
        """The summary without a model; SummaryRefused where nothing that fits is left of it."""
        text = await self._in_thread(self._extract, task)
        return Summary(text=text, by="extract")

    def _request(self, task: Task, access: Access) -> tuple[Message, Message]:
        """The messages to send; with the answer they must fit what the model takes."""
        room = access.profile.context_tokens - self._answer_tokens(task)
        return summary_request(
            task.plan,
            npc_name=task.npc_name,
            counter=task.counter,
            most_tokens=min(REQUEST_TOKENS, room),
        )

    def _answer_tokens(self, task: Task) -> int:
        """Room for an answer that is longer than it was wanted, so that it is not cut off."""
        return min(2 * task.plan.summary_tokens, self._settings.rules.most_summary_tokens)

    def _checked_answer(self, answer: ChatReply, task: Task) -> str:
        if answer.finish_reason == "length":
            detail = f"the model was cut off after {self._answer_tokens(task)} tokens"
            raise SummaryRefused(RefusalReason.TOO_LONG, detail)
        if takes_another_role(answer.text):
            detail = "the model went on in another role than its own"
            raise SummaryRefused(RefusalReason.ROLE_MARKUP, detail)
        return self._checked(without_reasoning(answer.text), task)

    def _extract(self, task: Task) -> str:
        made = extract(task.plan, npc_name=task.npc_name, counter=task.counter)
        return self._checked(made, task)

    def _checked(self, text: str, task: Task) -> str:
        return checked_summary(
            text, plan=task.plan, rules=self._settings.rules, counter=task.counter
        )


def _reply(asked: ModelRequest, answer: ChatReply) -> Reply:
    usage = answer.usage
    return Reply(
        asked=asked.record.place,
        text=answer.text,
        model=answer.model,
        tokens=(usage.input_tokens, usage.output_tokens) if usage else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fullness:
    """Tokens of a history from its cut on, and of what else a prompt with it holds."""

    history_tokens: int
    other_tokens: int
    limit_tokens: int
    counter: TokenCounter

    @property
    def tokens(self) -> int:
        """What a prompt with the whole history needs."""
        return self.history_tokens + self.other_tokens

    def is_due(self, rules: CompactionRules, when: When) -> bool:
        """Whether the history is to be compacted."""
        return is_due(
            self.history_tokens,
            limit_tokens=self.limit_tokens,
            rules=rules,
            when=when,
            other_tokens=self.other_tokens,
        )

    def refuse_thrash(self, rules: CompactionRules) -> None:
        """ThrashError if the history, which was just compacted, is due again at once."""
        refuse_thrash(
            self.history_tokens,
            limit_tokens=self.limit_tokens,
            rules=rules,
            other_tokens=self.other_tokens,
        )


def fullness_of(prompt: Prompt, *, cut: int) -> Fullness:
    """That of a prompt whose history was cut at `cut` by the one before."""
    return _fullness(prompt, prompt.history, cut=cut, other_tokens=_beside_history(prompt))


def fullness_after(prompt: Prompt, history: History, *, cut: int) -> Fullness:
    """That of the next prompt, as far as it can be told: like `prompt`, with what was said since.

    What the prompt answered is in the history now.
    """
    answered = sum(tokens for _, tokens in prompt.fixed)
    other_tokens = _beside_history(prompt) - answered
    return _fullness(prompt, history, cut=cut, other_tokens=other_tokens)


def summarisable(
    history: History, *, opening: Message | None, unanswered: Collection[str]
) -> History:
    """What of a history may be summarised, as a value for another thread.

    Nothing from the first of the `unanswered` records on: each is in the prompt that answers it.
    `opening` is the summary that the segment begins with; it counts also where the window has left
    it behind. Frames of summaries are taken off.
    """
    stop = next((i for i, m in enumerate(history) if m.record in unanswered), len(history))
    messages = [_plain(message) for message in history.between(history.earlier, history.stop)]
    kept = messages[:stop]
    earlier = history.earlier
    if opening is not None and all(message.record != opening.record for message in history):
        kept, earlier = [unframed(opening), *kept], earlier - 1
    return History(kept, earlier=earlier, segment=history.segment)


def tokens_since(cut: int, history: History, counter: TokenCounter) -> int:
    """Tokens of a history from the index on at which prompts cut it."""
    first = min(max(cut, history.earlier), history.stop)
    return history.tokens_from(first, counter=counter)


def summaries_in(history: History) -> frozenset[str]:
    """The ids of the records of this history that are summaries."""
    return frozenset(m.record for m in history if m.record is not None and _is_summary(m))


def _beside_history(prompt: Prompt) -> int:
    yielding = sum(p.tokens for p in prompt.pieces if p.claim.tier is Tier.YIELDING)
    return prompt.tokens - prompt.fitted.history_tokens - yielding


def _fullness(prompt: Prompt, history: History, *, cut: int, other_tokens: int) -> Fullness:
    return Fullness(
        history_tokens=tokens_since(cut, history, prompt.counter),
        other_tokens=other_tokens,
        limit_tokens=prompt.limit_tokens,
        counter=prompt.counter,
    )


def _plain(message: Message) -> Message:
    return unframed(message) if _is_summary(message) else message


def _is_summary(message: Message) -> bool:
    record = record_of(message)
    return record is not None and record.kind is RecordKind.SUMMARY
