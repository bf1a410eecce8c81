"""Test vectors of texts from a server, with good and bad responses."""

import json
import math
import struct
from collections.abc import Iterator

import pytest

from evennia_ai.services.llm.clients.embeddings import EmbeddingServer
from evennia_ai.services.llm.profiles import Endpoint
from evennia_ai.services.llm.sentence_model import SentenceModelError
from evennia_ai.services.net.secrets import SecretText
from tests.model_servers.servers import KEY, ModelServer, serve
from tests.services.llm.clients.stub_server import Behaviour, StubServer, fails, sends, stalls

pytestmark = pytest.mark.service


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def openai() -> Iterator[ModelServer]:
    with serve("openai") as server:
        yield server


def asking(base_url: str, key: str = KEY) -> EmbeddingServer:
    return EmbeddingServer(
        Endpoint(
            name="vectors",
            base_url=base_url,
            model="text-embedding-3-small",
            api_key=SecretText(key),
            timeout_seconds=60.0,
        )
    )


def numbers(vector: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(vector) // 4}f", vector)


def likeness(one: bytes, other: bytes) -> float:
    return sum(a * b for a, b in zip(numbers(one), numbers(other), strict=True))


def test_vectors_have_the_order_of_the_texts_and_length_1(openai: ModelServer) -> None:
    boat, ferry, bread = asking(openai.base_url).vectors(
        ("a boat on the river", "the ferry is a boat", "bread and butter")
    )
    assert all(math.isclose(math.hypot(*numbers(one)), 1, abs_tol=1e-5) for one in (boat, ferry))
    assert likeness(boat, ferry) > likeness(boat, bread)
    (path, body), *_ = openai.requests
    assert (path, body["model"]) == ("/v1/embeddings", "text-embedding-3-small")


def test_embedding_request_omits_what_servers_refuse(openai: ModelServer) -> None:
    asking(openai.base_url).vectors(("", "\ud800", "x" * 100_000))
    (_, body), *_ = openai.requests
    assert body["input"] == [" ", "?", "x" * 4_000]


def test_embedding_id_depends_on_address_and_vector_length(openai: ModelServer) -> None:
    first = asking(openai.base_url).id
    assert asking(openai.base_url).id == first
    openai.embeds = 768
    assert asking(openai.base_url).id != first


def test_embedding_server_with_a_new_model_is_noticed(openai: ModelServer) -> None:
    model = asking(openai.base_url)
    before = model.id
    openai.embeds = 768
    with pytest.raises(SentenceModelError, match="a new model"):
        model.vectors(("a boat",))
    assert model.id != before
    assert len(model.vectors(("a boat",))[0]) == 768 * 4


def test_embedding_error_reports_a_wrong_key_without_showing_it(openai: ModelServer) -> None:
    with pytest.raises(SentenceModelError, match="status 401") as told:
        asking(openai.base_url, key="sk-wrong-0815").vectors(("a boat",))
    assert "0815" not in str(told.value)
    assert "check the key: api_key_env" in str(told.value)
    assert "{" not in str(told.value)


BAD = {
    "no JSON": b"<html>",
    "no data": b"{}",
    "no list": b'{"data": {"index": 0}}',
    "one short": json.dumps({"data": [{"index": 0, "embedding": [1]}]}).encode(),
    "text": json.dumps({"data": [{"index": n, "embedding": "AAAA"} for n in (0, 1)]}).encode(),
    "nothing": json.dumps({"data": [{"index": n, "embedding": []} for n in (0, 1)]}).encode(),
    "zeros": json.dumps({"data": [{"index": n, "embedding": [0, 0]} for n in (0, 1)]}).encode(),
    "too long": json.dumps(
        {"data": [{"index": n, "embedding": [1] * 9_000} for n in (0, 1)]}
    ).encode(),
    "infinite": b'{"data": [{"index": 0, "embedding": [1e999]}, {"index": 1, "embedding": [1]}]}',
    "nested": b'{"data": ' + b"[" * 100_000,
    "two lengths": json.dumps(
        {"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1, 2]}]}
    ).encode(),
}


@pytest.mark.parametrize(
    "behaviour",
    [*map(sends, BAD.values()), fails(500), fails(404), stalls, sends(b"x" * 17_000_000)],
    ids=[*BAD, "status 500", "status 404", "stalls", "endless"],
)
def test_invalid_embedding_response_is_a_one_line_error(behaviour: Behaviour) -> None:
    server = StubServer().behaves(behaviour)
    with pytest.raises(SentenceModelError, match="vectors gives no vectors of texts") as told:
        asking(server.base_url).vectors(("a", "b"))
    server.close()
    assert "\n" not in str(told.value)
    assert len(str(told.value)) < 600


def test_unreachable_embedding_server_is_an_error() -> None:
    with pytest.raises(SentenceModelError, match="ConnectError: Connection refused"):
        asking("http://127.0.0.1:9/v1").vectors(("a",))
