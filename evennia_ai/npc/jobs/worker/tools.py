"""What a job's function may use in a worker: models within the game's limits, and threads.

All processes of a game share its limits. Before a call, the worker leases the call's tokens from
what is left of this minute. The use of the day is read from the table of calls. If one worker finds
that a model fails, no worker asks it for a while. If a person stops the game or pauses an NPC,
workers stop too.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar, cast

from django.db import close_old_connections
from twisted.internet.defer import Deferred, maybeDeferred, succeed
from twisted.python.failure import Failure

from evennia_ai.engine.errors import Fault, ModelError, ModelUnavailable
from evennia_ai.engine.prompt.components import GAME, Scope
from evennia_ai.engine.prompt.messages import Message
from evennia_ai.engine.prompt.tokens import ESTIMATE
from evennia_ai.npc.jobs.counting import (
    ModelStopped,
    estimate_usage,
    outcome_word,
    reply_tokens_of,
    usage_of,
)
from evennia_ai.npc.jobs.kinds.forms import SentRequest
from evennia_ai.services.endpoints import Access, Models
from evennia_ai.services.llm.chat import ChatReply, ChatRequest
from evennia_ai.services.llm.profiles import ModelRole
from evennia_ai.services.llm.quotas import DAY_SECONDS, MINUTE_SECONDS, Quota, Quotas, month_of
from evennia_ai.services.llm.sentence_model import Sentences
from evennia_ai.store import model_calls
from evennia_ai.store.core.locks import LOCKED_SECONDS, LockedOut, is_lock, notice_locks
from evennia_ai.store.core.snapshots import refresh_if_changed
from evennia_ai.store.model_calls import GAME_REF, NewCall
from evennia_ai.store.work import taking
from evennia_ai.store.work.taking import Taken

T = TypeVar("T")
log: Final = logging.getLogger(__name__)
REST_SECONDS: Final = 30.0
"""How long workers do not ask a model that failed repeatedly."""
MOST_WAITED_SECONDS: Final = 300.0
"""The longest time that a call waits for tokens."""


class Threads:
    """Threads with their own database connections, which they open again after a failure."""

    def __init__(self, count: int) -> None:
        self._pool: Final = ThreadPoolExecutor(
            count, thread_name_prefix="evennia-ai-work", initializer=notice_locks
        )
        self._locked_out: Final = LockedOut(log.warning)
        self._is_closed = False

    async def run(self, work: Callable[..., T], *values: Any) -> T:
        """Call `work` in a thread and return its result.

        `work` either reads, or writes in one transaction. If another process holds a lock that
        `work` needs, it is called again until the lock is gone.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, self._until_unlocked, work, values)

    def close(self) -> None:
        """Start no more calls, and stop waiting for locks."""
        self._is_closed = True
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _until_unlocked(self, work: Callable[..., T], values: tuple[Any, ...]) -> T:
        """Call `work` in this thread. Call it again while another process holds a lock it needs."""
        while True:
            close_old_connections()
            try:
                made = work(*values)
            except Exception as error:
                if not is_lock(error):
                    self._locked_out.goes_on()
                    raise
                if self._is_closed:
                    raise
            else:
                self._locked_out.goes_on()
                return made
            self._locked_out.waits()
            time.sleep(LOCKED_SECONDS)


