"""Test the page "Connect a model": its settings get an answer from a server of that kind."""

from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import override_settings
from twisted.internet.task import Clock

from evennia_ai.services.endpoints import Models
from evennia_ai.services.net.bridge import AsyncBridge
from evennia_ai.services.settings.conf import conf, setting_problems
from tests.docs.fences import Block, blocks
from tests.model_servers.servers import KEY, KINDS, SENTENCE, ModelServer, serve
from tests.services.llm.builders import a_message, a_tool
from tests.services.net.handover import Handover

pytestmark = pytest.mark.service

PAGE = "connect.md"
SHOWN = [block for block in blocks("python") if block.page == PAGE]


def kind_of(block: Block) -> str:
    return block.heading.casefold().replace(" ", "")


def copied(block: Block) -> dict[str, Any]:
    """Return the settings that a page tells users to copy."""
    names: dict[str, Any] = {}
    exec(block.text, names)  # This text is from our own pages, so it may be executed.
    return {name: value for name, value in names.items() if name.startswith("EVENNIA_AI_")}


def at(server: ModelServer, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings, changed to the address of the test's server."""
    if "EVENNIA_AI_BASE_URL" in settings:
        assert urlsplit(settings["EVENNIA_AI_BASE_URL"]).path == server.root
        return {**settings, "EVENNIA_AI_BASE_URL": server.base_url}
    ((name, profile),) = settings["EVENNIA_AI_PROFILES"].items()
    keyed = {"base_url": server.base_url, "api_key_env": "ANTHROPIC_API_KEY"}
    return {**settings, "EVENNIA_AI_PROFILES": {name: {**profile, **keyed}}}


def test_connect_page_has_a_section_for_each_server() -> None:
    assert [kind_of(block) for block in SHOWN] == list(KINDS)


@pytest.mark.parametrize("block", SHOWN, ids=kind_of)
def test_connect_page_settings_get_an_answer_when_copied(
    block: Block, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name in ("OPENROUTER_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, KEY)
    reactor = Handover()
    with serve(kind_of(block)) as server, override_settings(**at(server, copied(block))):
        assert not list(setting_problems())
        server.has_tools = True
        models = Models(conf(), clock=Clock(), bridge=AsyncBridge(reactor))
        reactor.outcome_of(models.prepare(), within_seconds=30)
        (access,) = models.of_role("speaker")
        server.model = access.model_id
        said = (a_message("system", "You are Oren."), a_message("user", "Anna: The ferry?"))
        for tools in ((), (a_tool(),)):
            for listener in (None, [].append):
                request = access.request(said, max_tokens=200, tools=tools, cache_key="npc-1")
                reply = reactor.outcome_of(access.model.complete(request, listener=listener))
                assert reply.text == SENTENCE
                assert reply.usage.input_tokens > 0
        models.close()
        reactor.make_waiting_calls()
