"""Which settings create which watchers, and what happens if their packages are missing."""

import builtins
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from evennia_ai.npc.model_calls.watching import Gauges, Watch
from evennia_ai.npc.runtime import watchers_of
from evennia_ai.npc.watch.metrics import Metrics
from evennia_ai.npc.watch.request_log import RequestLog
from evennia_ai.npc.watch.tracing import Traces
from evennia_ai.services.settings.conf import conf, doubtful
from evennia_ai.services.settings.kinds import Tracing

EXPORTERS: list[InMemorySpanExporter] = []


def exporter() -> InMemorySpanExporter:
    """An exporter that a game can name in `EVENNIA_AI_TRACES`."""
    EXPORTERS.append(InMemorySpanExporter())
    return EXPORTERS[-1]


def gauges() -> Gauges:
    return Gauges(waiting=0, in_flight=0, breakers={}, is_stopped=False)


def watchers(**settings: Any) -> list[Any]:
    from twisted.internet.task import Clock

    return list(watchers_of(replace(conf(), **settings), clock=Clock(), gauges=gauges))


def without(*packages: str) -> Any:
    """Return Python's import function as it behaves if these packages are not installed."""
    real = builtins.__import__

    def refuses(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] in packages:
            raise ImportError(f"No module named '{name}'", name=name)
        return real(name, *args, **kwargs)

    return refuses


def test_no_watcher_is_created_without_settings() -> None:
    assert watchers() == []


@pytest.mark.long
def test_telemetry_packages_are_not_imported_without_settings() -> None:
    """This needs a process of its own, because the packages are already imported here."""
    program = (
        "import sys, django; django.setup(); import evennia; evennia._init();"
        "import evennia_ai.npc.runtime as running; running.runtime();"
        "wanted = ('prometheus_client', 'opentelemetry.sdk');"
        "print([name for name in wanted if name in sys.modules])"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300
    )
    assert told.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"log_llm_requests": "preview"}, RequestLog),
        ({"metrics_port": 9100}, Metrics),
        ({"traces": Tracing(to="global")}, Traces),
        ({"traces": Tracing(to="tests.npc.watch.test_watchers.exporter")}, Traces),
    ],
)
def test_setting_creates_its_watcher(settings: Any, kind: type) -> None:
    (watcher,) = watchers(**settings)
    assert isinstance(watcher, kind)
    watcher.close()


def test_spans_reach_the_games_exporter_when_the_server_stops() -> None:
    (watcher,) = watchers(traces=Tracing(to="tests.npc.watch.test_watchers.exporter"))
    watch = Watch([watcher], now=lambda: 100.0)
    watch.turn_began("5", npc_name="Oren", conversation=1)
    watch.turn_ended("5", "answered")
    watch.close()
    assert [span.name for span in EXPORTERS[-1].get_finished_spans()] == ["invoke_agent Oren"]


@pytest.mark.parametrize(
    ("settings", "package"),
    [
        ({"metrics_port": 9100}, "prometheus_client"),
        ({"traces": Tracing(to="global")}, "opentelemetry"),
    ],
)
def test_game_runs_without_a_watcher_and_logs_it_when_the_package_is_missing(
    logged: list[str], monkeypatch: pytest.MonkeyPatch, settings: Any, package: str
) -> None:
    monkeypatch.setattr(builtins, "__import__", without(package))
    found = watchers(**settings, log_llm_requests="full")
    monkeypatch.undo()
    assert [type(one) for one in found] == [RequestLog]
    assert package in logged[0]
    assert 'pip install "evennia-ai[telemetry]"' in logged[0]


def test_missing_exporter_is_logged(logged: list[str]) -> None:
    assert watchers(traces=Tracing(to="world.nowhere.exporter")) == []
    assert "world" in logged[0]


@pytest.mark.parametrize(
    ("setting", "value", "package"),
    [
        ("metrics_port", 9100, "prometheus_client"),
        ("traces", Tracing(to="global"), "opentelemetry"),
    ],
)
def test_check_warns_of_a_missing_package(
    monkeypatch: pytest.MonkeyPatch, setting: str, value: Any, package: str
) -> None:
    monkeypatch.setattr("evennia_ai.services.settings.conf.find_spec", lambda name: None)
    (doubt,) = [one for one in _doubts(**{setting: value}) if one.id == "W004"]
    assert package in doubt.message
    assert doubt.hint == 'Type: pip install "evennia-ai[telemetry]"'


def test_check_reports_nothing_when_the_package_is_installed() -> None:
    found = _doubts(metrics_port=9100, traces=Tracing(to="global"))
    assert [one for one in found if one.id == "W004"] == []


def _doubts(**given: Any) -> list[Any]:
    return list(doubtful(replace(conf(), **given), given_budget={}))
