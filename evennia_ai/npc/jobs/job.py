"""A job: one piece of background work of one game, as ids, hashes and numbers.

Whoever does it reads the texts from the tables, which are append-only, and so finds what the game
meant. What comes of it is offered as a proposal; only the game writes what it owns. A job is named
by its `idempotency`: two of one name are one, wherever they were done.

Everything a job's function waits for is a Deferred, in the game and in a worker alike; so a
function is one text, and does the same in both.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Final, Protocol

from pydantic import ConfigDict, Field

VERSION: Final = 1
"""Of the form of jobs and proposals: a worker of another version does none of them."""
MOST_TRIES: Final = 3
"""So often a job is tried, and its proposal applied, that fails in a way nobody foresaw."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is to be done; `given` is JSON, under a kilobyte together with the rest."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=True, extra="forbid")

    kind: Annotated[str, Field(min_length=1)]
    """"compact", "observe", ...: one of the kinds there are."""
    idempotency: Annotated[str, Field(min_length=1)]
    """Unique in the game, made of what the work depends on: "compact:481:3:912:9f2c"."""
    lock: str = ""
    """Of jobs with the same one is done at a time: "npc:12"."""
    queueing_lock: str = ""
    """Of jobs with the same one waits at most: "compact:481"."""
    given: Mapping[str, Any] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)
    """What its NPC may use of models, where that is less than the game's settings allow."""
    deadline: float = 0.0
    """In epoch seconds; what has not begun by then lapses. 0: never."""
    version: int = VERSION


class JobTools(Protocol):
    """What a job's function may use; all of it gives what can be awaited."""

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
        """A `ChatReply` (Deferred), counted, limited, guarded. It fails with ModelError.

        `prompt` are the messages before they were fitted to the model, for who watches.
        """

    def record(self, request: Any) -> Any:
        """The messages to send (Deferred) of a `SentRequest` that a model is about to be asked.

        The game commits the request now, and makes what it gives of its records. A worker writes
        nothing: it gives the same messages, and the request is committed with the proposal, whose
        body tells of it.
        """

    def models(self, role: str) -> tuple[Any, ...]:
        """The `Access`es of a role, each instead of the one before it."""

    def sentences(self) -> Any:
        """The `Sentences` model of the game. SentenceModelError: there is none here."""

    def read(self, work: Callable[..., Any], *values: Any) -> Any:
        """What `work` reads from the tables by values, behind all that was written (Deferred)."""

    def off(self, work: Callable[..., Any], *values: Any) -> Any:
        """What `work` makes of values, where it holds up nobody (Deferred)."""


class JobKind(Protocol):
    """One kind of work: what is done anywhere, without the game and without writing.

    What the game does with a proposal stands with the game (`evennia_ai.npc.upkeep`).
    """

    name: str

    def run(self, job: Job, tools: JobTools) -> Awaitable[Mapping[str, Any]]:
        """The body of the proposal, as JSON. EvenniaAIError: why there is none."""

    def refuse_stale(self, job: Job) -> None:
        """StaleError where what the job was made from is not so any more, as after an erasure.

        A worker asks in the transaction that offers the body, while nobody can erase. It reads the
        tables and nothing that a process remembers of them.
        """
