"""Test the settings for wikis that are knowledge bases, and for Wikipedia."""

import pytest
from django.core import checks

from evennia_ai.services.settings.conf import conf
from evennia_ai.services.wiki.site import Site

API = "https://wiki.example/w/api.php"
WITH_BOT = {"api": API, "user": "Lore@game", "password_env": "HARBOUR_WIKI_PASSWORD"}


@pytest.fixture(autouse=True)
def _read_anew(monkeypatch):
    monkeypatch.delenv("HARBOUR_WIKI_PASSWORD", raising=False)
    conf.cache_clear()
    yield
    conf.cache_clear()


def found() -> list[checks.CheckMessage]:
    return [m for m in checks.run_checks() if (m.id or "").startswith("evennia_ai.")]


def test_no_wiki_and_no_wikipedia_is_used_by_default():
    assert (conf().knowledge_wikis, conf().knowledge_wikipedia) == ({}, "")


def test_wiki_setting_becomes_a_site_with_the_key_of_its_knowledge_base(settings_of_ai):
    settings_of_ai(KNOWLEDGE_WIKIS={"harbour": {"api": API, "namespaces": {"Sources": 102}}})

    assert conf().knowledge_wikis == {
        "harbour": Site(key="harbour", api=API, namespaces={"Sources": 102})
    }
    assert found() == []


def test_wiki_password_comes_from_the_environment_and_is_never_shown(settings_of_ai, monkeypatch):
    monkeypatch.setenv("HARBOUR_WIKI_PASSWORD", "hunter2-of-the-wiki")
    settings_of_ai(KNOWLEDGE_WIKIS={"harbour": WITH_BOT})

    assert conf().knowledge_wikis["harbour"].password.reveal() == "hunter2-of-the-wiki"
    assert "hunter2" not in repr(conf())


def test_wiki_password_sent_unencrypted_gives_a_warning(settings_of_ai, monkeypatch):
    monkeypatch.setenv("HARBOUR_WIKI_PASSWORD", "hunter2-of-the-wiki")
    site = {**WITH_BOT, "api": "http://wiki.example/api.php"}
    settings_of_ai(KNOWLEDGE_WIKIS={"harbour": site})
    (message,) = found()

    assert message.id == "evennia_ai.W007"
    assert message.msg.startswith("The wiki 'harbour' is sent its password over plain http")


def test_missing_wiki_password_gives_a_warning(settings_of_ai):
    settings_of_ai(KNOWLEDGE_WIKIS={"harbour": WITH_BOT})
    (message,) = found()

    assert message.id == "evennia_ai.W005"
    assert message.msg == "The wiki 'harbour': the environment has no HARBOUR_WIKI_PASSWORD."


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([], ": must be a dictionary of wikis by their keys."),
        ({"harbour": API}, "['harbour']: must be a dictionary with an api."),
        ({"a key": {"api": API}}, "['a key']: must be the key of a knowledge base."),
        ({"harbour": {}}, "['harbour'].api: is missing"),
        ({"harbour": {"api": "wiki.example"}}, "['harbour'].api: must be an address such as"),
        ({"harbour": {"api": "http://a:b@c/api.php"}}, "['harbour'].api: must be an address"),
        ({"harbour": {"api": API, "usr": "x"}}, "['harbour']: there is no field 'usr'; did you"),
        ({"harbour": {"api": API, "password": "hunter2"}}, "never put a password in settings"),
        ({"harbour": {"api": API, "user": "Lore"}}, "user and password_env go together"),
        ({"harbour": {"api": API, "password_env": "pass word"}}, "must be the name of an envir"),
        ({"harbour": {"api": API, "namespaces": {"Talk": 2}}}, "leave out Talk"),
        ({"harbour": {"api": API, "namespaces": {"Sources": 3}}}, "must be even numbers"),
        ({"harbour": {"api": API, "request_seconds": 0}}, ".request_seconds: must be greater"),
        ({"harbour": {"api": API, "user_agent": "two\nlines"}}, "plain ASCII on one line"),
    ],
)
def test_wrong_wiki_is_reported_without_a_possible_password(settings_of_ai, given, told):
    settings_of_ai(KNOWLEDGE_WIKIS=given)
    (message,) = found()

    assert message.id == "evennia_ai.E056"
    assert message.msg.startswith("EVENNIA_AI_KNOWLEDGE_WIKIS")
    assert told in message.msg
    assert "hunter2" not in message.msg


@pytest.mark.parametrize("given", ["en.wikipedia.org", "http://anna:hunter2@wiki.example", None])
def test_wrong_address_of_wikipedia_is_refused(settings_of_ai, given):
    settings_of_ai(KNOWLEDGE_WIKIPEDIA=given)
    (message,) = found()

    assert message.id == "evennia_ai.E057"
    assert "hunter2" not in message.msg
