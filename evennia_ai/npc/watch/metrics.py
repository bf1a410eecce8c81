"""Counts and durations of turns and model calls, served to Prometheus on this machine only.

Metrics need `prometheus-client` (the extra `telemetry`) and a port in `EVENNIA_AI_METRICS_PORT`.
Their names follow OpenTelemetry's GenAI conventions; names that these lack begin with `evennia_ai`.
Labels and values contain no player, no NPC and no text. The page is built in the reactor's thread.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from evennia.utils import logger
from twisted.internet.error import CannotListenError
from twisted.web.resource import Resource
from twisted.web.server import Site

from evennia_ai.npc.model_calls.limits import Refusal
from evennia_ai.npc.model_calls.watching import (
    Gauges,
    TurnOutcome,
    WatchedCall,
    WatchedTurn,
    Watcher,
    WorkGauges,
)
from evennia_ai.services.llm.chat import ChatReply
from evennia_ai.services.llm.money import NANODOLLARS
from evennia_ai.services.llm.odd_replies import Oddity
from evennia_ai.store.model_calls import NewCall

LOOPBACK: Final = "127.0.0.1"
RETRY_SECONDS: Final = 5.0
SECONDS: Final = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 120.0)
TOKENS: Final = (16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144)
BREAKER_STATES: Final = ("closed", "half_open", "open")

_OF_CALL: Final = (
    "gen_ai_operation_name",
    "gen_ai_provider_name",
    "gen_ai_request_model",
    "evennia_ai_role",
)


class Metrics(Watcher):
    """A watcher that counts events and serves the counts. `gauges` is called for each request."""

    def __init__(self, gauges: Callable[[], Gauges], *, port: int, reactor: Any) -> None:
        from prometheus_client import CollectorRegistry, Counter, Histogram

        self._port_number: Final = port
        self._reactor: Final = reactor
        self._port: Any = None
        self._retry: Any = None
        self.registry: Final = CollectorRegistry()
        self.registry.register(_Standing(gauges))
        more: dict[str, Any] = {"registry": self.registry}
        self._turns = Counter("evennia_ai_turns", "Turns that ended", ["outcome"], **more)
        self._turn_seconds = Histogram(
            "evennia_ai_turn_duration_seconds",
            "Seconds from the start to the end of a turn",
            buckets=SECONDS,
            **more,
        )
        self._calls = Counter(
            "evennia_ai_model_calls", "Model calls that ended", [*_OF_CALL, "outcome"], **more
        )
        self._tokens = Counter(
            "evennia_ai_tokens",
            "Tokens of model calls by kind",
            ["gen_ai_request_model", "kind"],
            **more,
        )
        self._cost = Counter(
            "evennia_ai_cost_dollars",
            "Dollars that model calls cost, without calls whose price is not known",
            ["gen_ai_request_model", "evennia_ai_role"],
            **more,
        )
        self._unpriced = Counter(
            "evennia_ai_unpriced_calls",
            "Model calls whose price is not known",
            ["gen_ai_request_model"],
            **more,
        )
        self._used = Histogram(
            "gen_ai_client_token_usage",
            "Tokens of a model call",
            [*_OF_CALL, "gen_ai_token_type"],
            buckets=TOKENS,
            **more,
        )
        self._seconds = Histogram(
            "gen_ai_client_operation_duration_seconds",
            "Seconds that a model call takes",
            [*_OF_CALL, "error_type"],
            buckets=SECONDS,
            **more,
        )
        self._first_piece = Histogram(
            "gen_ai_client_operation_time_to_first_chunk_seconds",
            "Seconds until the first part of a reply arrives",
            _OF_CALL,
            buckets=SECONDS,
            **more,
        )
        self._odd = Counter(
            "evennia_ai_odd_replies",
            "Replies to turns that do not seem to come from the character",
            ["gen_ai_request_model", "kind"],
            **more,
        )
        self._refusals = Counter(
            "evennia_ai_refusals", "Calls that a limit refused", ["scope", "limit"], **more
        )
        self._withheld = Counter(
            "evennia_ai_withheld", "Lines that the game's filter withheld", ["side"], **more
        )
        self._dropped = Counter("evennia_ai_dropped", "Events whose answer was dropped", **more)

    def answered(self, call: WatchedCall, reply: ChatReply, row: NewCall) -> None:
        """Count a call with a reply."""
        self._ended(call, row, error="")

    def failed(self, call: WatchedCall, error: BaseException, row: NewCall) -> None:
        """Count a call without a reply."""
        self._ended(call, row, error=type(error).__name__)

    def odd_reply(self, model: str, odd: Sequence[Oddity]) -> None:
        """Count each oddity of a reply."""
        for kind in odd:
            self._odd.labels(model, kind).inc()

    def turn_ended(self, turn: WatchedTurn, outcome: TurnOutcome, ended_at: float) -> None:
        """Count a turn."""
        self._turns.labels(outcome).inc()
        self._turn_seconds.observe(max(0.0, ended_at - turn.began_at))

    def refused(self, npc_ref: str, refusal: Refusal) -> None:
        """Count a call that a limit refused."""
        self._refusals.labels(refusal.scope, refusal.limit).inc()

    def withheld(self, npc_ref: str, side: str, reason: str) -> None:
        """Count a line that the game's filter withheld."""
        self._withheld.labels(side).inc()

    def dropped(self, npc_ref: str, count: int, why: str) -> None:
        """Count answers that were dropped before they began."""
        self._dropped.inc(count)

    @property
    def port(self) -> int:
        """Return the port of the page, 0 if it is not open."""
        return self._port.getHost().port if self._port is not None else 0

    def open(self) -> None:
        """Open the port. If another process has it, try again a few seconds later."""
        try:
            self._port = self._reactor.listenTCP(
                self._port_number, Site(MetricsPage(self)), interface=LOOPBACK
            )
        except CannotListenError as error:
            logger.log_err(
                f"evennia_ai: metrics have no port, trying again in {RETRY_SECONDS:.0f} s: {error}"
            )
            self._retry = self._reactor.callLater(RETRY_SECONDS, self.open)

    def close(self) -> None:
        """Close the port."""
        if self._retry is not None and self._retry.active():
            self._retry.cancel()
        if self._port is not None:
            self._port.stopListening()
            self._port = None

    def page(self) -> bytes:
        """Return the metrics in the text format of Prometheus."""
        from prometheus_client import generate_latest

        page: bytes = generate_latest(self.registry)
        return page

    def _ended(self, call: WatchedCall, row: NewCall, *, error: str) -> None:
        labels = ("chat", call.provider, row.model, row.role)
        self._calls.labels(*labels, row.outcome).inc()
        self._seconds.labels(*labels, error).observe(row.seconds)
        kinds = {"input": row.input_tokens, "output": row.output_tokens}
        for kind, tokens in kinds.items():
            self._used.labels(*labels, kind).observe(tokens)
            self._tokens.labels(row.model, kind).inc(tokens)
        self._tokens.labels(row.model, "cached").inc(row.cached_tokens or 0)
        if row.nanodollars is None:
            self._unpriced.labels(row.model).inc()
        elif row.nanodollars:
            self._cost.labels(row.model, row.role).inc(row.nanodollars / NANODOLLARS)
        if row.first_piece_seconds is not None:
            self._first_piece.labels(*labels).observe(row.first_piece_seconds)


