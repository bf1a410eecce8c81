"""A job: one unit of background work, described by ids, hashes and numbers.

The process that runs a job reads the texts from the append-only tables, so it reads the same texts
that the game had when it made the job. The result is offered as a proposal, because only the game
writes its own data. `idempotency` is the name of a job: two jobs with one name are the same job.

Everything that a job's function waits for is a Deferred, in the game and in workers. Therefore the
same function works in both.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Final, Protocol

from pydantic import ConfigDict, Field

VERSION: Final = 1
"""The version of the format of jobs and proposals. Workers skip jobs of other versions."""
MOST_TRIES: Final = 3
"""The most attempts to do a job, and to apply its result, after unexpected errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A description of the work to do. As JSON it has at most a kilobyte."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=True, extra="forbid")

    kind: Annotated[str, Field(min_length=1)]
    """The kind of work: "compact", "observe", ..."""
    idempotency: Annotated[str, Field(min_length=1)]
    """The name of the job, made of everything the result depends on: "compact:481:3:912:9f2c"."""
    lock: str = ""
    """Jobs with the same lock run one at a time: "npc:12"."""
    queueing_lock: str = ""
    """At most one job with the same queueing lock waits: "compact:481"."""
    given: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)
    """The NPC's own limits for calls of models."""
    deadline: float = 0.0
    """Seconds since 1970. A job that was not started before this time lapses. 0: no deadline."""
    version: int = VERSION


class JobTools(Protocol):
    """What a job's function may use, in the game and in workers."""

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
        """Ask a model. Return a Deferred with the `ChatReply`, which fails with a ModelError.

        The call counts against the limits.

        Args:
            prompt: The messages before they were adapted to the model, for watchers.
        """

    def record(self, request: Any) -> Any:
        """Record a request. Return a Deferred with the messages to send.

        The game commits the request now and returns the messages of its records. A worker writes
        nothing and returns the same messages. Its request is in the body of the proposal, and the
        game commits it with the result.
        """

    def models(self, role: str) -> tuple[Any, ...]:
        """Return the models of a role. Each is a fallback for the one before it."""

    def sentences(self) -> Any:
        """Return the sentence model of the game.

        Raises:
            SentenceModelError: The game has none.
        """

    def read(self, work: Callable[..., Any], *values: Any) -> Any:
        """Call `work` to read the tables after all earlier writes.

        Return a Deferred with its result.
        """

    def off(self, work: Callable[..., Any], *values: Any) -> Any:
        """Call `work` in a thread. Return a Deferred with its result."""


class JobKind(Protocol):
    """The worker's half of one kind of job, which runs anywhere and never writes.

    The game's halves are in `npc.upkeep` and `npc.knowledge.embedding`.
    """

    name: str

    def run(self, job: Job, tools: JobTools) -> Awaitable[Mapping[str, Any]]:
        """Do a job. Return the body of its proposal as JSON.

        Raises:
            EvenniaAIError: The job has no result. The message says why.
        """

    def refuse_stale(self, job: Job) -> None:
        """Check that the job's input still exists. It does not, for example, after an erasure.

        A worker calls this in the transaction that offers the body, in which nobody else can erase.
        It must read the tables and no cache.

        Raises:
            StaleError: The input has changed.
        """
