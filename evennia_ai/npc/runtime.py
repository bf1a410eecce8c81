"""The runtime: what the NPCs of one server process share: the clock, the models, the scheduler.

Made when it is first needed, from the settings and Twisted's reactor; tests install their own. Who
lives as long as the process is handed `current` where it is made, and looks there which runtime is
in use; what is done once (a turn) is handed the runtime itself. What a watcher needs beside this
project is imported when a setting asks for it, and never else.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from threading import Thread
from traceback import clear_frames
from typing import Any, Final, TypeVar

from django.utils.module_loading import import_string
from evennia.utils import logger
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.interfaces import IReactorThreads
from twisted.internet.threads import deferToThreadPool
from twisted.python.failure import Failure

from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.npc.background.in_process import InThread
from evennia_ai.npc.background.work import Work
from evennia_ai.npc.floor.bidding import Floors
from evennia_ai.npc.floor.company import Companies
from evennia_ai.npc.floor.scheduler import Place, Scheduler
from evennia_ai.npc.floor.ticks import Ticker
from evennia_ai.npc.inputs.book_builds import BookBuilds
from evennia_ai.npc.inputs.meanings import Meanings
from evennia_ai.npc.knowledge import embedding
from evennia_ai.npc.knowledge.backends import Backends
from evennia_ai.npc.knowledge.own_pages import Threads
from evennia_ai.npc.knowledge.search import HintEchoes
from evennia_ai.npc.model_calls.calls import ModelCalls
from evennia_ai.npc.model_calls.limits import Limits, is_stopped
from evennia_ai.npc.model_calls.naming import game_id
from evennia_ai.npc.model_calls.watching import Gauges, Watch, Watcher, WorkGauges
from evennia_ai.npc.recording.event_recorder import Recorder
from evennia_ai.npc.recording.writer import Writer
from evennia_ai.npc.senses.events import Lines
from evennia_ai.npc.speech.signs import Recently, Signs
from evennia_ai.npc.speech.voice import Gestures
from evennia_ai.npc.upkeep import compacting
from evennia_ai.npc.upkeep.compacting import Compactor
from evennia_ai.npc.upkeep.consolidating import Consolidator
from evennia_ai.npc.upkeep.idle_time import IdleTime
from evennia_ai.npc.watch.request_log import RequestLog
from evennia_ai.services.endpoints import Access, Models
from evennia_ai.services.llm.resilience import Clock
from evennia_ai.services.settings.conf import conf
from evennia_ai.services.settings.game import Conf
from evennia_ai.services.settings.kinds import GLOBAL_TRACES
from evennia_ai.services.settings.npc import NPCSettings
from evennia_ai.store.model_calls import use_by_each

SHUTDOWN_SECONDS: Final = 2.0
"""How long the last spans may take to be sent when the server stops."""

Gauging = Callable[[], Gauges]


def watchers_of(conf: Conf, *, clock: Clock, gauges: Gauging) -> Iterator[Watcher]:
    """The watchers that the settings ask for; `gauges` tells metrics how things stand."""
    if conf.log_llm_requests:
        secrets = tuple(conf.api_keys.values())
        yield RequestLog(in_full=conf.log_llm_requests == "full", secrets=secrets)
    for wanted, make in (
        (conf.metrics_port, lambda: _metrics(conf, clock, gauges)),
        (conf.traces.to, lambda: _traces(conf)),
    ):
        if wanted:
            try:
                yield make()
            except ImportError as error:
                logger.log_err(
                    f"evennia_ai: not watched, {error};"
                    ' pip install "evennia-ai[telemetry]" installs what is missing'
                )


def _metrics(conf: Conf, clock: Clock, gauges: Gauging) -> Watcher:
    from evennia_ai.npc.watch.metrics import Metrics

    return Metrics(gauges, port=conf.metrics_port, reactor=clock)


def _traces(conf: Conf) -> Watcher:
    from evennia_ai.npc.watch.tracing import Traces

    with_content = conf.traces.with_content
    if conf.traces.to == GLOBAL_TRACES:
        from opentelemetry.trace import get_tracer_provider

        return Traces(get_tracer_provider(), with_content=with_content)
    provider = _provider(import_string(conf.traces.to)())
    return Traces(provider, with_content=with_content, shutdown=lambda: _shut_down(provider))


def _provider(exporter: Any) -> Any:
    """A tracer of our own that sends its spans from a thread of its own."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=Resource.create({"service.name": "evennia_ai"}))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


