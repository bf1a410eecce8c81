"""Test the setting for searches by meaning, and what it requires."""

from typing import Any

import pytest

from evennia_ai.services.settings.conf import conf, setting_problems


@pytest.fixture(autouse=True)
def _read_anew() -> Any:
    conf.cache_clear()
    yield
    conf.cache_clear()


def told() -> list[str]:
    return [f"{one.message} {one.hint}" for one in setting_problems() if one.id == "E061"]


def without(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    monkeypatch.setattr("evennia_ai.services.settings.conf.missing_packages", lambda: packages)


def test_game_searches_by_words_only_by_default(monkeypatch: Any) -> None:
    without(monkeypatch, "tokenizers")

    assert conf().knowledge_embeddings is False
    assert told() == []


def test_missing_package_for_embeddings_is_reported_with_the_install_command(
    monkeypatch: Any, settings_of_ai: Any
) -> None:
    without(monkeypatch, "tokenizers", "safetensors")
    settings_of_ai(KNOWLEDGE_EMBEDDINGS=True)

    (problem,) = told()
    assert "needs tokenizers, safetensors" in problem
    assert 'pip install "evennia-ai[embeddings]"' in problem


def test_embeddings_are_on_when_all_is_installed(monkeypatch: Any, settings_of_ai: Any) -> None:
    without(monkeypatch)
    settings_of_ai(KNOWLEDGE_EMBEDDINGS=True)

    assert told() == []
    assert conf().knowledge_embeddings is True


def test_embeddings_value_other_than_true_or_false_is_refused(settings_of_ai: Any) -> None:
    settings_of_ai(KNOWLEDGE_EMBEDDINGS="yes")

    (problem,) = told()
    assert "True or False" in problem


def test_memories_by_meaning_need_the_same_packages(monkeypatch: Any, settings_of_ai: Any) -> None:
    without(monkeypatch, "tokenizers")
    settings_of_ai(MEMORY={"by_meaning": True})

    (problem,) = told()
    assert "EVENNIA_AI_MEMORY['by_meaning'] needs tokenizers" in problem
