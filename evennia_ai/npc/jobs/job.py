"""A job: one piece of background work, described by ids, hashes and numbers.

Whoever runs it reads the texts from the append-only tables, and so reads what the game meant. The
result is offered as a proposal; only the game writes its own data. `idempotency` names a job: two
jobs with one name are the same job.

Everything that a job's function waits for is a Deferred, in the game and in workers. One function
therefore works in both.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Final, Protocol

from pydantic import ConfigDict, Field

VERSION: Final = 1
"""The version of the format of jobs and proposals. Workers skip jobs of other versions."""
MOST_TRIES: Final = 3
"""The most attempts for a job, and for applying it, after unexpected errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What to do. `given` is JSON; the whole job has less than a kilobyte."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=True, extra="forbid")

    kind: Annotated[str, Field(min_length=1)]
    """The kind of work: "compact", "observe", ..."""
    idempotency: Annotated[str, Field(min_length=1)]
    """Unique in the game, made of what the work depends on: "compact:481:3:912:9f2c"."""
    lock: str = ""
    """Jobs with the same lock run one at a time: "npc:12"."""
    queueing_lock: str = ""
    """At most one job with the same queueing lock waits: "compact:481"."""
    given: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)
    """The NPC's own limits for calls of models."""
    deadline: float = 0.0
    """In epoch seconds. A job that has not started by then lapses. 0: never."""
    version: int = VERSION


class JobTools(Protocol):
    """What a job's function may use. Every result can be awaited."""

    def ask(
        self,
        access: Any,
        request: Any,
        *,
        role: str,
        npc_ref: str,
        name: str = "",
        prompt: Sequence[Any] = (),
    ) -> Any:
        """Return a `ChatReply` (Deferred). The call is counted and limited.

        The Deferred fails with ModelError.

        Args:
            prompt: The messages before they were adapted to the model, for watchers.
        """

    def record(self, request: Any) -> Any:
        """Return the messages to send (Deferred) for a `SentRequest`.

        The game commits the request now and returns the messages of its records. A worker writes
        nothing and returns the same messages. Its request is committed with the proposal, whose
        body contains it.
        """

    def models(self, role: str) -> tuple[Any, ...]:
        """Return the `Access`es of a role. Each is a fallback for the one before it."""

    def sentences(self) -> Any:
        """Return the `Sentences` model of the game.

        Raises:
            SentenceModelError: There is none.
        """

    def read(self, work: Callable[..., Any], *values: Any) -> Any:
        """Return what `work` reads from the tables, after all earlier writes (Deferred)."""

    def off(self, work: Callable[..., Any], *values: Any) -> Any:
        """Return what `work` computes, in a thread (Deferred)."""


class JobKind(Protocol):
    """One kind of work: what runs anywhere, without the game and without writing.

    The game's half is in `npc.upkeep` and `npc.knowledge.embedding`.
    """

    name: str

    def run(self, job: Job, tools: JobTools) -> Awaitable[Mapping[str, Any]]:
        """Return the body of the proposal, as JSON.

        Raises:
            EvenniaAIError: The reason why there is none.
        """

    def refuse_stale(self, job: Job) -> None:
        """Check that the job's input still exists, for example after an erasure.

        A worker calls it in the transaction that offers the body, during which nobody can erase. It
        reads the tables and no cache.

        Raises:
            StaleError: The input has changed.
        """
