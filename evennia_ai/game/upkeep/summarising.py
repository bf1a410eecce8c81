"""Summarising: the text that stands for the older part of a history, from a model or by extraction.

The models of the role `summariser` are asked, each where the one before it was not to be reached,
through the same queue, time limit and breaker as for replies, with messages that were committed
before. What one answers is checked like any stranger's text; an extract is as well.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from evennia.utils import logger
from twisted.internet.defer import Deferred

from evennia_ai.errors import ModelTimeout, ModelUnavailable, RefusalReason, SummaryRefused
from evennia_ai.game.models.calls import ModelCalls
from evennia_ai.game.models.clients import Access
from evennia_ai.game.models.limits import CallKey
from evennia_ai.history.compaction.extract import extract
from evennia_ai.history.compaction.planning import By, CompactionPlan, CompactionSettings
from evennia_ai.history.compaction.summaries import (
    REQUEST_TOKENS,
    Reply,
    checked_summary,
    summary_request,
)
from evennia_ai.llm.chat import ChatReply
from evennia_ai.llm.profiles import SUMMARISER
from evennia_ai.llm.reasoning import takes_another_role, without_reasoning
from evennia_ai.llm.roles import chat_messages
from evennia_ai.prompt.messages import Message
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
