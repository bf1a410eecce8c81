"""What a task of the lorekeeper asks for: pages, two models, and Wikipedia.

A cheap model plans, and another one writes. Their calls are handled like all model calls of the
game: with circuit breaker and queue, counted, limited for the builder, and stopped with the game.
If a profile is unavailable, the next one of its role is asked. Watchers get no words of a
restricted base.

The assembly of a package does no I/O itself; this module answers its requests. Pages that the
builder may not read are replaced by `Hidden`. Wikipedia is asked only if the settings name its
address. The config page of a base can turn that off, but not on.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias
from weakref import WeakKeyDictionary

from evennia.utils import logger
from twisted.internet.defer import Deferred, succeed
from twisted.python.failure import Failure

from evennia_ai.engine.errors import EvenniaAIError, ModelError
from evennia_ai.engine.knowledge.assembly.assembly import assemble_package
from evennia_ai.engine.knowledge.assembly.config import AssemblyRules
from evennia_ai.engine.knowledge.assembly.packages import Package
from evennia_ai.engine.knowledge.assembly.requests import (
    Article,
    AskPlanner,
    Failed,
    Fetch,
    Hidden,
    Introduction,
    Links,
    ListTitles,
    LoreTask,
    PageSearch,
    Request,
    Step,
)
from evennia_ai.engine.knowledge.pages.page import Backend, BackendError, Hit, Page, PageName
from evennia_ai.npc.knowledge.backends import as_deferred
from evennia_ai.npc.mind.viewers import lock_allows
from evennia_ai.npc.model_calls.calls import ModelCalls
from evennia_ai.npc.model_calls.limits import CallKey, Limits
from evennia_ai.services.endpoints import Access, Models
from evennia_ai.services.llm.chat import ChatReply, ChatRequest
from evennia_ai.services.llm.profiles import ModelRole
from evennia_ai.services.llm.roles import chat_messages
from evennia_ai.services.llm.structured import request_for
from evennia_ai.services.wiki.backend import Wikipedia

LOREKEEPER: Final = "lorekeeper"
"""The reference of the lorekeeper in model calls, in place of an NPC's, and the writer's role."""

PLAN_TOKENS: Final = 300
PLAN_SECONDS: Final = 20.0

RequestOf = Callable[[Access], ChatRequest]


class NoWriterError(EvenniaAIError):
    """The error for a task while no model may be asked to write."""


def writing_models(models: Models) -> tuple[Access, ...]:
    """Return the models that write. Each is a fallback for the one before it.

    Raises:
        NoWriterError: There is no such model.
    """
    found = models.thinking("lorekeeper")
    if not found:
        raise NoWriterError(
            "no model can write for the lorekeeper: name a profile in"
            " EVENNIA_AI_MODEL_ROLES['lorekeeper'], or set EVENNIA_AI_BASE_URL"
        )
    return found


def refuse_over_limit(limits: Limits, player_ref: str) -> None:
    """Check the limits of the builder, the lorekeeper and the game.

    Raises:
        NoWriterError: A limit is reached.
    """
    refusal = limits.refusal(npc_ref=LOREKEEPER, player_ref=player_ref)
    if refusal is not None:
        raise NoWriterError(f"the lorekeeper may not ask a model: {refusal.told}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Asks the models on behalf of a person.

    `is_protected` is True if the prompt contains texts of a restricted knowledge base.
    """

    calls: ModelCalls
    player_ref: str
    is_protected: bool = False

    def written(self, request_of: RequestOf) -> "Deferred[ChatReply]":
        """Return the reply of the writing model.

        The Deferred fails with a ModelError or a NoWriterError.
        """
        asked = self._ask_in_order(writing_models(self.calls.models), request_of, role="lorekeeper")
        return Deferred.fromCoroutine(asked)

    def planned(self, plan: AskPlanner) -> "Deferred[str | Failed]":
        """Return the reply of the planning model, or why there is none."""
        accesses = self.calls.models.thinking("planner")
        asked = self._ask_in_order(accesses, partial(_planning_request, plan), role="planner")
        reply: Deferred[Any] = Deferred.fromCoroutine(asked)
        return reply.addCallbacks(lambda said: said.text, _plan_failure)

    async def _ask_in_order(
        self, accesses: tuple[Access, ...], request_of: RequestOf, *, role: ModelRole
    ) -> ChatReply:
        """Return the reply of the first model that gives one."""
        error: EvenniaAIError = NoWriterError(f"there is no model for the role {role}")
        key = CallKey(
            npc_ref=LOREKEEPER,
            player_ref=self.player_ref,
            role=role,
            name="" if role == "lorekeeper" else "lorekeeper planning",
            is_protected=self.is_protected,
        )
        for access in accesses:
            try:
                return await self.calls.asked(access, request_of(access), key)
            except ModelError as failed:
                error = failed
                if failed.fault is None or not failed.fault.is_asked_elsewhere:
                    break
        raise error


