"""Runs jobs in the game's own process, with the same functions as in workers.

Nothing of a job is in the database until its result is applied. A reload forgets running jobs.
Their callers request them again.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, cast

from evennia.utils import logger
from twisted.internet.defer import Deferred, succeed
from twisted.python.failure import Failure

from evennia_ai.engine.errors import EvenniaAIError, HistoryConflictError, StaleError
from evennia_ai.engine.prompt.messages import Message
from evennia_ai.npc.background.applying import RECORDED, Ending, GameKind
from evennia_ai.npc.jobs.job import MOST_TRIES, Job
from evennia_ai.npc.jobs.kinds.forms import SentRequest
from evennia_ai.npc.model_calls.calls import ModelCalls
from evennia_ai.npc.model_calls.limits import CallKey
from evennia_ai.services.endpoints import Access
from evennia_ai.services.llm.chat import ChatReply, ChatRequest
from evennia_ai.services.llm.profiles import ModelRole
from evennia_ai.services.llm.sentence_model import Sentences
from evennia_ai.services.settings.workers import WorkerSettings
from evennia_ai.store.history.model_requests import ModelRequest

InThread = Callable[..., "Deferred[Any]"]
Commit = Callable[[SentRequest], ModelRequest]


class GameTools:
    """What a job's function may use in the game.

    `recorded` lists the requests that it committed.
    """

    def __init__(
        self, calls: ModelCalls, in_thread: InThread, *, commit: Commit | None = None
    ) -> None:
        """Prepare the tools. `commit` commits a request before it is sent; None commits nothing."""
        self._calls: Final = calls
        self._in_thread: Final = in_thread
        self._commit: Final = commit
        self.recorded: Final[list[ModelRequest]] = []

    def ask(
        self,
        access: Access,
        request: ChatRequest,
        *,
        role: str,
        npc_ref: str,
        name: str = "",
        prompt: Sequence[Message] = (),
    ) -> "Deferred[ChatReply]":
        """Ask a model. Return a Deferred with the reply.

        The row of the call is written at its end.
        """
        key = CallKey(npc_ref=npc_ref, role=role, name=name)
        return self._calls.asked(access, request, key, prompt=prompt)

    def record(self, request: SentRequest) -> "Deferred[tuple[Message, ...]]":
        """Commit the request. Return a Deferred with the messages of its records.

        If the commit fails, the Deferred fails, and no model may be asked.
        """
        if self._commit is None:
            return succeed(tuple(one.message for one in request.messages))
        written = self._calls.writer.write(partial(self._commit, request))
        return written.addCallback(self._note_recorded)

    def models(self, role: str) -> tuple[Access, ...]:
        """Return the models of a role, without the offline responder. Each is a fallback."""
        return self._calls.models.thinking(cast(ModelRole, role))

    def sentences(self) -> Sentences:
        """Return the game's sentence model.

        Raises:
            SentenceModelError: The game has none.
        """
        return self._calls.models.sentences()

    def read(self, work: Callable[..., Any], *values: Any) -> "Deferred[Any]":
        """Call `work` in the writer's thread after all earlier writes. Return a Deferred."""
        return self._calls.writer.read(partial(work, *values))

    def off(self, work: Callable[..., Any], *values: Any) -> "Deferred[Any]":
        """Call `work` in a thread, if the server has threads. Return a Deferred with its result."""
        return self._in_thread(work, *values)

    def _note_recorded(self, asked: ModelRequest) -> tuple[Message, ...]:
        self.recorded.append(asked)
        return asked.messages


async def done_here(kind: GameKind, job: Job, calls: ModelCalls, in_thread: InThread) -> object:
    """Do a job in this process and return what its `apply` returns.

    Errors of the job's function and of `apply` are raised. If another process wrote to the
    conversation at the same moment, `apply` is called once more.
    """
    commit = None if kind.records is None else partial(kind.records, job)
    tools = GameTools(calls, in_thread, commit=commit)
    body = await kind.does.run(job, tools)
    if tools.recorded:
        body = {**body, RECORDED: [asked.record.place for asked in tools.recorded]}
    if kind.prepares is not None:
        body = kind.prepares(job, body)
    apply = partial(kind.applies.apply, job, body)
    try:
        return await calls.writer.write(apply)
    except HistoryConflictError as error:
        logger.log_err(
            f"evennia_ai: the result of job {job.idempotency} is applied once more: {error}"
        )
        return await calls.writer.write(apply)