def _shut_down(provider: Any) -> None:
    """Send what is left, in a thread: a collector that is away must not hold the server up."""
    thread = Thread(target=provider.shutdown, name="evennia_ai-traces", daemon=True)
    thread.start()
    thread.join(SHUTDOWN_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """What turns need that is neither the NPC's nor the store's."""

    conf: Conf
    clock: Clock
    models: Models
    limits: Limits
    watch: Watch
    calls: ModelCalls
    backends: Backends
    meanings: Meanings | None
    """What memories mean; None where the game compares them by words alone."""

    scheduler: Scheduler
    writer: Writer
    recorder: Recorder
    compactor: Compactor
    idle_time: IdleTime
    lines: Lines
    companies: Companies
    floors: Floors
    gestures: Gestures
    signs: Signs
    told_of_limits: Recently
    """Which NPC told which player of a limit."""
    ticker: Ticker
    book_builds: BookBuilds
    work: Work
    """What NPCs do besides speaking, here or in workers."""

    """What this game shares with others."""

    @property
    def access(self) -> Access:
        """The model that NPCs without settings of their own speak with."""
        return self.models.of_role("speaker")[0]

    def place_of(self, settings: NPCSettings) -> Place:
        """Where the turns of an NPC with these settings wait for a reply."""
        access = self.models.of_role("speaker", settings=settings)[0]
        return Place(access.where, access.name, access.most_at_once)

    def close(self) -> None:
        """Start no turn any more, give up those in flight."""
        self.scheduler.stop()
        self.floors.close()
        self.compactor.close()
        self.models.close()  # turns end by it, and what they do then is given up after it
        self.gestures.close()
        self.idle_time.close()
        self.work.close()
        self.ticker.close()
        self.watch.close()


class Current:
    """Which runtime is in use."""

    @cached_property
    def runtime(self) -> Runtime:
        """This process's runtime, made when it is first asked for."""
        from twisted.internet import reactor

        return runtime_of(conf(), clock=reactor)

    @property
    def installed(self) -> Runtime | None:
        """The same where it was made, else None."""
        return vars(self).get("runtime")


T = TypeVar("T")

current: Final = Current()


def runtime() -> Runtime:
    """This process's runtime, for the doors of the game: hooks, commands, start and stop."""
    return current.runtime


def install(new: Runtime | None) -> Runtime | None:
    """Use `new` from now on, None to make another when it is needed; the one there was."""
    old = current.installed
    vars(current).pop("runtime", None)
    if new is not None:
        current.runtime = new
    return old


def stop() -> None:
    """End this process's runtime, if it has one; what NPCs perceived is committed first."""
    live = current.installed
    if live is None:
        return
    live.writer.end()
    live.recorder.flush()
    live.close()  # while it is installed: who ends by it must not make another one
    install(None)


def runtime_of(
    conf: Conf, *, clock: Clock, access: Access | None = None, models: Models | None = None
) -> Runtime:
    """A runtime for these settings; with `models`, or `access` alone, instead of theirs."""
    models = models or Models(
        conf, clock=clock, only=access, game_id=game_id, log_error=logger.log_err
    )
    scheduler = Scheduler(
        clock,
        max_running=conf.max_concurrent_turns,
        queue_limit=conf.queue_limit,
        speaker_limit=min(conf.speaker_limit, conf.queue_limit),
        cooldown_seconds=conf.cooldown_seconds,
        on_error=_logged,
    )
    writer = Writer(clock)
    recorder = Recorder(clock, writer, queue_limit=conf.queue_limit, time_suffix=conf.time_suffix)
    limits, watch = _limits(conf, clock), _watch(conf, clock, models, scheduler)
    calls = ModelCalls(models=models, limits=limits, watch=watch, clock=clock, writer=writer)
    in_thread = _threads_of(clock)
    work = Work(conf.workers, calls, in_thread=in_thread, game_id=game_id)
    compactor = Compactor(conf.compaction, calls, in_thread=in_thread, work=work)
    consolidator = Consolidator(conf, calls, in_thread=in_thread, work=work)
    work.add(compacting.KIND)
    work.add(consolidator.kind)
    work.add(embedding.KIND)
    return Runtime(
        conf=conf,
        clock=clock,
        models=models,
        limits=limits,
        watch=watch,
        calls=calls,
        backends=Backends(conf, models, Threads(run=in_thread, clock=clock), work=work),
        meanings=Meanings(in_thread=in_thread, model=models.sentences)
        if conf.memory.by_meaning
        else None,
        scheduler=scheduler,
        writer=writer,
        recorder=recorder,
        compactor=compactor,
        idle_time=IdleTime(compactor, consolidator, clock),
        lines=Lines(seconds=clock.seconds, most_npcs=conf.line_npcs, most_calls=conf.line_calls),
        companies=Companies(clock),
        floors=Floors(clock, when_committed=recorder.then, hop_seconds=conf.hop_seconds),
        gestures=Gestures(clock, after_seconds=conf.thinking_seconds),
        signs=Signs({"lost": conf.lost_line, "stopped": conf.stopped_line}, now=clock.seconds),
        told_of_limits=Recently(clock.seconds),
        ticker=Ticker(clock, ticks_alone=conf.tick_alone),
        book_builds=BookBuilds(conf.lore, in_thread=_threads_of(clock)),
        work=work,
    )


def _limits(conf: Conf, clock: Clock) -> Limits:
    """The limits of the settings, which remember what was used today."""
    return Limits(
        conf.limits,
        now=clock.seconds,
        used_since=lambda since: (use_by_each("npc_ref", since), use_by_each("player_ref", since)),
    )


def _work_gauges(*, now: float) -> WorkGauges | None:
    """How the workers of the runtime that runs stand, as it last looked."""
    status = current.installed.work.status if current.installed is not None else None
    if status is None:
        return None
    return WorkGauges(
        workers=len(status.workers) - len(status.silent(now)),
        waiting={one.kind: one.waiting for one in status.queues},
        taken={one.kind: one.taken for one in status.queues},
        lag_seconds=status.lag_seconds(now),
        set_aside=len(status.poisoned),
        unsent=status.unsent,
    )


def _watch(conf: Conf, clock: Clock, models: Models, scheduler: Scheduler) -> Watch:
    """Who notices hints in replies, and whoever the settings want to be told of calls."""

    def gauges() -> Gauges:
        breakers = {one.name: one.breaker.state for one in models.accesses() if one.breaker}
        return Gauges(
            waiting=scheduler.waiting_in_all,
            in_flight=scheduler.running,
            breakers=breakers,
            is_stopped=bool(is_stopped()),
            work=_work_gauges(now=clock.seconds()),
        )

    watchers = (HintEchoes(_threads_of(clock)), *watchers_of(conf, clock=clock, gauges=gauges))
    return Watch(watchers, now=clock.seconds)


def _threads_of(clock: Clock) -> InThread:
    """The threads of Twisted's reactor; where none runs, all of it is done at once."""

    def run(work: Callable[..., Any], *args: Any) -> "Deferred[Any]":
        if not IReactorThreads.providedBy(clock) or not getattr(clock, "running", False):
            return maybeDeferred(work, *args)
        reactor: Any = clock
        return deferToThreadPool(reactor, reactor.getThreadPool(), outcome_of, work, *args)

    return run


def outcome_of(work: Callable[..., T], *args: Any) -> T | Failure:
    """Return what `work` makes of `args`, or the failure that it ends in.

    For a thread of Twisted's, whose frame keeps the failure. The failure's traceback refers to that
    frame, so both stay until the collector finds them, with all that other frames have in hand by
    then. An error of ours says enough and loses its traceback. Of any other error only what `work`
    had in hand is let go; the lines of the traceback stay.
    """
    try:
        return work(*args)
    except EvenniaAIError as error:
        cause: BaseException | None = error
        while cause is not None:
            cause.__traceback__ = None
            cause = cause.__cause__ or cause.__context__
        return Failure(error)
    except Exception as error:
        clear_frames(error.__traceback__)
        del work, args
        return Failure()


def _logged(npc_ref: str, failure: Failure) -> None:
    told = failure.getTraceback()
    logger.log_err(f"evennia_ai: a turn of NPC {npc_ref} ended in an error\n{told}")
