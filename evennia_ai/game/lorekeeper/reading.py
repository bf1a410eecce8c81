"""Reading: an assembly's requests, answered from a base for whoever asks.

The assembly does no I/O; here its requests meet backends, the planner's model and Wikipedia. What
the locks hide from who asks never reaches it: a `Hidden` stands in its place. Nothing here waits.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from twisted.internet.defer import Deferred

from evennia_ai.game.knowledge.backends import later
from evennia_ai.game.mind.viewers import allows
from evennia_ai.knowledge.assembly.assembly import assemble
from evennia_ai.knowledge.assembly.config import AssemblyRules
from evennia_ai.knowledge.assembly.packages import Package
from evennia_ai.knowledge.assembly.requests import (
    Article,
    Failed,
    Fetch,
    Hidden,
    Introduction,
    Links,
    Listed,
    LoreTask,
    PageSearch,
    Plan,
    Request,
    Step,
)
from evennia_ai.knowledge.backends import Backend, Hit
from evennia_ai.knowledge.pages.page import Page, PageName

_BUILDERS: Final = "view:perm(Builder)"
"""Who may read what has no lock of its own."""

Planning: TypeAlias = Callable[[Plan], "Deferred[str | Failed]"]
LookingUp: TypeAlias = Callable[[str], "Deferred[Article | Failed | None]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Who reads, from where; `plan` asks the planner's model, `look_up` finds an introduction."""

    by: Any
    backend: Backend
    plan: Planning
    look_up: LookingUp

    def read(self, task: LoreTask, rules: AssemblyRules) -> "Deferred[Package]":
        """The package for a task. It fails with what the assembly or the backend fails with."""
        return Deferred.fromCoroutine(self._driven(assemble(task, rules=rules)))

    async def _driven(self, steps: Step[Package]) -> Package:
        """Send the assembly answer after answer until it comes to its package."""
        answer: Any = None
        while True:
            try:
                request = steps.send(answer)
            except StopIteration as done:
                package: Package = done.value
                return package
            answer = await self._answered(request)

    def _answered(self, request: Request) -> "Deferred[Any]":
        match request:
            case Fetch(names):
                return self._fetched(names)
            case PageSearch():
                return self._found(request)
            case Links(names):
                return later(self.backend.linking(names))
            case Listed(namespace):
                return later(self.backend.listed(namespace))
            case Plan():
                return self.plan(request)
            case Introduction(entity):
                return self.look_up(entity)

    def _fetched(self, names: Sequence[PageName]) -> "Deferred[list[Page | Hidden | None]]":
        found = later(self.backend.fetch(names))
        return found.addCallback(lambda pages: [page and self._shown(page) for page in pages])

    def _found(self, query: PageSearch) -> "Deferred[list[Hit | Hidden]]":
        found = later(
            self.backend.search(query.query, namespaces=query.namespaces, limit=query.limit)
        )
        return found.addCallback(
            lambda hits: [hit if may_read(self.by, hit.page.locks) else Hidden() for hit in hits]
        )

    def _shown(self, page: Page) -> Page | Hidden:
        return page if may_read(self.by, page.locks) else Hidden()


def may_read(by: Any, locks: str) -> bool:
    """Whether the lock `view` lets `by` read it; where there is none, builders may."""
    is_said = any(part.strip().startswith("view:") for part in locks.split(";"))
    return allows(by, locks if is_said else _BUILDERS, "view")
