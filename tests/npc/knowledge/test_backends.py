"""Which backend stores the pages of a knowledge base."""

import pytest
from django.test import override_settings
from twisted.internet.defer import Deferred, succeed

from evennia_ai.engine.knowledge.pages.page import BackendError, BaseInfo
from evennia_ai.npc.knowledge.backends import BACKENDS, as_deferred
from evennia_ai.npc.runtime import runtime
from evennia_ai.services.settings.conf import conf
from evennia_ai.store.knowledge.backend import DatabaseBackend


def a_base(backend: str) -> BaseInfo:
    return BaseInfo(key="harbour", name="The harbour", backend=backend)


def test_knowledge_base_in_the_database_has_a_database_backend(stage):
    assert isinstance(runtime().backends.of(a_base("database")), DatabaseBackend)


def test_backend_of_a_knowledge_base_is_created_once(stage):
    assert runtime().backends.of(a_base("database")) is runtime().backends.of(a_base("database"))


def test_new_runtime_creates_new_backends(stage):
    before = runtime().backends.of(a_base("database"))
    stage.talks_with()
    assert runtime().backends.of(a_base("database")) is not before


def test_knowledge_base_in_a_wiki_has_a_mediawiki_backend(stage):
    from evennia_ai.services.wiki.backend import MediaWikiBackend

    wikis = {"harbour": {"api": "https://wiki.example/w/api.php"}}
    with override_settings(EVENNIA_AI_KNOWLEDGE_WIKIS=wikis):
        stage.talks_with(knowledge_wikis=conf().knowledge_wikis)
        assert isinstance(runtime().backends.of(a_base("mediawiki")), MediaWikiBackend)


def test_wiki_without_a_setting_raises_an_error_that_names_the_setting(stage):
    with pytest.raises(BackendError, match="EVENNIA_AI_KNOWLEDGE_WIKIS does not name"):
        runtime().backends.of(a_base("mediawiki"))


def test_unknown_place_raises_an_error_that_lists_the_known_places(stage):
    with pytest.raises(BackendError, match="is not a known place; use one of database"):
        runtime().backends.of(a_base("attic"))
    assert {"database", "mediawiki"} <= set(BACKENDS)


async def _told() -> str:
    return "told"


@pytest.mark.parametrize("make", [lambda: "told", lambda: succeed("told"), _told])
def test_as_deferred_accepts_values_deferreds_and_coroutines(make):
    got: list[str] = []
    answer = as_deferred(make())
    assert isinstance(answer, Deferred)
    answer.addCallback(got.append)
    assert got == ["told"]
