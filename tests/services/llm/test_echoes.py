"""Test that errors have the server's own words, without words of the prompt."""

import json

import pytest

from evennia_ai.services.llm.echoes import without_prompt
from tests.services.llm.builders import a_call, a_message, a_request
from tests.services.llm.clients.stub_server import (
    Behaviour,
    StubServer,
    fails,
    sends,
)
from tests.services.llm.conftest import Making
from tests.services.net.handover import Handover

WHISPER = "The gold is under the blue boat, code ZEBRA-4471."
REQUEST = a_request(
    messages=(
        a_message("system", "You are Oren, a ferryman."),
        a_message("user", f"Anna: {WHISPER}"),
        a_message("assistant", "", tool_calls=(a_call(),)),
        a_message("user", "ZEBRA-4471"),
        a_message("user", "hi"),
    )
)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("conversation roles must alternate", "conversation roles must alternate"),
        (f"bad content: {WHISPER}", "bad content: [...]."),
        (f"'input': {{'content': 'Anna: {WHISPER}'}}, 'x'", "'input': {'content': '[...].'}, 'x'"),
        ("near 'IS UNDER THE BLUE BOAT' (400)", "near '[...]' (400)"),
        ("gold; is under the (blue) boat", "[...]"),
        ("flagged: zebra 4471; hi there", "flagged: [...]; hi there"),
        (json.dumps({"msg": WHISPER}), '{"msg": "[...]."}'),
        ("", ""),
    ],
)
def test_words_of_the_prompt_are_removed_from_an_error(words: str, shown: str) -> None:
    assert without_prompt(words, REQUEST) == shown


@pytest.mark.parametrize(
    "behaviour",
    [
        fails(400, f"bad content: {WHISPER}"),
        fails(422, json.dumps({"detail": [{"loc": ["body"], "msg": f"not valid: {WHISPER}"}]})),
        fails(503, f"cannot answer {WHISPER}"),
        sends(f"<html>{WHISPER}".encode()),
        sends(json.dumps({"error": {"message": WHISPER}}).encode()),
        sends(
            json.dumps(
                {"choices": [{"message": {"content": None, "refusal": f"I will not: {WHISPER}"}}]}
            ).encode()
        ),
    ],
)
def test_error_of_a_call_has_no_words_of_its_prompt(
    behaviour: Behaviour, server: StubServer, model: Making, reactor: Handover
) -> None:
    server.behaves(behaviour)
    problem = reactor.outcome_of(model(max_retries=0).complete(REQUEST))
    assert isinstance(problem, Exception)
    assert "gold" not in str(problem) and "ZEBRA" not in str(problem)
    assert "[...]" in str(problem)