class _Standing:
    """A collector of the gauges, which reads them only when they are requested."""

    def __init__(self, gauges: Callable[[], Gauges]) -> None:
        self._gauges = gauges

    def describe(self) -> Iterable[Any]:
        """Return nothing. Otherwise the registry would read the gauges before the first request."""
        return ()

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import GaugeMetricFamily

        now = self._gauges()
        waiting = "Events that wait for an answer"
        yield GaugeMetricFamily("evennia_ai_queue_length", waiting, value=now.waiting)
        under_way = "Turns that are running"
        yield GaugeMetricFamily("evennia_ai_turns_in_flight", under_way, value=now.in_flight)
        stopped = "Whether the whole game is stopped"
        yield GaugeMetricFamily("evennia_ai_stopped", stopped, value=float(now.is_stopped))
        breakers = GaugeMetricFamily(
            "evennia_ai_breaker_state",
            "1 for the current state of the circuit breaker, else 0",
            labels=["endpoint", "state"],
        )
        for endpoint, state in now.breakers.items():
            for one in BREAKER_STATES:
                breakers.add_metric([endpoint, one], float(one == state))
        yield breakers
        if now.work is not None:
            yield from _of_work(now.work)


def _of_work(work: WorkGauges) -> Iterator[Any]:
    from prometheus_client.core import GaugeMetricFamily

    jobs = GaugeMetricFamily(
        "evennia_ai_jobs", "Jobs of the workers by kind and state", labels=["kind", "state"]
    )
    for state, jobs_of in (("waiting", work.waiting), ("taken", work.taken)):
        for kind, count in jobs_of.items():
            jobs.add_metric([kind, state], count)
    yield jobs
    for name, told, number in (
        ("workers", "Workers that are alive", work.workers),
        ("jobs_lag_seconds", "Seconds that the oldest job has waited", work.lag_seconds),
        ("jobs_set_aside", "Jobs that failed and are not tried again", work.set_aside),
        ("jobs_unsent", "Jobs that could not be sent to the queue", work.unsent),
    ):
        yield GaugeMetricFamily(f"evennia_ai_{name}", told, value=number)


class MetricsPage(Resource):
    """The root of the site, whose only page is `/metrics`."""

    isLeaf = False  # noqa: N815 - Twisted's own name

    def __init__(self, metrics: Metrics) -> None:
        super().__init__()
        self.putChild(b"metrics", _Page(metrics))


class _Page(Resource):
    isLeaf = True  # noqa: N815

    def __init__(self, metrics: Metrics) -> None:
        super().__init__()
        self._metrics = metrics

    def render_GET(self, request: Any) -> bytes:  # noqa: N802
        from prometheus_client import CONTENT_TYPE_LATEST

        request.setHeader(b"content-type", CONTENT_TYPE_LATEST.encode())
        return self._metrics.page()
