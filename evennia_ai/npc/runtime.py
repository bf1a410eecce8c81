"""The runtime: what all NPCs of one server process share, such as clock, models and scheduler.

It is created on first use, from the settings and Twisted's reactor. Tests install a runtime of
their own. Objects that live as long as the process hold `Current` and read the runtime from it each
time. Short-lived objects, such as a turn, hold the runtime itself. Packages for watchers are
imported only if a setting asks for them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from secrets import token_hex
from threading import Thread
from traceback import clear_frames
from typing import Any, Final, TypeVar

from django.utils.module_loading import import_string
from evennia.server.models import ServerConfig
from evennia.utils import logger
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.interfaces import IReactorThreads
from twisted.internet.threads import deferToThreadPool
from twisted.python.failure import Failure

from evennia_ai.engine.errors import EvenniaAIError
from evennia_ai.npc.background.in_process import InThread
from evennia_ai.npc.background.work import Work
from evennia_ai.npc.filtering import GameFilter
from evennia_ai.npc.floor.addressing import Companies
from evennia_ai.npc.floor.bidding import Floors
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
from evennia_ai.store.model_calls import spent_by_each, use_by_each

GAME_ID: Final = "evennia_ai_game_id"
"""The key of the id in Evennia's `ServerConfig`."""


def game_id() -> str:
    """Return the id of this game. The first call makes and stores it."""
    found: str | None = ServerConfig.objects.conf(GAME_ID)
    if found is None:
        found = token_hex(16)
        ServerConfig.objects.conf(GAME_ID, found)
    return found


READY_BOOKS: Final = "server/.lorebooks"
"""The folder in the game's folder that keeps parsed lorebooks from one start to the next."""
SHUTDOWN_SECONDS: Final = 2.0
"""How long a stopping server waits until the last spans are sent."""

Gauging = Callable[[], Gauges]


def watchers_of(conf: Conf, *, clock: Clock, gauges: Gauging) -> Iterator[Watcher]:
    """Yield the watchers that the settings ask for. `gauges` returns the state of the game."""
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
                    f"evennia_ai: a watcher cannot start: {error};"
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
    """Return an OpenTelemetry provider that sends its spans in a thread of its own."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=Resource.create({"service.name": "evennia_ai"}))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


def _shut_down(provider: Any) -> None:
    """Send the last spans in a thread, so that an unreachable collector does not block the stop."""
    thread = Thread(target=provider.shutdown, name="evennia_ai-traces", daemon=True)
    thread.start()
    thread.join(SHUTDOWN_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """What a turn needs in addition to the NPC and the store."""

    conf: Conf
    clock: Clock
    models: Models
    limits: Limits
    watch: Watch
    calls: ModelCalls
    backends: Backends
    meanings: Meanings | None
    """Compares memories by meaning. None if the game compares them by words only."""

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
    filter: GameFilter
    told_of_limits: Recently
    """Remembers which NPCs recently told which players about a limit."""
    ticker: Ticker
    book_builds: BookBuilds
    work: Work
    """Background work, which this process or the workers do."""

    @property
    def access(self) -> Access:
        """Return the model that answers for NPCs without settings of their own."""
        return self.models.of_role("speaker")[0]

    def place_of(self, settings: NPCSettings) -> Place:
        """Return the place in the queues for turns of an NPC with these settings."""
        access = self.models.of_role("speaker", settings=settings)[0]
        return Place(access.where, access.name, access.most_at_once)

    def close(self) -> None:
        """Start no more turns, and give up the running ones."""
        self.scheduler.stop()
        self.floors.close()
        self.compactor.close()
        self.models.close()  # this ends turns; work that they start at their end is given up below
        self.gestures.close()
        self.idle_time.close()
        self.work.close()
        self.ticker.close()
        self.watch.close()


class Current:
    """Refers to the runtime that is in use now."""

    @cached_property
    def runtime(self) -> Runtime:
        """Return this process's runtime. The first call creates it."""
        from twisted.internet import reactor

        return runtime_of(conf(), clock=reactor)

    @property
    def installed(self) -> Runtime | None:
        """Return the runtime if there is one, else None."""
        return vars(self).get("runtime")


