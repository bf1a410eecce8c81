"""Test a game in which evennia_ai is installed without the extra `game`."""

from typing import Any

import pytest

from evennia_ai.services.settings.conf import conf, setting_problems

A_WIKI = {"KNOWLEDGE_WIKIS": {"isle": {"api": "https://wiki.example.org/api.php"}}}


def told(monkeypatch: pytest.MonkeyPatch, *, installed: bool) -> list[str]:
    monkeypatch.setattr(
        "evennia_ai.services.settings.conf._is_installed", lambda package: installed
    )
    conf.cache_clear()
    found = [f"{one.message} {one.hint}" for one in setting_problems() if one.id == "E102"]
    conf.cache_clear()
    return found


@pytest.mark.parametrize(
    ("values", "asked"),
    [
        ({"BASE_URL": "http://localhost:8080/v1", "MODEL": "m"}, "profile 'default'"),
        ({"PROFILES": {"wise": {"client": "anthropic", "model": "m"}}}, "profile 'wise'"),
        (A_WIKI, "wiki 'isle'"),
    ],
)
def test_missing_http_client_is_an_error_with_the_install_command(
    monkeypatch: pytest.MonkeyPatch, settings_of_ai: Any, values: dict[str, Any], asked: str
) -> None:
    settings_of_ai(**values)

    (problem,) = told(monkeypatch, installed=False)
    assert f"the {asked} asks a server" in problem
    assert problem.endswith('Type: pip install "evennia-ai[game]"')
    assert told(monkeypatch, installed=True) == []


def test_game_without_servers_needs_no_http_client(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(monkeypatch, installed=False) == []