class WorkerTools:
    """The tools of one job. `calls` collects the rows of its calls of models."""

    def __init__(self, models: Models, threads: Threads, quotas: Quotas) -> None:
        self.calls: Final[list[NewCall]] = []
        self._models: Final = models
        self._threads: Final = threads
        self._quotas: Final = quotas

    def models(self, role: str) -> tuple[Access, ...]:
        """Return the models of a role, without the offline responder. Each is a fallback."""
        return self._models.thinking(cast(ModelRole, role))

    def sentences(self) -> Sentences:
        """Return the game's sentence model.

        Raises:
            SentenceModelError: The game has none.
        """
        return self._models.sentences()

    def off(self, work: Callable[..., Any], *values: Any) -> "Deferred[Any]":
        """Call `work` in a thread with a database connection. Return a Deferred with its result."""
        return Deferred.fromFuture(asyncio.ensure_future(self._threads.run(work, *values)))

    def read(self, work: Callable[..., Any], *values: Any) -> "Deferred[Any]":
        """Call `work` in a thread with a database connection. Return a Deferred with its result."""
        return self.off(work, *values)

    def record(self, request: SentRequest) -> "Deferred[tuple[Message, ...]]":
        """Return the messages unchanged. The game commits the request with the job's result."""
        return succeed(tuple(one.message for one in request.messages))

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
        """Ask a model. `name` and `prompt` are for watchers, and workers have none."""
        return Deferred.fromCoroutine(
            self._ask_counted(access, request, role=role, npc_ref=npc_ref)
        )

    async def _ask_counted(
        self, access: Access, request: ChatRequest, *, role: str, npc_ref: str
    ) -> ChatReply:
        prompt_tokens = sum(ESTIMATE.of_message(one.content) for one in request.messages)
        if not access.model.offline:
            await self._wait_for_limits(access, npc_ref, prompt_tokens + request.max_tokens)
        started_at = time.time()
        outcome: ChatReply | Failure
        try:
            outcome = await maybeDeferred(access.model.complete, request)
        except Exception:  # count every failure; it is raised again below
            outcome = Failure()
        word = outcome_word(outcome)
        used = usage_of(outcome)
        counted = used or estimate_usage(
            word, prompt_tokens=prompt_tokens, reply_tokens=reply_tokens_of(outcome)
        )
        self.calls.append(
            NewCall(
                npc_ref=npc_ref,
                role=role,
                profile=access.profile.name,
                model=request.model,
                started_at=started_at,
                seconds=max(0.0, time.time() - started_at),
                input_tokens=counted.input_tokens,
                output_tokens=counted.output_tokens,
                cached_tokens=counted.cached_tokens,
                written_tokens=counted.written_tokens,
                nanodollars=access.cost(counted, at=started_at),
                is_estimated=used is None,
                outcome=word,
            )
        )
        await self._tell_others(access, outcome)
        if isinstance(outcome, Failure):
            outcome.raiseException()
        return cast(ChatReply, outcome)

    async def _wait_for_limits(self, access: Access, npc_ref: str, tokens: int) -> None:
        """Wait until the limits allow the call.

        Raises:
            ModelError: They will not allow it soon, or a person stopped it.
        """
        until = time.monotonic() + MOST_WAITED_SECONDS
        while True:
            minute_left = await self.off(_lease_tokens, access.name, npc_ref, tokens, self._quotas)
            if not minute_left:
                return
            if time.monotonic() + minute_left > until:
                why = "the limits of a minute leave no tokens"
                raise ModelUnavailable(access.name, why, was_sent=False)
            await Deferred.fromFuture(asyncio.ensure_future(asyncio.sleep(minute_left)))

    async def _tell_others(self, access: Access, outcome: ChatReply | Failure) -> None:
        """Store whether the model fails, so that other workers do not ask it."""
        if not isinstance(outcome, Failure):
            await self.off(taking.remove_breaker, access.name)
        elif (
            isinstance(outcome.value, ModelError)
            and outcome.value.fault is Fault.TEMPORARY
            and access.breaker is not None
            and access.breaker.state == "open"
        ):
            await self.off(taking.store_open_breaker, access.name, time.time())


def _lease_tokens(name: str, npc_ref: str, tokens: int, quotas: Quotas) -> float:
    """Lease the tokens of a call. Return 0.0, or how many seconds to wait before trying again.

    Call in a thread.

    Raises:
        ModelError: The call must not be made.
    """
    now = time.time()
    refresh_if_changed()
    halts = model_calls.halts()
    halt = halts.get(GAME_REF) or halts.get(npc_ref)
    if halt is not None:
        raise ModelStopped(name, str(halt))
    failing_since = taking.open_since(name)
    if failing_since is not None and (left := failing_since + REST_SECONDS - now) > 0:
        raise ModelUnavailable(
            name, "a worker has found that it fails", retry_in_seconds=left, was_sent=False
        )
    by_ref = {GAME_REF: quotas.game, **({npc_ref: quotas.npc} if npc_ref else {})}
    for ref, quota in by_ref.items():
        if (why := _why_never(ref, quota, tokens=tokens, now=now)) is not None:
            raise ModelUnavailable(name, why, was_sent=False)
    most = {
        ref: Taken(tokens=quota.tokens_per_minute, calls=quota.calls_per_minute)
        for ref, quota in by_ref.items()
    }
    if taking.take_tokens(now, tokens=tokens, most=most) is None:
        return 0.0
    return MINUTE_SECONDS - now % MINUTE_SECONDS


def _why_never(ref: str, quota: Quota, *, tokens: int, now: float) -> str | None:
    """Return why the limits do not allow the call today, None if they may."""
    who = f"NPC #{ref}" if ref else "the game"
    if quota.tokens_per_minute is not None and tokens > quota.tokens_per_minute:
        return f"a call of {tokens} tokens is more than {who} may use in a minute"
    scope = Scope(kind="npc", ref=ref) if ref else GAME
    if quota.dollars_per_month is not None:
        month = model_calls.use_in_days(month_of(now)[0], scope)
        if month.dollars >= quota.dollars_per_month:
            return f"the limit of the month of {who} is reached"
    if (quota.calls_per_day, quota.tokens_per_day, quota.dollars_per_day) == (None, None, None):
        return None
    used = model_calls.use_since(now - now % DAY_SECONDS, scope)
    over_calls = quota.calls_per_day is not None and used.calls + 1 > quota.calls_per_day
    over_tokens = quota.tokens_per_day is not None and used.tokens + tokens > quota.tokens_per_day
    over_money = quota.dollars_per_day is not None and used.dollars >= quota.dollars_per_day
    is_reached = over_calls or over_tokens or over_money
    return f"the limits of the day of {who} are reached" if is_reached else None