T = TypeVar("T")

current: Final = Current()


def runtime() -> Runtime:
    """Return this process's runtime. For entry points such as hooks and commands."""
    return current.runtime


def install(new: Runtime | None) -> Runtime | None:
    """Use `new` from now on, and return the earlier runtime. None: create another when needed."""
    old = current.installed
    vars(current).pop("runtime", None)
    if new is not None:
        current.runtime = new
    return old


def stop() -> None:
    """Commit what NPCs perceived, and end this process's runtime, if there is one."""
    live = current.installed
    if live is None:
        return
    live.writer.end()
    live.recorder.flush()
    live.close()  # before `install`: code that still runs while closing must find this runtime
    install(None)


def runtime_of(
    conf: Conf, *, clock: Clock, access: Access | None = None, models: Models | None = None
) -> Runtime:
    """Return a runtime for these settings. `models` or `access` replaces the models they name."""
    models = models or Models(
        conf, clock=clock, only=access, game_id=game_id, log_error=logger.log_err
    )
    scheduler = Scheduler(
        clock,
        max_running=conf.max_concurrent_turns,
        queue_limit=conf.queue_limit,
        speaker_limit=min(conf.speaker_limit, conf.queue_limit),
        cooldown_seconds=conf.cooldown_seconds,
        on_error=_log_failed_turn,
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
        signs=Signs(
            {
                "lost": conf.lost_line,
                "stopped": conf.stopped_line,
                "opted_out": conf.opted_out_line,
                "withheld": conf.filter.gesture,
            },
            now=clock.seconds,
        ),
        filter=GameFilter(conf.filter, clock),
        told_of_limits=Recently(clock.seconds),
        ticker=Ticker(clock, ticks_alone=conf.tick_alone),
        book_builds=BookBuilds(
            conf.lore,
            in_thread=_threads_of(clock),
            # Without a reactor there is no game that would start again.
            folder=conf.game_folder / READY_BOOKS if IReactorThreads.providedBy(clock) else None,
        ),
        work=work,
    )


def _limits(conf: Conf, clock: Clock) -> Limits:
    """Return the limits of the settings. They read earlier use from the database."""
    return Limits(
        conf.limits,
        now=clock.seconds,
        used_since=lambda since: (use_by_each("npc_ref", since), use_by_each("player_ref", since)),
        spent_since=spent_by_each,
    )


def _work_gauges(*, now: float) -> WorkGauges | None:
    """Return the last known state of the workers, for the installed runtime."""
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
    """Return the watchers: the check for hints in replies, and those that the settings name."""

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
    """Return a function that calls work in a thread, or at once if no reactor runs."""

    def run(work: Callable[..., Any], *args: Any) -> "Deferred[Any]":
        if not IReactorThreads.providedBy(clock) or not getattr(clock, "running", False):
            return maybeDeferred(work, *args)
        reactor: Any = clock
        return deferToThreadPool(reactor, reactor.getThreadPool(), outcome_of, work, *args)

    return run


def outcome_of(work: Callable[..., T], *args: Any) -> T | Failure:
    """Return the result or the failure of `work`. Call this in a thread of Twisted's pool.

    The frame of Twisted's thread refers to the failure, and the failure's traceback refers to that
    frame. This cycle would keep all values in the frames until the garbage collector finds it.
    Therefore an error of this package loses its traceback. Other errors keep the lines of the
    traceback, but not the values of `work`.
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


def _log_failed_turn(npc_ref: str, failure: Failure) -> None:
    told = failure.getTraceback()
    logger.log_err(f"evennia_ai: a turn of NPC {npc_ref} ended in an error\n{told}")
