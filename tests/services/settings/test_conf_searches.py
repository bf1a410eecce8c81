"""Test the settings for searches of NPCs and for vaults."""

import pytest
from django.core import checks

from evennia_ai.engine.knowledge.settings import DEFAULT_SEARCH_BUDGET, SearchBudget
from evennia_ai.services.settings.conf import conf


@pytest.fixture(autouse=True)
def _read_anew():
    conf.cache_clear()
    yield
    conf.cache_clear()


def found() -> list[checks.CheckMessage]:
    return [m for m in checks.run_checks() if (m.id or "").startswith("evennia_ai.")]


def test_vaults_are_kept_and_the_budget_is_usual_by_default():
    assert (conf().knowledge_vault, conf().knowledge_budget) == (True, DEFAULT_SEARCH_BUDGET)


def test_search_settings_of_the_game_are_used(settings_of_ai):
    settings_of_ai(KNOWLEDGE_VAULT=False, KNOWLEDGE_BUDGET={"calls": 3, "free": 2})

    assert conf().knowledge_vault is False
    assert conf().knowledge_budget == SearchBudget(calls=3, free=2)
    assert found() == []


def test_contradictory_search_budget_gives_a_warning_and_is_ignored(settings_of_ai):
    settings_of_ai(KNOWLEDGE_BUDGET={"calls": 3, "free": 3})
    (message,) = found()

    assert message.id == "evennia_ai.W006"
    assert "free (3) must be less than calls (3)" in message.msg
    assert conf().knowledge_budget == DEFAULT_SEARCH_BUDGET


@pytest.mark.parametrize(
    ("name", "value", "check"),
    [("KNOWLEDGE_VAULT", "no", "E058"), ("KNOWLEDGE_BUDGET", 10, "E059")],
)
def test_search_setting_of_a_wrong_type_stops_the_start(settings_of_ai, name, value, check):
    settings_of_ai(**{name: value})
    (message,) = found()

    assert message.id == f"evennia_ai.{check}"