def _planning_request(plan: AskPlanner, access: Access) -> ChatRequest:
    messages, schema = request_for(
        chat_messages(plan.messages), plan.schema, native=access.is_held_to_schemas
    )
    return access.request(
        messages, max_tokens=PLAN_TOKENS, most_seconds=PLAN_SECONDS, schema=schema
    )


def _plan_failure(failure: Failure) -> Failed:
    failure.trap(ModelError, NoWriterError)
    return Failed(failure.getErrorMessage())


OFF: Final = "EVENNIA_AI_KNOWLEDGE_WIKIPEDIA is not set to the address of a wiki"

_opened: Final[WeakKeyDictionary[Models, Wikipedia]] = WeakKeyDictionary()


def fetch_introduction(
    models: Models, address: str, entity: str
) -> "Deferred[Article | Failed | None]":
    """Return the introduction of Wikipedia's article about `entity`, None if there is none."""
    if not address:
        return succeed(Failed(OFF))
    if models not in _opened:
        _opened[models] = Wikipedia(address, models.bridge)
    found: Deferred[Article | Failed | None] = _opened[models].intro(entity)
    return found.addErrback(_failed, entity)


def _failed(failure: Failure, entity: str) -> Failed:
    """Log and return why Wikipedia did not answer. The package is assembled without it."""
    failure.trap(BackendError)
    logger.log_warn(f"evennia_ai: Wikipedia gave no introduction of {entity!r}: {failure.value}")
    return Failed(str(failure.value))


_BUILDERS: Final = "view:perm(Builder)"
"""The lock of a page that has no lock of its own."""

Planning: TypeAlias = Callable[[AskPlanner], "Deferred[str | Failed]"]
LookingUp: TypeAlias = Callable[[str], "Deferred[Article | Failed | None]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Reads the pages for a package, as far as the builder may see them.

    `plan` asks the planning model. `look_up` finds an introduction in Wikipedia.
    """

    by: Any
    backend: Backend
    plan: Planning
    look_up: LookingUp

    def read(self, task: LoreTask, rules: AssemblyRules) -> "Deferred[Package]":
        """Assemble the package for a task.

        The Deferred fails with the errors of the assembly and of the backend.
        """
        return Deferred.fromCoroutine(self._drive(assemble_package(task, rules=rules)))

    async def _drive(self, steps: Step[Package]) -> Package:
        """Answer the requests of the assembly until it returns its package."""
        answer: Any = None
        while True:
            try:
                request = steps.send(answer)
            except StopIteration as done:
                package: Package = done.value
                return package
            answer = await self._answer_request(request)

    def _answer_request(self, request: Request) -> "Deferred[Any]":
        match request:
            case Fetch(names):
                return self._fetch_pages(names)
            case PageSearch():
                return self._search_pages(request)
            case Links(names):
                return as_deferred(self.backend.linking(names))
            case ListTitles(namespace):
                return as_deferred(self.backend.listed(namespace))
            case AskPlanner():
                return self.plan(request)
            case Introduction(entity):
                return self.look_up(entity)

    def _fetch_pages(self, names: Sequence[PageName]) -> "Deferred[list[Page | Hidden | None]]":
        found = as_deferred(self.backend.fetch(names))
        return found.addCallback(
            lambda pages: [page and self._page_or_hidden(page) for page in pages]
        )

    def _search_pages(self, query: PageSearch) -> "Deferred[list[Hit | Hidden]]":
        found = as_deferred(
            self.backend.search(query.query, namespaces=query.namespaces, limit=query.limit)
        )
        return found.addCallback(
            lambda hits: [hit if may_read(self.by, hit.page.locks) else Hidden() for hit in hits]
        )

    def _page_or_hidden(self, page: Page) -> Page | Hidden:
        return page if may_read(self.by, page.locks) else Hidden()


def may_read(by: Any, locks: str) -> bool:
    """True if `by` may read a page with this lock. A page without a lock `view` is for builders."""
    is_said = any(part.strip().startswith("view:") for part in locks.split(";"))
    return lock_allows(by, locks if is_said else _BUILDERS, "view")