class InProcess:
    """Runs jobs in this process. Jobs with the same lock run one after the other."""

    def __init__(
        self,
        settings: WorkerSettings,
        calls: ModelCalls,
        kinds: Mapping[str, GameKind],
        *,
        in_thread: InThread,
    ) -> None:
        self._settings: Final = settings
        self._calls: Final = calls
        self._kinds: Final = kinds
        self._in_thread: Final = in_thread
        self._waiting: dict[str, tuple[Job, Deferred[tuple[Ending, str]]]] = {}
        self._doing: dict[str, Job] = {}
        self._failures: dict[str, int] = {}

    def submit(self, job: Job) -> "Deferred[tuple[Ending, str]]":
        """Start or queue a job. The Deferred fires with how it ended, and the reason."""
        done: Deferred[tuple[Ending, str]] = Deferred()
        if job.idempotency in self._waiting or job.idempotency in self._doing:
            done.callback(("waiting", f"{job.idempotency} is running"))
        elif self._is_one_waiting(job):
            done.callback(("waiting", f"another job with the lock {job.queueing_lock} is waiting"))
        elif self._failures.get(job.idempotency, 0) >= MOST_TRIES:
            done.callback(("poisoned", f"{job.idempotency} failed {MOST_TRIES} times"))
        elif self.waiting(job.kind) >= self._settings.cap_of(job.kind):
            done.callback(("over", f"{self.waiting(job.kind)} of {job.kind} wait"))
        else:
            self._waiting[job.idempotency] = (job, done)
            self._start_unlocked_jobs()
        return done

    def waiting(self, kind: str) -> int:
        """Return how many jobs of a kind wait for their lock."""
        return sum(job.kind == kind for job, _ in self._waiting.values())

    @property
    def doing(self) -> tuple[Job, ...]:
        """Return the running jobs."""
        return tuple(self._doing.values())

    def _is_one_waiting(self, job: Job) -> bool:
        locks = (one.queueing_lock for one, _ in self._waiting.values())
        return bool(job.queueing_lock) and job.queueing_lock in locks

    def _start_unlocked_jobs(self) -> None:
        for name, (job, done) in tuple(self._waiting.items()):
            held = {one.lock for one in self._doing.values() if one.lock}
            if name in self._waiting and job.lock not in held:
                del self._waiting[name]
                self._doing[name] = job
                Deferred.fromCoroutine(self._run_job(job)).addCallback(self._tell, job, done)

    def _tell(
        self, ending: tuple[Ending, str], job: Job, done: "Deferred[tuple[Ending, str]]"
    ) -> None:
        del self._doing[job.idempotency]
        done.callback(ending)
        self._start_unlocked_jobs()

    async def _run_job(self, job: Job) -> tuple[Ending, str]:
        clock = self._calls.clock
        if job.deadline and clock.seconds() > job.deadline:
            return "lapsed", "nobody started it in time"
        kind = self._kinds[job.kind]
        try:
            await done_here(kind, job, self._calls, self._in_thread)
        except StaleError as error:
            return "stale", str(error)
        except EvenniaAIError as error:
            return "failed", str(error)
        except Exception:  # an unexpected error ends only this job
            self._failures[job.idempotency] = self._failures.get(job.idempotency, 0) + 1
            failure = Failure()
            logger.log_err(
                f"evennia_ai: job {job.idempotency} failed unexpectedly\n{failure.getTraceback()}"
            )
            return "failed", f"{failure.type.__name__}: {failure.getErrorMessage()}"
        self._failures.pop(job.idempotency, None)
        return "applied", ""
