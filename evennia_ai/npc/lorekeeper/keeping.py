"""Do a task of the lorekeeper: from its words to an answer, and to drafts of pages.

First the package is assembled from pages that the builder may read. The request is made from it,
and both are stored. Then the writing model is asked, once. A task that only asks a question also
goes to this model, without a package. Everything that takes time is a Deferred, so the game goes
on.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from evennia.utils import logger
from twisted.internet.defer import Deferred

from evennia_ai.engine.errors import EvenniaAIError, NotStoredError
from evennia_ai.engine.knowledge.assembly.config import UNKNOWN, AssemblyRules
from evennia_ai.engine.knowledge.assembly.packages import Package
from evennia_ai.engine.knowledge.assembly.requests import LoreTask
from evennia_ai.engine.knowledge.pages.page import Backend, BaseInfo, PageName
from evennia_ai.engine.prompt.messages import Message
from evennia_ai.engine.prompt.tokens import ESTIMATE
from evennia_ai.npc.knowledge.guarding import must_guard
from evennia_ai.npc.lorekeeper.asking import (
    LOREKEEPER,
    Asker,
    Reader,
    fetch_introduction,
    may_read,
    refuse_over_limit,
    writing_models,
)
from evennia_ai.npc.lorekeeper.writing import (
    Written,
    store_drafts,
    stored_request,
    text_of_answer,
    writing_request,
)
from evennia_ai.npc.recording.retrying import DATABASE_ERRORS
from evennia_ai.npc.runtime import Runtime, runtime
from evennia_ai.npc.senses.presence import HasMind
from evennia_ai.services.endpoints import Access
from evennia_ai.services.llm.chat import ChatRequest, sent_sha256
from evennia_ai.services.llm.roles import chat_messages
from evennia_ai.store.knowledge import knowledge_bases, page_drafts
from evennia_ai.store.knowledge.page_drafts import NewTask


@dataclass(frozen=True, slots=True, kw_only=True)
class LorekeeperAnswer:
    """The result of a task.

    `text` is what the model wrote. `drafts` are the numbers of the drafts made from its pages,
    which wait for a builder's decision. `context_meta` says in JSON what the model was shown and
    why, even without a package. `notes` say which parts of the answer could not be used. `number`
    is the number of the stored task.
    """

    base: str
    task: str
    text: str
    context_meta: Mapping[str, Any]
    package: Package
    number: int
    drafts: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def draft(self) -> int | None:
        """Return the number of the first draft, None if the answer contains no page."""
        return self.drafts[0] if self.drafts else None


SWITCHED_OFF: Final = "the assembly is switched off in the settings"
MOST_OF_A_TASK: Final = 20_000


class LorekeeperError(EvenniaAIError):
    """The error for a task that cannot be done. The message says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """A task in progress: who asked, for which knowledge base, and what was said before."""

    task: LoreTask
    by: Any
    live: Runtime
    info: BaseInfo
    backend: Backend
    earlier: Sequence[Message]

    @property
    def asker(self) -> Asker:
        """Return the object that asks models for this task."""
        return Asker(
            calls=self.live.calls, player_ref=str(self.by.id), is_protected=self.info.restricted
        )


def lorekeeper(
    task: str,
    *,
    base: str,
    by: Any,
    type_override: str = "",
    custom_pages: Sequence[PageName] = (),
    earlier: Sequence[Message] = (),
) -> "Deferred[LorekeeperAnswer]":
    """Do a task for a knowledge base. Pages in the answer become drafts.

    The Deferred fails with an EvenniaAIError. In that case no draft is stored.

    Args:
        by: The object of the game that asks. Pages that it may not see are not read.
        type_override: The key of a type of task; "" lets the planner choose one.
        custom_pages: Pages that the model is shown in any case.
        earlier: What was said before in the same conversation.
    """
    kept = _do_task(
        LoreTask(text=task.strip(), type_override=type_override, custom_pages=tuple(custom_pages)),
        base=base,
        by=by,
        live=runtime(),
        earlier=tuple(earlier),
    )
    return Deferred.fromCoroutine(kept)


async def _do_task(
    task: LoreTask, *, base: str, by: Any, live: Runtime, earlier: Sequence[Message]
) -> LorekeeperAnswer:
    settings = live.conf.lorekeeper
    work = _start_work(task, base=base, by=by, live=live, earlier=earlier)
    package = await _assemble(work)
    request = writing_request(package, placement=settings.package_placement, earlier=earlier)
    _refuse_too_long(request, live)
    new = _new_task(work, package, request)
    number = page_drafts.begin_task(new)
    try:
        ask = partial(_chat_request, request, settings.reply_tokens)
        reply = await work.asker.written(ask)
    except EvenniaAIError as error:
        _write_end(number, partial(page_drafts.fail_task, number, _stored_error(error, work)))
        raise
    text = text_of_answer(reply.text)
    told = {**new.context_meta, "model": reply.model}
    _write_end(number, partial(page_drafts.end_task, number, text=text, context_meta=told))
    made = await store_drafts(
        Written(
            base=work.info.key,
            backend=work.backend,
            by=by,
            task=task.text,
            text=text,
            context_meta=told,
            request=new.request,
        )
    )
    _write_end(number, partial(page_drafts.keep_drafts, number, made.numbers))
    return LorekeeperAnswer(
        base=work.info.key,
        task=task.text,
        text=text,
        context_meta=told,
        package=package,
        number=number,
        drafts=made.numbers,
        notes=made.notes,
    )


