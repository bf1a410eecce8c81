"""Telemetry: which watchers a game has by its settings.

What a watcher needs beside this project is imported when a setting asks for it, and never else; the
extra `telemetry` installs it. Without it the game runs, unwatched, and says so.
"""

from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any, Final

from django.utils.module_loading import import_string
from evennia.utils import logger

from evennia_ai.game.models.watching import Gauges, Watcher
from evennia_ai.game.watch.request_log import RequestLog
from evennia_ai.llm.resilience import Clock
from evennia_ai.settings.game import Conf
from evennia_ai.settings.kinds import GLOBAL_TRACES

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
    from evennia_ai.game.watch.metrics import Metrics

    return Metrics(gauges, port=conf.metrics_port, reactor=clock)


def _traces(conf: Conf) -> Watcher:
    from evennia_ai.game.watch.tracing import Traces

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
