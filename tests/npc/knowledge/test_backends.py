"""Where the pages of a base are."""

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


def test_the_games_database_is_the_usual_place(stage):
    assert isinstance(runtime().backends.of(a_base("database")), DatabaseBackend)


def test_a_backend_is_made_once(stage):
    assert runtime().backends.of(a_base("database")) is runtime().backends.of(a_base("database"))


def test_another_runtime_has_backends_of_its_own(stage):
    before = runtime().backends.of(a_base("database"))
    stage.talks_with()
    assert runtime().backends.of(a_base("database")) is not before


def test_a_wiki_is_where_the_settings_say(stage):
    from evennia_ai.services.wiki.backend import MediaWikiBackend

    wikis = {"harbour": {"api": "https://wiki.example/w/api.php"}}
    with override_settings(EVENNIA_AI_KNOWLEDGE_WIKIS=wikis):
        stage.talks_with(knowledge_wikis=conf().knowledge_wikis)
        assert isinstance(runtime().backends.of(a_base("mediawiki")), MediaWikiBackend)


def test_a_wiki_that_the_settings_do_not_name_is_told(stage):
    with pytest.raises(BackendError, match="EVENNIA_AI_KNOWLEDGE_WIKIS does not name"):
        runtime().backends.of(a_base("mediawiki"))


def test_a_place_that_nobody_knows_is_told_with_those_there_are(stage):
    with pytest.raises(BackendError, match="is not a known place; use one of database"):
        runtime().backends.of(a_base("attic"))
    assert {"database", "mediawiki"} <= set(BACKENDS)


async def _told() -> str:
    return "told"


@pytest.mark.parametrize("make", [lambda: "told", lambda: succeed("told"), _told])
def test_an_answer_is_waited_for_whether_it_is_there_or_comes_later(make):
    got: list[str] = []
    answer = as_deferred(make())
    assert isinstance(answer, Deferred)
    answer.addCallback(got.append)
    assert got == ["told"]
