"""Test that a key that a server sends back is never said, shown or stored."""

import json
import re
from typing import Any

import pytest

from evennia_ai.engine.errors import ModelError
from evennia_ai.services.llm.chat import ChatReply
from evennia_ai.services.net.secrets import MASK, SecretText
from tests.services.llm.builders import a_request
from tests.services.llm.clients.stub_server import (
    StubServer,
    answers,
    calls,
    fails,
    sends,
    streamed,
    streams,
)
from tests.services.llm.conftest import Making, MakingClaude
from tests.services.net.handover import Handover
from tests.services.net.keys import FORMS, LONG_KEY, pieces_of

SAID = re.compile(r"My key: \*\*\*=* Aye\.")
ECHOES = pytest.mark.parametrize(
    "form", ["as it stands", "reversed", "in base64", "in hexadecimal", "with blanks"]
)


@pytest.mark.req("S0-53")
@ECHOES
@pytest.mark.parametrize("kind", ["openai", "stream"])
def test_key_in_a_reply_is_masked(
    server: StubServer, model: Making, reactor: Handover, form: str, kind: str
) -> None:
    written = FORMS[form](LONG_KEY)
    pieces: list[str] = []
    if kind == "stream":
        server.behaves(streams(*streamed("My key: ", *written, " Aye.")))
    else:
        server.behaves(answers(f"My key: {written} Aye."))
    asked = model(api_key=SecretText(LONG_KEY)).complete(
        a_request(), listener=pieces.append if kind == "stream" else None
    )
    reply = reactor.outcome_of(asked)
    assert isinstance(reply, ChatReply)
    assert SAID.fullmatch(reply.text)
    assert "".join(pieces) in ("", reply.text)
    assert bool(pieces) == (kind == "stream")


@ECHOES
def test_key_in_an_anthropic_reply_is_masked(
    server: StubServer, claude: MakingClaude, reactor: Handover, form: str
) -> None:
    text = f"My key: {FORMS[form](LONG_KEY)} Aye."
    body = {"content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "model": "c"}
    server.behaves(sends(json.dumps(body).encode()))
    asked = claude(api_key=SecretText(LONG_KEY)).complete(a_request())
    assert SAID.fullmatch(reactor.outcome_of(asked).text)


@ECHOES
def test_key_in_a_tool_call_is_masked(
    server: StubServer, model: Making, reactor: Handover, form: str
) -> None:
    written = json.dumps({"text": FORMS[form](LONG_KEY)})
    server.behaves(calls("say", written))
    reply: Any = reactor.outcome_of(model(api_key=SecretText(LONG_KEY)).complete(a_request()))
    assert json.loads(reply.tool_calls[0].arguments)["text"].startswith(MASK)


@ECHOES
def test_key_in_an_error_is_not_quoted(
    server: StubServer, model: Making, reactor: Handover, form: str
) -> None:
    server.behaves(fails(401, f"wrong key {FORMS[form](LONG_KEY)}"))
    error = reactor.outcome_of(model(api_key=SecretText(LONG_KEY)).complete(a_request()))
    assert isinstance(error, ModelError)
    assert "wrong key ***" in str(error)
    assert pieces_of(str(error), FORMS[form](LONG_KEY)) == []