def _new_task(work: _Work, package: Package, request: Sequence[Message]) -> NewTask:
    """Return the task in the form that is stored before the model is asked."""
    sha256 = sent_sha256(chat_messages(request))
    meta = package.context_meta() | {
        "base": work.info.key,
        "model": "",
        "placement": "split" if work.earlier else work.live.conf.lorekeeper.package_placement,
        "sent_sha256": sha256,
    }
    return NewTask(
        asked_by=str(work.by.id),
        base=work.info.key,
        task=work.task.text,
        context_meta=meta,
        request=stored_request(request),
        sha256=sha256,
    )


def _stored_error(error: EvenniaAIError, work: _Work) -> str:
    """Return the text of an error for the stored task.

    For a restricted knowledge base, only its kind.
    """
    return type(error).__name__ if work.asker.is_protected else str(error)


def _write_end(number: int, write: Callable[[], None]) -> None:
    """Record the end of a task.

    If that fails, only log it: the answer cost money, so the builder gets it in any case.
    """
    try:
        write()
    except DATABASE_ERRORS as error:
        what = f"the end of task {number} of the lorekeeper was not recorded"
        logger.log_err(f"evennia_ai: {what} ({type(error).__name__})")


def _start_work(
    task: LoreTask, *, base: str, by: Any, live: Runtime, earlier: Sequence[Message]
) -> _Work:
    """Check a task and return it as work.

    Raises:
        LorekeeperError: The task is empty or too long, or the NPC that asks guards the base.
        NoWriterError: No model may be asked.
        NotStoredError: There is no such base.
    """
    if not task.text:
        raise LorekeeperError("the task is empty: say what to write")
    if len(task.text) > MOST_OF_A_TASK:
        told = f"{len(task.text)} characters, but the limit is {MOST_OF_A_TASK}"
        raise LorekeeperError(f"the task has {told}; make it shorter")
    writing_models(live.models)
    refuse_over_limit(live.limits, str(by.id))
    info = _visible_base(base, by)
    backend = live.backends.of(info)
    return _Work(task=task, by=by, live=live, info=info, backend=backend, earlier=earlier)


def _visible_base(key: str, by: Any) -> BaseInfo:
    """Return the knowledge base with this key. A base that `by` may not read counts as missing."""
    seen = [one for one in knowledge_bases.list_bases() if may_read(by, one.locks)]
    found = next((one for one in seen if one.key == key), None)
    if found is None:
        raise NotStoredError("knowledge base", key, tuple(one.key for one in seen))
    _refuse_guarding(by, found)
    return found


def _refuse_guarding(by: Any, info: BaseInfo) -> None:
    """Refuse a task of an NPC that guards the knowledge base.

    Raises:
        LorekeeperError: An NPC that guards the base asks, which may get only safe summaries.
    """
    who, is_ours = str(by.key), isinstance(by, HasMind)
    if is_ours and must_guard(by, info):
        raise LorekeeperError(
            f"knowledge base '{info.key}' is restricted, and NPC {who} gets only safe summaries of"
            " it, with the tool knowledge_base_search"
        )


async def _assemble(work: _Work) -> Package:
    """Return what the model is shown. It is empty if the settings turn the assembly off."""
    if not work.live.conf.lorekeeper.enabled:
        return Package(
            task=work.task,
            task_type=work.task.type_override or UNKNOWN,
            type_from="override" if work.task.type_override else "fallback",
            bypass_reason=SWITCHED_OFF,
        )
    reader = Reader(
        by=work.by,
        backend=work.backend,
        plan=work.asker.planned,
        look_up=partial(fetch_introduction, work.live.models, work.live.conf.knowledge_wikipedia),
    )
    return await reader.read(work.task, _assembly_rules(work.live))


def _assembly_rules(live: Runtime) -> AssemblyRules:
    """Return the rules of the assembly. The config page of the knowledge base may change them."""
    settings, writer = live.conf.lorekeeper, writing_models(live.models)[0]
    room = writer.context_tokens - settings.reply_tokens
    usual = AssemblyRules()
    budget = max(usual.reserve_tokens + 1, min(settings.budget_tokens, room))
    return AssemblyRules(budget_tokens=budget, wikipedia=bool(live.conf.knowledge_wikipedia))


def _refuse_too_long(request: Sequence[Message], live: Runtime) -> None:
    """Check that the request leaves the first writing model enough room for its reply.

    Raises:
        LorekeeperError: The request is too long.
    """
    writer, reply = writing_models(live.models)[0], live.conf.lorekeeper.reply_tokens
    tokens = sum(ESTIMATE.of_message(one.content) for one in request)
    if tokens + reply > writer.context_tokens:
        raise LorekeeperError(
            f"the task and its package have about {tokens} tokens, and the model of profile"
            f" '{writer.profile.name}' takes {writer.context_tokens} with {reply} of them for the"
            " answer;"
            " lower budget_tokens on the page Instructions:Config, or name a larger model"
        )


def _chat_request(request: Sequence[Message], reply_tokens: int, access: Access) -> ChatRequest:
    messages = chat_messages(request)
    return access.request(messages, max_tokens=reply_tokens, cache_key=LOREKEEPER)
