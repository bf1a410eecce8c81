"""Test the settings for limits, logs, metrics and traces."""

from typing import Any

import pytest

from evennia_ai.services.llm.quotas import Quotas
from evennia_ai.services.settings.conf import conf, setting_problems
from evennia_ai.services.settings.kinds import Tracing

VARIABLES = ("AI_LOG_LLM_REQUESTS", "EVENNIA_AI_LOG_LLM_REQUESTS")


@pytest.fixture(autouse=True)
def _read_anew(monkeypatch: pytest.MonkeyPatch) -> Any:
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    conf.cache_clear()
    yield
    conf.cache_clear()


def told(check: str) -> list[str]:
    return [f"{one.message} {one.hint}" for one in setting_problems() if one.id == check]


def test_game_is_not_watched_by_default() -> None:
    read = conf()
    assert (read.log_llm_requests, read.metrics_port, read.traces) == ("", 0, Tracing())
    assert read.limits == Quotas()


def test_limits_are_read_from_the_settings(settings_of_ai: Any) -> None:
    settings_of_ai(LIMITS={"player": {"calls_per_minute": 3}})
    assert conf().limits.player.calls_per_minute == 3


def test_impossible_limit_is_reported(settings_of_ai: Any) -> None:
    settings_of_ai(LIMITS={"player": {"calls": 3}})
    (problem,) = told("E042")
    assert problem.startswith("EVENNIA_AI_LIMITS.player: there is no limit 'calls'")


@pytest.mark.parametrize(
    ("given", "mode"),
    [(False, ""), (True, "preview"), ("full", "full"), ("0", ""), ("1", "preview")],
)
def test_setting_chooses_what_the_request_log_contains(
    settings_of_ai: Any, given: Any, mode: str
) -> None:
    settings_of_ai(LOG_LLM_REQUESTS=given)
    assert conf().log_llm_requests == mode


@pytest.mark.parametrize("variable", VARIABLES)
def test_environment_switches_the_request_log_on(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "1")
    assert conf().log_llm_requests == "preview"


@pytest.mark.parametrize("variable", VARIABLES)
def test_wrong_log_mode_in_the_environment_names_the_variable(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "perhaps")
    (problem,) = told("E045")
    assert "(from the environment) 'perhaps' is not allowed" in problem


@pytest.mark.parametrize("given", [1, None, "all"])
def test_unknown_log_mode_is_refused(settings_of_ai: Any, given: Any) -> None:
    settings_of_ai(LOG_LLM_REQUESTS=given)
    assert told("E045")


@pytest.mark.parametrize("given", [-1, 70_000, "9100"])
def test_impossible_port_is_refused(settings_of_ai: Any, given: Any) -> None:
    settings_of_ai(METRICS_PORT=given)
    assert told("E046")


def test_traces_are_off_and_without_content_by_default(settings_of_ai: Any) -> None:
    settings_of_ai(TRACES={"to": "world.traces.exporter"})
    assert conf().traces == Tracing(to="world.traces.exporter", with_content=False)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ([], "EVENNIA_AI_TRACES: must be a dictionary"),
        ({"at": ""}, "EVENNIA_AI_TRACES: there is no 'at'; there are to, content"),
        ({"to": "here"}, "EVENNIA_AI_TRACES.to: must be"),
        ({"content": 1}, "EVENNIA_AI_TRACES.content: must be True or False, not 1"),
    ],
)
def test_impossible_traces_are_reported(settings_of_ai: Any, given: Any, problem: str) -> None:
    settings_of_ai(TRACES=given)
    (message,) = told("E047")
    assert message.startswith(problem)
